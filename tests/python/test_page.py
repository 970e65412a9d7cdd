#!/usr/bin/env python3
"""The examples of docs/python.md run as they are."""
import re
import subprocess

from support import CAPTURES, PROGRAM, ROOT, Case, main

# Examples that python.torch_parked, python.torch_cases or python.dry_runs cover with a real PyTorch, or
# python.database_packages with pandas.
NEEDS_MORE = re.compile(r"dump_on_oom|model|who_holds|memtrace\.read")


class Page(Case):
    def test_examples(self):
        page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        blocks = [block for block in blocks if block.startswith("import memtrace\n")]
        self.assertEqual(len(blocks), 7)
        subprocess.run([PROGRAM, "import", "--quiet", "--no-summary", CAPTURES / "seq2seq.pickle.zst", "-o",
                        self.work / "run.trace.zst"], check=True)
        outputs = [self.python(block) for block in blocks if not NEEDS_MORE.search(block)]
        self.assertEqual(len(outputs), 4)
        self.assertIn("4776865280", outputs[0].stdout)
        self.assertEqual(len(outputs[1].stdout.splitlines()), 5)
        self.assertIn("collector", outputs[3].stdout)


if __name__ == "__main__":
    main()
