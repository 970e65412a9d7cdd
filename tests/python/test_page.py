#!/usr/bin/env python3
"""The examples of docs/python.md run as they are."""
import re
import subprocess

from support import CAPTURES, PROGRAM, ROOT, Case, main

# Examples that python.torch_parked, python.torch_cases or python.dry_runs cover with a real PyTorch.
NEEDS_PYTORCH = re.compile(r"import torch|dump_on_oom")


class Page(Case):
    def test_examples(self):
        page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 6)
        subprocess.run([PROGRAM, "import", "--quiet", "--no-summary", CAPTURES / "seq2seq.pickle.zst", "-o",
                        self.work / "run.trace.zst"], check=True)
        outputs = [self.python(block) for block in blocks if not NEEDS_PYTORCH.search(block)]
        self.assertEqual(len(outputs), 4)
        self.assertIn("4776865280", outputs[0].stdout)
        self.assertIn("collector", outputs[2].stdout)
        self.assertEqual(len(outputs[3].stdout.splitlines()), 4)


if __name__ == "__main__":
    main()
