#!/usr/bin/env python3
"""The dataclasses are those of the schemas, and keep what they do not know."""
import json
import pathlib
import subprocess
import sys
import unittest

from support import CAPTURES, PACKAGE, ROOT, main

import memtrace
from memtrace import Error, program
from memtrace.analysis import build
from memtrace.documents import analyze, estimate_diff, live


class Package(unittest.TestCase):
    def test_no_module_hides_a_name(self):
        """The import of memtrace.report would replace the function memtrace.report."""
        for name in memtrace.__all__:
            self.assertFalse((PACKAGE / "memtrace" / f"{name}.py").exists(), name)
            self.assertTrue(callable(getattr(memtrace, name)), name)


class Documents(unittest.TestCase):
    def test_generated_from_the_schemas(self):
        done = subprocess.run([sys.executable, str(PACKAGE / "generate_documents.py"), "--check"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_every_golden_document(self):
        """Each field has the value of its key, in every stored output of the commands."""
        found = 0
        for name, make in (("analyze", analyze.Analyze), ("live", live.Live),
                           ("estimate-diff", estimate_diff.EstimateDiff)):
            for path in sorted(pathlib.Path(ROOT, "tests", "golden").rglob(f"{name.partition('-')[0]}*json*")):
                try:
                    data = json.loads(path.read_text(encoding="utf-8"))
                except (ValueError, UnicodeDecodeError, IsADirectoryError):
                    continue
                if data.get("schema") != f"memtrace.{name}/1":
                    continue
                found += 1
                self.compare(build(make.from_json, data), data)
        self.assertGreater(found, 4)

    def compare(self, value, data):
        if hasattr(value, "raw"):
            self.assertEqual(value.raw, data)
            for key, part in data.items():
                self.compare(getattr(value, key), part)
        elif isinstance(value, tuple):
            self.assertEqual(len(value), len(data))
            for one, part in zip(value, data):
                self.compare(one, part)
        else:
            self.assertEqual(value, data)

    def test_unknown_and_missing_keys(self):
        document, _ = program.run_json(["analyze", str(CAPTURES / "leak.pickle.zst"), "-q"])
        document["newer"] = document["devices"][0]["newer"] = {"x": 1}
        made = build(analyze.Analyze.from_json, document)
        self.assertEqual(made.raw["newer"], {"x": 1})
        self.assertEqual(made.devices[0].raw["newer"], {"x": 1})
        with self.assertRaises(AttributeError):
            made.policy = "other"
        del document["devices"][0]["steps"]
        with self.assertRaisesRegex(Error, "different versions: .*'steps'"):
            build(analyze.Analyze.from_json, document)


if __name__ == "__main__":
    main()
