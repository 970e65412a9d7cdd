#!/usr/bin/env python3
"""check_nsys.py PROGRAM: exports of Nsight Systems are read as recordings of the driver's memory. The
databases are made here, by the schema of 2025 (checked with nsys 2025.3) and by an older one."""
import collections
import json
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

from support.program import output

EPOCH = 1_796_049_810_000_000_000
MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"
HEAPS = {0: "driver:pageable", 1: "driver:host", 2: "driver", 3: "driver:array", 4: "driver:managed",
         5: "driver:static", 6: "driver:managed", 7: "driver:unknown"}
KINDS = ("PAGEABLE", "PINNED", "DEVICE", "ARRAY", "MANAGED", "DEVICE_STATIC", "MANAGED_STATIC", "UNKNOWN")
PROCESS, OTHER = 980 << 24 | 1 << 48, 981 << 24 | 1 << 48
NEW = f"""
CREATE TABLE {MEMORY} (start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL,
    memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER,
    streamId INTEGER, localMemoryPoolAddress INTEGER, localMemoryPoolReleaseThreshold INTEGER,
    localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER, importedMemoryPoolAddress INTEGER,
    importedMemoryPoolProcessId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER);
CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, unresolved INTEGER,
    originalIP INTEGER, stackDepth INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
    text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, busLocation TEXT, totalMemory INTEGER,
    uuid TEXT);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL);
CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (nullStreamId INTEGER, processId INTEGER, contextId INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
"""
OLD = f"""CREATE TABLE {MEMORY} (start INT NOT NULL, globalPid INT NOT NULL, deviceId INT NOT NULL,
    address INT NOT NULL, bytes INT NOT NULL, memoryOperationType INT NOT NULL)"""


def insert(database, table, **values):
    database.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
                     list(values.values()))


class Export:
    def __init__(self, path, schema=NEW):
        self.path, self.database = path, sqlite3.connect(path)
        self.is_new = schema != OLD
        self.database.executescript("PRAGMA page_size = 512;" + schema)
        if self.is_new:
            for i, name in enumerate(KINDS):
                insert(self.database, "ENUM_CUDA_MEM_KIND", id=i, name="CUDA_MEMOPR_MEMORY_KIND_" + name)
            for i, name in enumerate(("ALLOCATION", "DEALLOCATION")):
                insert(self.database, "ENUM_CUDA_DEV_MEM_EVENT_OPER", id=i, name="CUDA_DEV_MEM_EVENT_OPR_" + name)
            insert(self.database, "TARGET_INFO_SESSION_START_TIME", utcEpochNs=EPOCH)

    def memory(self, start, operation, address, size, kind=2, process=PROCESS, **more):
        if self.is_new:
            more |= {"memKind": kind, "contextId": 1, "pc": 0}
        insert(self.database, MEMORY, **{"start": start, "globalPid": process, "deviceId": 0, "address": address,
                                         "bytes": size, "memoryOperationType": operation, **more})

    def close(self):
        self.database.commit()
        self.database.close()
        return self.path


def dump(program, path):
    return [json.loads(line) for line in output(program, "dump", "--json", path).splitlines()]


def check_random(program, folder, seed, schema):
    """Sums of each kind of memory, with blocks from before the start, lost frees and foreign frees."""
    dice = random.Random(seed)
    export = Export(folder / f"random{seed}.sqlite", schema)
    alive, level, peak, made = {}, collections.Counter(), collections.Counter(), collections.Counter()
    initial, used, rows, lost = {}, set(), [], 0
    for t in range(400):
        kind = dice.choice((1, 2, 2, 3, 4, 5, 7)) if schema == NEW else 2
        address = 4096 * dice.randint(1, 60)
        size = alive.get((kind, address)) or dice.randint(1, 1 << 30)
        is_free = dice.random() < 0.45
        rows.append((t, is_free, address, size, kind))
        if is_free and (kind, address) not in used:
            initial[kind, address] = size
        used.add((kind, address))
        if is_free:
            alive.pop((kind, address), None)
        else:
            lost += (kind, address) in alive
            alive[kind, address] = size
    alive = dict(initial)
    for (kind, _), size in initial.items():
        level[HEAPS[kind]] += size
        made[HEAPS[kind]] += 1
    peak.update(level)
    unknown = lost = 0
    for t, is_free, address, size, kind in rows:
        key, heap = (kind, address), HEAPS[kind]
        if is_free:
            unknown += key not in alive
            level[heap] -= alive.pop(key, 0)
        else:
            lost += key in alive
            level[heap] += size - alive.get(key, 0)
            alive[key] = size
            made[heap] += 1
        peak[heap] = max(peak[heap], level[heap])
    for row in dice.sample(rows, len(rows)):  # the order of rows means nothing
        export.memory(*row)
    path = export.close()
    info = json.loads(output(program, "info", "--json", path))
    found = {heap["name"]: (heap["live_bytes"], heap["allocations"]) for heap in info["heaps"]}
    assert found == {heap: (level[heap], made[heap]) for heap in made}, (seed, found, level, made)
    for heap in info["heaps"]:  # a lost free and the allocation that follows it are two events
        assert peak[heap["name"]] == heap["peak_bytes"], (seed, heap, peak)
    header = info["header"]
    assert f"no block had: {unknown}" in (header["not_used"] or "") or not unknown, header
    assert f"given out again: {lost}" in header["not_recorded"] or not lost, header
    assert header["starts_in_middle"] == bool(initial) and unknown and lost and initial, header
    assert ("kinds of memory" in header["not_recorded"]) == (schema != NEW), header
    assert info["integrity"]["events_invalid"] == 0 and json.loads(output(program, "analyze", "--json", path))


def check_facts(program, folder):
    """Pools, streams, stacks, threads, ranges, refused calls, devices, a second process."""
    export = Export(folder / "facts.sqlite")
    database, thread = export.database, PROCESS | 985
    names = {1: "main", 2: "/lib/app", 3: "cudaMalloc_v3020", 4: "libcudart.so", 5: "registered", 6: "worker"}
    for key, value in names.items():
        insert(database, "StringIds", id=key, value=value)
    for depth, (symbol, module) in enumerate(((3, 4), (1, 2))):
        insert(database, "CUDA_CALLCHAINS", id=7, symbol=symbol, module=module, stackDepth=depth)
    for process in (PROCESS, OTHER):  # numbers of calls are those of a process
        insert(database, "CUPTI_ACTIVITY_KIND_RUNTIME", start=90, end=110, globalTid=process | 985, correlationId=11,
               nameId=3, returnValue=0, callchainId=7 if process == PROCESS else 8)
    insert(database, "CUPTI_ACTIVITY_KIND_RUNTIME", start=90, end=110, globalTid=thread, correlationId=11, nameId=3,
           returnValue=0)  # a second row of the call does not make a second event
    insert(database, "CUPTI_ACTIVITY_KIND_RUNTIME", start=500, end=510, globalTid=thread, correlationId=12, nameId=3,
           returnValue=2)
    insert(database, "ThreadNames", nameId=6, globalTid=thread)
    insert(database, "TARGET_INFO_GPU", id=3, name="H200", busLocation="0000:00:06.0", totalMemory=1 << 37,
           uuid="b9c7331b-1458-45e2-7457-a1a206cd964d")
    insert(database, "TARGET_INFO_GPU", id=4, name="other")
    insert(database, "TARGET_INFO_CUDA_DEVICE", gpuId=3, cudaId=0, pid=980)
    insert(database, "TARGET_INFO_CUDA_CONTEXT_INFO", nullStreamId=7, processId=980)
    insert(database, "NVTX_EVENTS", start=0, eventType=75, text="lib", globalTid=thread, domainId=2)
    insert(database, "NVTX_EVENTS", start=50, end=200, eventType=59, text='a "b"', globalTid=thread, domainId=0)
    insert(database, "NVTX_EVENTS", start=50, end=150, eventType=60, textId=5, globalTid=thread, domainId=2)
    insert(database, "NVTX_EVENTS", start=120, end=120, eventType=59, text="short", globalTid=thread)
    insert(database, "NVTX_EVENTS", start=130, eventType=34, text="here", globalTid=thread)
    export.memory(100, 0, 4096, 1000, correlationId=11)
    export.memory(120, 0, 8192, 2000, correlationId=99, streamId=13, localMemoryPoolAddress=77,
                  localMemoryPoolSize=1 << 25)
    export.memory(300, 1, 8192, 2000, streamId=7, localMemoryPoolAddress=77)
    export.memory(310, 0, 12288, 3000, importedMemoryPoolAddress=78)
    export.memory(320, 0, 16384, 16, kind=5, name="table")
    export.memory(60, 0, 4096, 500, process=OTHER, correlationId=11)
    path = export.close()
    rows = [(event["kind"], event["t_ns"] - EPOCH, event["name"], event["heap"], event["addr"], event["size"],
             event["stream"], event["pool"][0], event["thread"]) for event in dump(program, path)]
    assert rows == [
        ("phase_push", 50, 'a "b"', "driver", 0, 0, 0, 0, 1),
        ("phase_push", 50, "lib: registered", "driver", 0, 0, 0, 0, 1),
        ("alloc", 100, None, "driver", 4096, 1000, 0, 0, 1),
        ("phase_push", 120, "short", "driver", 0, 0, 0, 0, 1),
        ("alloc", 120, None, "driver:async", 8192, 2000, 13, 77, 0),
        ("phase_pop", 120, "short", "driver", 0, 0, 0, 0, 1),
        ("mark", 130, "here", "driver", 0, 0, 0, 0, 1),
        ("phase_pop", 150, "lib: registered", "driver", 0, 0, 0, 0, 1),
        ("phase_pop", 200, 'a "b"', "driver", 0, 0, 0, 0, 1),
        ("free_requested", 300, None, "driver:async", 8192, 2000, 0, 77, 0),
        ("alloc", 310, None, "driver:imported", 12288, 3000, 0, 78, 0),
        ("alloc", 320, "table", "driver:static", 16384, 16, 0, 0, 0),
        ("mark", 510, "cudaMalloc_v3020 was refused: out of memory", "driver", 0, 0, 0, 0, 1),
        ("end", 510, None, "driver", 0, 0, 0, 0, 0)], rows
    text = output(program, "dump", "--stacks", path).decode()
    assert text.index("cudaMalloc_v3020 (libcudart.so") < text.index("main (/lib/app"), text
    info = json.loads(output(program, "info", "--json", path))
    assert info["header"]["process_id"] == 980 and info["header"]["has_stacks"]
    assert "process 981: 1 event of memory, 500 B allocated" in info["header"]["not_used"], info["header"]
    assert "the largest had 32.0 MiB" in info["header"]["not_used"], info["header"]
    assert info["devices"] == [{"device": 0, "name": "H200", "total_memory_bytes": 1 << 37}], info["devices"]
    assert info["identity"]["devices"][0]["uuid"] == "GPU-b9c7331b-1458-45e2-7457-a1a206cd964d"
    trace = folder / "facts.trace"
    output(program, "import", path, "-o", trace)
    assert dump(program, trace) == dump(program, path)
    for command in ("analyze", "live", "lines", "diff"):
        output(program, command, path, *([path] if command == "diff" else []))


def check_joins(program, folder):
    """Repeated numbers of texts, chains, calls and devices make no more events, whatever the file's
    statistics say. The first text counts."""
    schema = NEW.replace("StringIds (id INTEGER NOT NULL PRIMARY KEY", "StringIds (id INTEGER NOT NULL")
    export, thread, many = Export(folder / "joins.sqlite", schema), PROCESS | 985, 1500
    database = export.database
    for i in range(many):
        insert(database, "StringIds", id=1, value=f"text{i}")
        insert(database, "NVTX_EVENTS", start=2 * i, end=2 * i + 1, eventType=59, textId=1, globalTid=thread)
        insert(database, "CUDA_CALLCHAINS", id=7, symbol=1, module=1, stackDepth=0)
        insert(database, "CUPTI_ACTIVITY_KIND_RUNTIME", start=i, end=i, globalTid=thread, correlationId=11, nameId=1,
               returnValue=2, callchainId=7)
        insert(database, "ThreadNames", nameId=1, globalTid=thread)
        insert(database, "TARGET_INFO_GPU", id=3, name="H200")
        insert(database, "TARGET_INFO_CUDA_DEVICE", gpuId=3, cudaId=0, pid=980)
        export.memory(i, 0, 4096 * (i + 1), 16, correlationId=11)
    database.execute("ANALYZE")
    database.execute("UPDATE sqlite_stat1 SET stat = '1'")
    count = json.loads(output(program, "info", "--json", export.close(), timeout=900))["events"]["total"]
    names = {event["name"] for event in dump(program, export.path) if event["kind"] != "alloc"}
    assert names == {"text0", "text0 was refused: out of memory", None}, names
    assert count == 4 * many + 1, count


def check_numbers(program, folder):
    """The file may number operations otherwise. The process with the most allocated bytes is read."""
    export = Export(folder / "numbers.sqlite")
    for name, number in (("ALLOCATION", 5), ("DEALLOCATION", 0)):
        export.database.execute("DELETE FROM ENUM_CUDA_DEV_MEM_EVENT_OPER WHERE name LIKE ?", ["%_OPR_" + name])
        insert(export.database, "ENUM_CUDA_DEV_MEM_EVENT_OPER", id=number, name="CUDA_DEV_MEM_EVENT_OPR_" + name)
    export.memory(10, 5, 4096, 1000)
    export.memory(11, 5, 4096, 500, process=OTHER)
    export.memory(12, 0, 4096, 500, process=OTHER)
    export.memory(13, 0, 8192, 700, process=OTHER)
    info = json.loads(output(program, "info", "--json", export.close()))
    assert info["header"]["process_id"] == 980 and info["heaps"][0]["live_bytes"] == 1000, info


def check_long_texts(program, folder):
    """Long names of devices leave room in the header."""
    export = Export(folder / "long.sqlite")
    for i in range(64):
        insert(export.database, "TARGET_INFO_GPU", id=i, name="n" * 4000, busLocation=f"{i}" + "p" * 4000)
        insert(export.database, "TARGET_INFO_CUDA_DEVICE", gpuId=i, cudaId=i, pid=980)
    export.memory(10, 0, 4096, 1000)
    info = json.loads(output(program, "info", "--json", export.close()))
    assert {len(device["name"]) for device in info["devices"]} == {200}, info["devices"]


def refused(program, path, *words):
    done = subprocess.run([program, "info", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode in (2, 3, 4, 5) and done.stderr.count("\n") == 1, (path, done)
    for word in words:
        assert word in done.stderr, (word, done.stderr)


def check_refused(program, folder):
    """Files that are no such export."""
    def make(name, sql):
        path = folder / name
        with sqlite3.connect(path) as database:
            database.executescript(sql)
        database.close()
        return path

    refused(program, make("none.db", "CREATE TABLE t (a)"), "has no table " + MEMORY)
    refused(program, make("lacks.db", "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)"),
            "--cuda-memory-usage=true")
    refused(program, make("column.db", f"CREATE TABLE {MEMORY} (start INT, bytes INT, memoryOperationType INT)"),
            "no column " + MEMORY + ".address")
    refused(program, make("view.db", f"CREATE TABLE t (start, address, bytes, memoryOperationType);"
                                     f"CREATE VIEW {MEMORY} AS SELECT * FROM t"), "has no table")
    refused(program, make("virtual.db", f"CREATE VIRTUAL TABLE {MEMORY} USING fts5(start, address)"), "has no table")
    refused(program, make("empty.db", OLD), "no allocation that can be read")
    refused(program, make("own.db", "CREATE TABLE t (a); PRAGMA application_id = 0x6d747264"), "memtrace sql")
    path = make("wal.db", OLD)
    pathlib.Path(f"{path}-wal").write_bytes(b"x")
    refused(program, path, "another program is not complete")
    facts = (folder / "facts.sqlite").read_bytes()
    done = subprocess.run([program, "info", "-"], input=facts, capture_output=True, check=False)
    assert b"not compressed" in done.stderr and done.returncode, done


def check_bad_rows(program, folder):
    """Rows that cannot be events are counted, and the others are read."""
    export = Export(folder / "rows.sqlite")
    export.memory(10, 0, 4096, 1000)
    for values in ((20, 7, 8192, 1), (21, 0, 0, 1), (22, 0, 8192, -1), (23, 0, 8192, 1 << 62), (24, 0, 8192, 0),
                   (25, 0, 8192, "x"), (1 << 62, 0, 8192, 1), (b"x", 0, 8192, 1), (26, None, 8192, 1)):
        try:
            export.memory(*values)
        except sqlite3.IntegrityError:
            export.memory(27, 9, 8192, 1)
    export.memory(28, 0, 8192, 1, process="x")
    export.memory(29, 0, 8192, 1, process=PROCESS + 0.5)
    export.close()
    with sqlite3.connect(export.path) as database:  # a table without types keeps a real number
        database.executescript(f"CREATE TABLE copy AS SELECT * FROM {MEMORY}; DROP TABLE {MEMORY};"
                               f"CREATE TABLE {MEMORY} AS SELECT +globalPid AS globalPid, start, deviceId, address, "
                               "bytes, memKind, memoryOperationType FROM copy; "
                               f"INSERT INTO {MEMORY} SELECT {PROCESS}.0, 30, 0, 12288, 1, 2, 0")
    database.close()
    info = json.loads(output(program, "info", "--json", export.path, status=3))
    assert info["integrity"]["records_damaged"] == 12, info["integrity"]
    assert info["heaps"][0]["live_bytes"] == 1000


def check_cut(program, folder):
    """Cut at every 131st byte, and with a byte changed: an error of one line, or an answer."""
    whole = (folder / "facts.sqlite").read_bytes()
    path = folder / "cut.sqlite"
    dice = random.Random(5)
    for cut in range(0, len(whole), 131):
        path.write_bytes(whole[:cut])
        refused(program, path)
    for _ in range(100):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(damaged)
        done = subprocess.run([program, "info", str(path)], capture_output=True, check=False)
        assert done.returncode in (0, 2, 3, 4, 5), (done.returncode, done.stderr)
        assert done.stdout or done.stderr.count(b"\n") == 1, done.stderr
    assert not list(folder.glob("cut.sqlite-*")), "reading made a file"


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for seed in range(8):
            check_random(program, folder, seed, NEW if seed % 3 else OLD)
        check_facts(program, folder)
        check_joins(program, folder)
        check_numbers(program, folder)
        check_long_texts(program, folder)
        check_refused(program, folder)
        check_bad_rows(program, folder)
        check_cut(program, folder)


main(sys.argv[1])
