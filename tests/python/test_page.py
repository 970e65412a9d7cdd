#!/usr/bin/env python3
"""The examples of docs/python.md run as they are."""
import re
import subprocess

from support import CAPTURES, PROGRAM, ROOT, Case, main


class Page(Case):
    def test_examples(self):
        page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 3)
        subprocess.run([PROGRAM, "import", "--quiet", "--no-summary", CAPTURES / "seq2seq.pickle.zst", "-o",
                        self.work / "run.trace.zst"], check=True)
        outputs = [self.python(block) for block in blocks]
        self.assertIn("4776865280", outputs[0].stdout)
        self.assertIn("collector", outputs[2].stdout)


if __name__ == "__main__":
    main()
