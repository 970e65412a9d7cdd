#!/usr/bin/env python3
"""check_left_out.py PROGRAM MAKE_BOMB: devices that are not analyzed are named, and --strict fails.

One trace has a block on each of the devices 0 to 70. Another has as many phases as an analysis
follows on 16 devices, and a block on each of the devices 0 to 79: 16 to 63 have no room there."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, MAKE_BOMB = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
CROWDED = "the trace has too many phases for more devices"
NUMBER = "only devices 0 to 63 are"
NOTES = ("16 devices are omitted: only devices 0 to 63 are replayed",
         "48 devices are omitted: the trace has too many phases to follow them")


class LeftOut(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for kind, count in (("devices", 71), ("crowded", 80)):
            path = pathlib.Path(cls.folder.name) / kind
            subprocess.run([MAKE_BOMB, kind, str(count), path], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_command(self, line, status):
        done = subprocess.run([PROGRAM, *line.split()], capture_output=True, text=True,
                              cwd=self.folder.name)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_strict_fails_and_says_why(self):
        done = self.run_command("analyze crowded --json --quiet --strict", 5)
        for note in NOTES:
            self.assertIn(note, done.stderr)
        self.assertEqual(json.loads(done.stdout)["input"]["devices_left_out"], 64)

    def test_the_text_says_why(self):
        done = self.run_command("analyze crowded", 0)
        self.assertIn("numbers are above 63: 16\n", done.stdout)
        self.assertIn("too many phases for another device: 48\n", done.stdout)

    def test_a_device_without_room_is_not_said_to_have_no_events(self):
        done = self.run_command("export folded crowded --device 50", 3)
        self.assertIn(f"device 50 is not analyzed: {CROWDED}\n", done.stderr)

    def test_a_device_that_is_too_high_is_not_said_to_have_no_events(self):
        for line, status in (("render timeline devices -o x.svg", 3), ("export folded devices", 3),
                             ("live devices", 2), ("lines devices", 2), ("diff devices devices", 2),
                             ("render policies devices -o x.svg", 3),
                             ("render diff devices devices -o x.svg", 3)):
            with self.subTest(line):
                done = self.run_command(f"{line} --device 70", status)
                self.assertIn(f"device 70 is not analyzed: {NUMBER}\n", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
