#!/usr/bin/env python3
"""make_seeds.py FOLDER: small snapshots that hold one of everything, for
fuzzing. Their output is committed in seeds/."""
import pathlib
import pickle
import sys

FRAMES = [{"name": "forward", "filename": "/app/train.py", "line": 7},
          {"name": "<module>", "filename": "/app/train.py", "line": 70}]


def event(action, addr, size, time_us, stream=0):
    return {"action": action, "addr": addr, "size": size, "stream": stream, "time_us": time_us,
            "compile_context": "N/A", "user_metadata": "", "frames": FRAMES}


def snapshot():
    base, mib = 0x7F0000000000, 1 << 20
    trace = [
        event("segment_alloc", base, 2 * mib, 1), event("alloc", base, 512, 2),
        event("alloc", base + 512, 1000, 3), event("free_requested", base, 512, 4),
        event("free_completed", base, 512, 5), event("alloc", base, 100, 6, stream=1),
        event("segment_alloc", base + 32 * mib, 20 * mib, 7),
        event("alloc", base + 32 * mib, 15 * mib, 8), event("oom", 1 * mib, 30 * mib, 9),
        event("free_requested", base + 32 * mib, 15 * mib, 10),
        event("free_completed", base + 32 * mib, 15 * mib, 11),
        event("segment_free", base + 32 * mib, 20 * mib, 12),
        event("segment_map", base + 64 * mib, 20 * mib, 13),
        event("segment_unmap", base + 64 * mib, 20 * mib, 14),
        event("snapshot", 0, 0, 15),
    ]
    blocks = [{"address": base, "size": 512, "requested_size": 100, "state": "active_allocated", "frames": FRAMES},
              {"address": base + 512, "size": 1024, "requested_size": 1000, "state": "active_allocated",
               "frames": []},
              {"address": base + 1536, "size": 2 * mib - 1536, "requested_size": 0, "state": "inactive",
               "frames": []}]
    segment = {"device": 0, "address": base, "total_size": 2 * mib, "allocated_size": 1536, "active_size": 1536,
               "requested_size": 1100, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": FRAMES, "blocks": blocks}
    annotations = [{"stage": stage, "name": name, "device": 0, "time_us": time}
                   for stage, name, time in (("START", "step#0", 1), ("START", "forward", 2),
                                             ("END", "forward", 9), ("END", "step#0", 14))]
    return {"segments": [segment], "device_traces": [trace], "external_annotations": annotations,
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                                   "garbage_collection_threshold": 0.0, "expandable_segments": False,
                                   "roundup_power2_divisions": {"1": 0}}}


def main(folder):
    for protocol in (0, 2, 4, 5):
        path = pathlib.Path(folder) / f"input_protocol{protocol}.pickle"
        path.write_bytes(pickle.dumps(snapshot(), protocol))


if __name__ == "__main__":
    main(sys.argv[1])
