#!/usr/bin/env python3
"""check_graph_trees.py PROGRAM FIXTURES: programs under CUDA graphs against PyTorch's own counters.

FIXTURES/graph_trees has snapshots and what the programs counted at the same moment: every address
must be exact, every peak and count equal, and the bytes of each pool those of memory_snapshot()."""
import json
import pathlib
import subprocess
import sys
import unittest

from support.program import fast_program

PROGRAM, FIXTURES = (pathlib.Path(path).resolve() for path in (fast_program(sys.argv[1]), sys.argv[2]))
FOLDER = FIXTURES / "graph_trees"
NAMES = sorted(path.name.split(".")[0] for path in FOLDER.glob("*.pickle.zst"))
PEAKS = {"requested_peak": "requested_bytes", "allocated_peak": "allocated_bytes",
         "active_peak": "active_bytes", "reserved_peak": "reserved_bytes"}
# How often a pool was put back to a checkpoint.
RESTORED = {"gpt2": 1, "shapes": 1, "several": 4}
# Reserved peaks of real runs of the same programs under other options.
EXPANDABLE = "pytorch:expandable_segments:True"
OTHER_OPTIONS = {("train", EXPANDABLE): 348127232, ("infer", EXPANDABLE): 111149056,
                 ("several", EXPANDABLE): 88080384, ("manual", EXPANDABLE): 390070272}


def device_of(name, *options):
    done = subprocess.run([PROGRAM, "analyze", FOLDER / f"{name}.pickle.zst", "--json", "--all",
                           "--quiet", *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["devices"][0]


class GraphTrees(unittest.TestCase):
    def test_programs_are_exact(self):
        self.assertTrue(NAMES)
        for name in NAMES:
            with self.subTest(name):
                self.check(device_of(name), json.loads((FOLDER / f"{name}.truth.json").read_text()),
                           name)

    def check(self, device, truth, name):
        verify, stats = device["verify"], truth["stats"]
        self.assertTrue(verify["exact"], verify["first_difference"])
        self.assertEqual(verify["policy"], "pytorch")
        self.assertEqual(verify["addresses_exact"], stats["allocation.all.allocated"])
        for mine, theirs in PEAKS.items():
            self.assertEqual(device["summary"][mine]["bytes"], stats[f"{theirs}.all.peak"], mine)
        self.assertEqual(verify["restores"]["restores"], RESTORED.get(name, 0))
        self.assertEqual(verify["restores"]["blocks_unplaced"], 0)
        self.assertEqual(verify["restores"]["gaps_left_out"], 0)
        pools = {f"({pool['id_a']}, {pool['id_b']})": (pool["reserved_bytes"],
                                                      pool["allocated_bytes"], pool["segments"])
                 for pool in device["pools"] if pool["reserved_bytes"]}
        self.assertEqual(pools, {pool: (of["reserved"], of["allocated"], of["segments"])
                                 for pool, of in truth["pools"].items()})

    def test_other_options_are_predicted(self):
        for (name, policy), reserved in OTHER_OPTIONS.items():
            with self.subTest(f"{name} {policy}"):
                done = subprocess.run([PROGRAM, "replay", FOLDER / f"{name}.pickle.zst", "--json",
                                       "--quiet", "--policy", policy], capture_output=True,
                                      text=True, check=True)
                row = json.loads(done.stdout)["policies"][0]
                self.assertEqual(row["reserved_peak_bytes"], reserved)
                self.assertEqual(row["restores"]["blocks_unplaced"], 0)

    def test_a_gap_that_is_left_out_is_no_failure(self):
        device = device_of("several", "--policy", EXPANDABLE)
        self.assertGreater(device["verify"]["restores"]["gaps_left_out"], 0)
        self.assertIsNone(device["verify"]["first_failure_event"])

    def test_a_gap_that_is_left_out_needs_no_device(self):
        done = subprocess.run([PROGRAM, "fit", FOLDER / "several.pickle.zst", "--json", "--quiet",
                               "--policy", EXPANDABLE], capture_output=True, text=True, check=True)
        self.assertGreater(json.loads(done.stdout)["policies"][0]["fit_bytes"] or 0, 1 << 26)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
