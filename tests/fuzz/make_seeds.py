#!/usr/bin/env python3
"""make_seeds.py FOLDER [PROGRAM]: small inputs for the fuzz targets, each named
after its target. Snapshots are as small as they can be and still mean something:
a fuzzer needs thousands of executions a second. PROGRAM (memtrace) turns them
into traces as well. The output is committed in seeds/."""
import gzip
import json
import pathlib
import pickle
import subprocess
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


def tiny(*entries, **more):
    """A snapshot of a few hundred bytes."""
    names = ("action", "addr", "size", "stream", "time_us")
    return {"segments": [], "device_traces": [[dict(zip(names, entry)) for entry in entries]], **more}


BASE, MIB = 0x7F0000000000, 1 << 20
FRAME = [{"name": "f", "filename": "a.py", "line": 7}]


def tagged():
    """Texts of allocations, and of blocks that live: one of the window, one of the start, one that is gone."""
    value = tiny(("alloc", BASE, 512, 0, 1), ("annotate", BASE, 0, 0, 2), ("annotate", BASE + 512, 0, 0, 3),
                 ("free_completed", BASE, 512, 0, 4), ("annotate", BASE, 0, 0, 5))
    for entry, text in zip(value["device_traces"][0], ("weights", '{"role": "input"}', "layer 3", "", "late")):
        entry.update(user_metadata=text, compile_context="N/A")
    value["segments"] = [{"device": 0, "address": BASE, "total_size": 2 * MIB, "stream": 0, "blocks": [
        {"address": BASE, "size": 512, "state": "inactive"},
        {"address": BASE + 512, "size": 2 * MIB - 512, "requested_size": 9, "state": "active_allocated"}]}]
    return value


def pinned():
    names = ("action", "addr", "size", "stream", "time_us")
    host = [("free_completed", 64, 8, 0, 1), ("segment_alloc", 0, 4096, 0, 2), ("alloc", 0, 4096, 0, 2),
            ("free_requested", 0, 4096, 0, 3), ("free_completed", 0, 4096, 0, 3), ("segment_free", 0, 4096, 0, 4)]
    return tiny(("alloc", BASE, 512, 0, 2), host_traces=[dict(zip(names, entry)) for entry in host], host_segments=[
        {"device": -1, "address": 64, "total_size": 8, "stream": 0, "blocks": [
            {"address": 64, "size": 8, "requested_size": 8, "state": "active_allocated"}]}])


def at_addresses():
    """A block at a given address and the gap below it, and one at the start of a free block."""
    value = tiny(("segment_alloc", BASE, 2 * MIB, 0, 1), ("alloc", BASE, 1024, 0, 2), ("alloc", BASE + 1024, 700, 0, 3),
                 ("free_requested", BASE, 1024, 0, 4), ("alloc", BASE, 512, 0, 5))
    for entry in value["device_traces"][0][1:]:
        entry["internal_metadata"] = "mallocWithAddress"
    return value


TINY = {
    "alloc": tiny(("alloc", BASE, 512, 0, 1)),
    "frees": tiny(("segment_alloc", BASE, 2 * MIB, 0, 1), ("alloc", BASE, 512, 0, 2),
                  ("free_requested", BASE, 512, 0, 3), ("free_completed", BASE, 512, 0, 4),
                  ("segment_free", BASE, 2 * MIB, 0, 5)),
    "oom": tiny(("segment_map", BASE, 20 * MIB, 0, 1), ("alloc", BASE, 15 * MIB, 1, 2),
                ("oom", MIB, 30 * MIB, 0, 3), ("segment_unmap", BASE, 20 * MIB, 0, 4)),
    "stack": {"segments": [], "device_traces": [[
        {"action": "alloc", "addr": BASE, "size": 512, "stream": 0, "time_us": 1, "frames": FRAME},
        {"action": "alloc", "addr": BASE + 512, "size": 99, "stream": 0, "time_us": 2, "frames": FRAME}]]},
    "middle": {"segments": [{"device": 0, "address": BASE, "total_size": 2 * MIB, "stream": 0,
                             "segment_type": "small", "blocks": [
                                 {"size": 512, "requested_size": 100, "state": "active_allocated"},
                                 {"size": 2 * MIB - 512, "state": "inactive"}]}],
               "device_traces": [[{"action": "free_requested", "addr": BASE, "size": 512, "stream": 0}]]},
    "phases": tiny(("alloc", BASE, 512, 0, 2), ("free_completed", BASE, 512, 0, 3), external_annotations=[
        {"stage": stage, "name": "step#0", "device": 0, "time_us": time}
        for stage, time in (("START", 1), ("END", 4))]),
    "settings": tiny(allocator_settings={"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64",
                                         "max_split_size": 67108864, "expandable_segments": True,
                                         "garbage_collection_threshold": 0.5,
                                         "roundup_power2_divisions": {"1": 2}}),
    "tags": tagged(),
    "host": pinned(),
    "addresses": at_addresses(),
    "lacks": tiny(("free_completed", BASE, 512, 0, 1), ("free_completed", BASE, 512, 0, 2), ("alloc", BASE, 9, 0, 3),
                  ("alloc", BASE, 9, 0, 4), ("segment_free", BASE, 2 * MIB, 0, 5), ("segment_free", BASE, 2 * MIB, 0, 6)),
    "origin": {"segments": [], "device_traces": [[
        {"action": "alloc", "addr": BASE, "size": 512, "stream": 0, "time_us": 1, "frames": [
            {"name": "forward", "filename": "fx_generated_1.py", "line": 3, "fx_node_op": "call_function",
             "fx_original_trace": 'File "a.py", line 7, in f\n  g()\nFile "b.py", line 8, in g\n'}]}]]},
}

def pools_lack():
    """In a private pool: a block where another lives whose free the history lacks."""
    pool = (0, 1)
    value = tiny(("segment_alloc", BASE, 2 * MIB, 0, 1), ("alloc", BASE, 512, 0, 2), ("alloc", BASE, 1024, 0, 3),
                 ("free_requested", BASE, 1024, 0, 4), ("free_completed", BASE, 1024, 0, 5))
    for entry in value["device_traces"][0]:
        entry.update(segment_pool_id=pool)
    value["segments"] = [{"device": 0, "address": BASE, "total_size": 2 * MIB, "stream": 0, "segment_pool_id": pool,
                          "blocks": [{"address": BASE, "size": 2 * MIB, "state": "inactive"}]}]
    return value


TEXTS = {
    "kineto_timeline": "[[-1, 1, 512, 0], [9, 2, 8, 4], [9, 3, -8, 4], [9, 3, 8, 7], [9, 4, -512, 0]]",
    "allocator_options_all": "expandable_segments:True,max_split_size_mb:64,garbage_collection_threshold:0.8,"
                             "roundup_power2_divisions:[1:2,16:4,>:1]|max_split_size=67108864\n",
    "baseline_json": '{"schema":"memtrace.baseline/1","name":"a","devices":[{"device":0,'
                     '"requested_peak_bytes":1,"allocated_peak_bytes":2,"active_peak_bytes":2,'
                     '"reserved_peak_bytes":3,"sites":[{"site":"f a.py:7","phase":"","bytes":1}]}]}',
    "budget_toml": 'schema = "memtrace.budget/1"\nfits = "16GiB"\n[max-peak]\nreserved = "10GiB"\n'
                   'allocated = {limit = "1GiB"}\n[max-growth]\nlimit = "1MiB/step"\nwarn = "1KiB/step"\n',
    "budget_option": "reserved=10GiB,warn=9GiB",
    "csv_buffers": "id,lower,upper,size\n0,0,10,512\n1,3,20,1024\n",
    "environment_all": "python,native,frees\nnvtx,torch,autograd\nnone\n10\n100\n32\n123\n/x\nnone",
    "escape_hostile": "<script>]]>--&amp;`|*_[a](b) ::e http://x \u202e\u2028\x1b[31m\x9b \"'\\ @x #1",
    "settings_json": '{"a":{"b":[1,true,null,{"c":"\\u0041\\n"}]},"d":-1.5}',
    "settings_toml": 'a = 1\n[b.c]\nd = "e\\t" # f\n"g" = true\n',
    "size_gib": "16.5 GiB",
    "words_all": "a.trace\n--limit=12GiB\n-j\n4\n-o\nx\n--policy\nbfc\n--json\n--\nb",
}


def varints(*values):
    """Each with seven bits a byte, the lowest first."""
    out = bytearray()
    for value in values:
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out)


def table_of_definitions(table, first, *entries):
    data = b"".join(entries)
    return varints(table, first, len(entries), len(data)) + data


def ends():
    """A heap's name, the heap, and the ends of a segment, of one that counts nothing, and of one in a heap that is lost."""
    return table_of_definitions(1, 1, varints(7) + b"pytorch") + table_of_definitions(7, 1, varints(2)) + table_of_definitions(
        9, 0, varints(0, 1, BASE, 2 * MIB, 513, 1025, 1501), varints(1, 1, BASE, 2 * MIB, 0, 0, 0), varints(2, 5, 0, 0, 1, 1, 1))


def summary_seeds(folder, name, summary):
    """The file, and its payload."""
    payload = subprocess.run(["zstd", "-dcq"], input=summary[24:], stdout=subprocess.PIPE, check=True)
    (folder / f"summary_{name}").write_bytes(summary)
    (folder / f"summary_payload_{name}").write_bytes(payload.stdout)


def memory(time_us, size, total, number, addr=4096, device=(1, 0)):
    """A memory event of torch.profiler."""
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 2, "ts": time_us,
            "args": {"Total Reserved": 1 << 21, "Total Allocated": total, "Bytes": size, "Device Id": device[1],
                     "Device Type": device[0], "Addr": addr, "Ev Idx": number}}


def around(category, name, time_us, duration_us):
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 2, "ts": time_us, "dur": duration_us}


def profiles():
    """Traces of torch.profiler: one without faults, one of host memory, one of which events are missing."""
    plain = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}},
             around("user_annotation", "ProfilerStep#1", 1.5, 40), around("python_function", "a.py(3): f", 2, 30),
             around("cpu_op", "aten::mm", 3, 5), memory(4.25, 512, 1536, 7), memory(6, -512, 1024, 8),
             memory(9, -1024, 0, 9, 8192)]
    odd = [memory(5, 512, 512, 2), memory(5, 1024, 1536, 1, 8192), memory(6, -512, 900, 3),
           memory(7, 8, 8, 4, 99, (0, -1)), memory(8, 512, 77, 5),
           {"ph": "i", "name": "[OutOfMemory]", "tid": 2, "ts": 9,
            "args": {"Bytes": 1 << 20, "Device Id": 0, "Device Type": 1}},
           around("cpu_op", "x", 1, 3), around("cpu_op", "y", 2, 9), around("user_annotation", "z", 3, 0)]
    facts = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": 1 << 30}],
             "distributedInfo": {"rank": 1, "world_size": 2}, "baseTimeNanoseconds": 1000000}
    host = [memory(5, 8, 8, 1, 64, (0, -1)), memory(6, -8, 0, 2, 64, (0, -1))]
    return {name: json.dumps({**more, "traceEvents": rows}, separators=(",", ":")).encode()
            for name, rows, more in (("plain", plain, facts), ("odd", odd, {}), ("host", host, {}))}


def profile_seeds(folder):
    for name, text in profiles().items():
        (folder / f"kineto_{name}").write_bytes(text)
    (folder / "kineto_gzip").write_bytes(gzip.compress(profiles()["plain"], mtime=0))
    (folder / "feed_gzip").write_bytes(gzip.compress(b"two " * 30, mtime=0) + gzip.compress(b"members", mtime=0)
                                       + bytes(2))


def main(folder, program=None):
    folder = pathlib.Path(folder)
    profile_seeds(folder)
    for protocol in (0, 2, 4, 5):
        (folder / f"input_protocol{protocol}.pickle").write_bytes(pickle.dumps(snapshot(), protocol))
    (folder / "input_pools_lack.pickle").write_bytes(pickle.dumps(pools_lack(), 4))
    for name, value in TINY.items():
        path = folder / f"pickle_{name}"
        path.write_bytes(pickle.dumps(value, 4))
        if program:
            trace = folder / f"trace_{name}"
            trace.unlink(missing_ok=True)
            subprocess.run([program, "import", "-q", path, "-o", trace], check=True)
            summary = pathlib.Path(f"{trace}.mtsum")
            summary_seeds(folder, name, summary.read_bytes())
            summary.unlink()
    (folder / "definitions_ends").write_bytes(ends())
    for name, text in TEXTS.items():
        (folder / name).write_bytes(text.encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
