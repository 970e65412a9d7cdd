#!/usr/bin/env python3
"""check_database.py PROGRAM FIXTURES [NAME...]: the database of `memtrace export sqlite` compared with the commands.

Captures and recorded traces are exported, with all events. Sums over the tables must equal, to the byte, what analyze,
live, lines and dump print as JSON. Every question in cli/database/questions runs, on its defaults, and its sums equal
the answer of the command that answers the same."""
import collections
import concurrent.futures
import json
import os
import pathlib
import sqlite3
import sys
import tempfile
import zlib

from support.database_questions import check_questions
from support.program import fast_program, output

CAPTURES = ("accumulate", "cache", "churn_exp_ring", "churn_noctx", "churn_noframes", "churn_split_cap", "gpt_cap",
            "gpt_expandable", "gpt_ring", "graph", "keeps", "leakval", "oom_adam", "resnet50_cap900", "seq2seq",
            "streams", "twogpu")
RECORDED = ("churn_expandable", "communicators", "driver_only", "every_allocation", "mixed", "paged_pool", "streams")
OTHERS = ("no_history/snapshot.pickle", "pools/kept.pickle.zst", "tags/roles_2_15.pickle.zst", "tags/words_2_15.pickle.zst",
          "waiting/buckets.pickle.zst", "waiting/expandable.pickle.zst", "waiting/out_of_memory.pickle.zst",
          "waiting/ring.pickle.zst")
LEVELS = ("requested", "allocated", "active", "reserved")
KINDS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom",
         "alloc_failed")
LIVE = ("FROM blocks WHERE device = :device AND birth_event <= :event"
        " AND (free_event IS NULL OR free_event > :event)")
WAITING = ("FROM blocks WHERE device = :device AND free_event <= :event"
           " AND (completed_event IS NULL OR completed_event > :event)")


class Run:
    """A recording, its database, and the answers of the program about it."""

    def __init__(self, program, path, folder):
        self.program, self.path = program, path
        self.name = f"{path.parent.name}/{path.name.split('.')[0]}"
        self.database = pathlib.Path(folder, f"{path.parent.name}-{path.name}.db")
        self.wrong = []
        output(program, "export", "--quiet", "sqlite", path, "--events", "-o", self.database)
        self.connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        self.connection.row_factory = sqlite3.Row
        self.report = self.json("analyze")
        self.devices = {device["device"]: device for device in self.report["devices"]}
        self.has_segments = self.one("SELECT value FROM settings WHERE name = 'has_segments'")
        self.lines = {device["device"]: device for device in self.json("lines")["devices"]}
        self.allocated = {(number,): device["allocated_bytes"] for number, device in self.lines.items()
                          if device["allocated_bytes"]}

    def json(self, command, *words):
        return json.loads(output(self.program, command, "--quiet", "--json", "--all", self.path, *words))

    def rows(self, sql, **parameters):
        return self.connection.execute(sql, parameters).fetchall()

    def one(self, sql, **parameters):
        """The only value of the only row; NULL of a sum without rows is 0."""
        (value,) = self.connection.execute(sql, parameters).fetchone()
        return 0 if value is None else value

    def sums(self, sql, **parameters):
        """{first column, or all columns except the last: last column}"""
        return {row[0] if len(row) == 2 else tuple(row)[:-1]: row[-1] for row in self.rows(sql, **parameters)}

    def equal(self, what, found, expected):
        """Both are values, or dictionaries. Prints at most three differences of these."""
        if isinstance(found, dict) and isinstance(expected, dict):
            keys = [key for key in sorted(set(found) | set(expected), key=str) if found.get(key, 0) != expected.get(key, 0)]
            for key in keys[:3]:
                self.wrong.append(f"{what} {key} (1 of {len(keys)}): database {found.get(key)}, program {expected.get(key)}")
        elif found != expected:
            self.wrong.append(f"{what}: database {found}, program {expected}")


def levels_of(row, prefix=""):
    return {name: row[f"{prefix}{name}_bytes"] for name in LEVELS}


def phase_path(run, phase):
    return None if phase is None else run.one("SELECT path FROM phases WHERE phase = :phase", phase=phase)


def check_device(run, number, device):
    summary, (row,) = device["summary"], run.rows("SELECT * FROM devices WHERE device = :device", device=number)
    for name in ("events", "allocations", "frees", "ooms", "retries", "total_memory_bytes"):
        run.equal(f"device {number} {name}", row[name], summary[name])
    run.equal(f"device {number} name", row["name"], device["name"])
    run.equal(f"device {number} is_complete", row["is_complete"], int(summary["complete"]))
    run.equal(f"device {number} is_exact", row["is_exact"], int(device["verify"]["exact"]))
    for name in ("bytes", "allocator_bytes", "libraries_bytes", "cuda_bytes"):
        run.equal(f"device {number} card {name}", row[f"card_{name}"], device["card"] and device["card"][name])
    run.equal(f"device {number} card_doubt", row["card_doubt"], device["card"] and device["card"]["why_more"])
    blocks = run.one("SELECT count(*) FROM blocks WHERE device = :device AND NOT is_initial", device=number)
    run.equal(f"device {number} blocks", blocks, summary["allocations"])
    run.equal(f"device {number} start", run.one("SELECT sum(bytes) FROM blocks WHERE device = :device AND is_initial",
                                                device=number), summary["start"]["active"])


def check_peaks(run, number, device):
    for row in run.rows("SELECT * FROM peaks WHERE device = :device", device=number):
        peak, what = device["summary"][f"{row['size']}_peak"], f"device {number} {row['size']} peak"
        for name in ("bytes", "event", "t_ns", "step"):
            run.equal(f"{what} {name}", row[name], peak[name])
        run.equal(f"{what} phase", phase_path(run, row["phase"]), peak["phase"])
        run.equal(f"{what} then", levels_of(row), peak["then"])


def check_peak_roles(run, number, device):
    by_source = run.sums("SELECT role_source, sum(bytes) FROM live WHERE kind = 'peak_allocated' AND device = :device"
                         " GROUP BY role_source", device=number)
    known, what = device["roles_known"], f"device {number}"
    run.equal(f"{what} roles", run.sums("SELECT role, sum(bytes) FROM live_at_peak WHERE device = :device"
                                        " GROUP BY role", device=number), device["peak_roles"])
    run.equal(f"{what} roles recorded", by_source.get("recorded", 0), known["recorded_bytes"])
    run.equal(f"{what} roles guessed", by_source.get("guess", 0), known["guessed_bytes"])
    run.equal(f"{what} roles inferred", by_source.get("inferred", 0) + by_source.get("unknown", 0), known["inferred_bytes"])
    owners = run.sums("SELECT owner, sum(bytes) FROM live WHERE kind = 'peak_allocated' AND device = :device"
                      " AND NOT (owner = 'nothing' AND stack IS NOT NULL) GROUP BY owner", device=number)
    frameless = {name: size for name, size in device["frameless_at_peak"].items() if size}
    run.equal(f"{what} owners", owners, frameless)
    sites = collections.Counter()
    for site in device["peak_sites"]:
        sites[site["site"], site["phase"]] += site["bytes"]
    run.equal(f"{what} sites", run.sums("SELECT site, phase_name, sum(bytes) FROM live WHERE kind = 'peak_allocated'"
                                        " AND device = :device GROUP BY 1, 2", device=number), sites)
    tags = {row["tag"]: row["bytes"] for row in device.get("tags_at_peak", ())}
    run.equal(f"{what} tags", run.sums("SELECT tag, sum(bytes) FROM live WHERE kind = 'peak_allocated'"
                                       " AND device = :device AND tag IS NOT NULL GROUP BY 1", device=number), tags)


def check_modules(run, number, device):
    rows = collections.Counter()
    for row in device["modules"]["rows"] if device["modules"] else ():
        for role, size in row["roles"].items():
            rows[row["kind"], row["path"] if row["layer"] is None else f"{row['path']}[{row['layer']}]", role] += size
    run.equal(f"device {number} modules", run.sums("SELECT kind, module, role, sum(bytes) FROM modules"
                                                   " WHERE device = :device GROUP BY 1, 2, 3", device=number), rows)


def check_steps(run, number, device):
    rows = run.rows("SELECT * FROM steps WHERE device = :device ORDER BY rowid", device=number)
    run.equal(f"device {number} steps", len(rows), len(device["steps"]))
    for row, step in zip(rows, device["steps"]):
        what = f"device {number} step {step['index']}"
        found = {"step": row["step"], "line": row["loop"], "begin": row["begin_ns"], "end": row["end_ns"],
                 "peak_event": row["peak_event"], "peak_ns": row["peak_ns"], "enter": row["enter_allocated_bytes"],
                 "exit": row["exit_allocated_bytes"], **levels_of(row, "peak_")}
        run.equal(what, found, {"step": step["step"], "line": step.get("loop_line"), "begin": step["begin_ns"],
                                "end": step["end_ns"], "peak_event": step["peak_event"], "peak_ns": step["peak_t_ns"],
                                "enter": step["enter"]["allocated"], "exit": step["end_allocated"], **step["peak"]})


def check_phases(run, number, device):
    rows = run.rows("SELECT p.*, m.* FROM phases p JOIN phase_memory m USING(phase) WHERE device = :device"
                    " ORDER BY phase", device=number)
    run.equal(f"device {number} phases", len(rows), len(device["phases"]))
    for row, phase in zip(rows, device["phases"]):
        found = {name: row[name] for name in ("path", "name", "step", "thread", "begin_ns", "end_ns", "begin_event",
                                              "end_event", "source", "allocations", "frees")}
        found |= {"framework": row["is_framework"], "enter": row["enter_allocated_bytes"],
                  "exit": row["exit_allocated_bytes"], **levels_of(row, "peak_")}
        wanted = {name: phase[name] for name in found if name in phase}
        wanted |= {"framework": int(phase["framework"]), "enter": phase["enter"]["allocated"],
                   "exit": phase["exit"]["allocated"], **phase["peak"]}
        run.equal(f"device {number} phase {row['phase']}", found, wanted)


def check_instants(run, number, device):
    rows = run.rows("SELECT * FROM instants WHERE device = :device ORDER BY instant", device=number)
    run.equal(f"device {number} instants", len(rows), len(device["instants"]) + 1)
    for row, instant in zip(rows, device["instants"]):
        what = f"device {number} instant {instant['kind']} {instant['event']}"
        run.equal(what, {name: row[name] for name in ("kind", "event", "t_ns", "step")},
                  {name: instant[name] for name in ("kind", "event", "t_ns", "step")})
        run.equal(what, levels_of(row), instant["bytes"])
        run.equal(f"{what} phase", phase_path(run, row["phase"]), instant["phase"])
    run.equal(f"device {number} end", levels_of(rows[-1]), device["summary"]["end"])
    run.equal(f"device {number} last instant", rows[-1]["kind"], "end")
    for row in run.rows("SELECT i.event, i.kind, i.allocated_bytes, (SELECT sum(bytes) FROM live l WHERE l.instant ="
                        " i.instant) AS live_bytes FROM instants i WHERE device = :device", device=number):
        run.equal(f"device {number} live at {row['kind']} {row['event']}", row["live_bytes"] or 0, row["allocated_bytes"])


def live_of(run, number, event):
    parameters = {"device": number, "event": event}
    return {"allocated": run.one(f"SELECT sum(bytes) {LIVE}", **parameters),
            "waiting": run.one(f"SELECT sum(bytes) {WAITING}", **parameters),
            "requested": run.one(f"SELECT sum(requested_bytes) {LIVE}", **parameters)
            + run.one(f"SELECT sum(requested_bytes) {WAITING}", **parameters)}


def check_levels(run, number, device):
    """Every row is a state that existed, and the largest rows are the peaks."""
    rows = run.rows("SELECT * FROM levels WHERE device = :device ORDER BY rowid", device=number)
    summary, what = device["summary"], f"device {number} levels"
    for name in LEVELS:
        peak, column = summary[f"{name}_peak"], f"{name}_max_bytes" if name == "reserved" else f"{name}_bytes"
        run.equal(f"{what} {name}", max((row[column] for row in rows), default=0), peak["bytes"])
        at_peak = [row for row in rows if row["event"] == peak["event"]]
        run.equal(f"{what} at the {name} peak", [row["allocated_bytes"] for row in at_peak],
                  [peak["then"]["allocated"]] if peak["bytes"] else [])
    run.equal(f"{what} order", [row["event"] for row in rows], sorted(row["event"] for row in rows))
    run.equal(f"{what} events", len({row["event"] for row in rows}), len(rows))
    for row in rows[::max(1, len(rows) // 100)]:
        found = live_of(run, number, row["event"])
        run.equal(f"{what} {row['event']}", found, {"allocated": row["allocated_bytes"], "requested": row["requested_bytes"],
                                                    "waiting": row["active_bytes"] - row["allocated_bytes"]})


def check_segments(run, number, device):
    peak = device["summary"]["reserved_peak"]
    if run.has_segments:
        alive = run.one("SELECT sum(bytes) FROM segments WHERE device = :device AND birth_event <= :event"
                        " AND (free_event IS NULL OR free_event > :event)", device=number, event=peak["event"])
        run.equal(f"device {number} segments at the reserved peak", alive, peak["bytes"])
        end = run.one("SELECT sum(bytes) FROM segments WHERE device = :device AND free_event IS NULL", device=number)
        run.equal(f"device {number} segments at the end", end, device["summary"]["end"]["reserved"])
    else:
        run.equal(f"device {number} segments", run.one("SELECT count(*) FROM segments WHERE device = :device", device=number), 0)


def check_waiting(run, number, device):
    peak = device["summary"]["active_peak"]
    run.equal(f"device {number} waiting at the active peak", live_of(run, number, peak["event"])["waiting"],
              peak["then"]["active"] - peak["then"]["allocated"])


def check_ooms(run, number, device):
    rows = run.rows("SELECT * FROM ooms WHERE device = :device ORDER BY event", device=number)
    run.equal(f"device {number} ooms", len(rows), len(device["ooms"]))
    for row, oom in zip(rows, device["ooms"]):
        what = f"device {number} oom {oom['event']}"
        for name in ("event", "t_ns", "request_bytes", "device_free_bytes", "step"):
            run.equal(f"{what} {name}", row[name], oom[name])
        run.equal(f"{what} then", levels_of(row), oom["then"])
        run.equal(f"{what} fatal", row["is_fatal"], int(oom["fatal"]))
        run.equal(f"{what} phase", phase_path(run, row["phase"]), oom["phase"])
        frames = run.one("SELECT count(*) FROM stack_frames WHERE stack = :stack", stack=row["stack"])
        run.equal(f"{what} frames", frames, len(oom["stack"]))


def check_findings(run, number, device):
    rows = run.rows("SELECT * FROM findings WHERE device = :device ORDER BY rowid", device=number)
    run.equal(f"device {number} findings", [row["finding"] for row in rows], [row["id"] for row in device["findings"]])
    for row, finding in zip(rows, device["findings"]):
        for name in ("severity", "bytes", "bytes_per_step", "title", "advice", "cost", "saving", "saves_bytes", "proved_by"):
            run.equal(f"device {number} finding {finding['id']} {name}", row[name], finding[name])
        run.equal(f"device {number} finding {finding['id']} evidence", row["evidence"] or "", "\n".join(finding["evidence"]))


def check_driver(run):
    for driver in run.report.get("driver", ()):
        names = ("library", "what", "call", "site", "communicator")
        owners = collections.Counter()
        for owner in driver["owners"]:
            owners[tuple(owner[name] for name in names)] += owner["bytes"]
        run.equal(f"driver {driver['device']}", run.sums(
            f"SELECT {', '.join(names)}, sum(bytes) FROM driver WHERE device = :device GROUP BY 1, 2, 3, 4, 5",
            device=driver["device"]), owners)


def events_to_ask(run, number, device):
    """Peaks of phases, and one event that only the name of the file decides; none without a history."""
    if not device["summary"]["events"]:
        return []
    events = [instant["event"] for instant in device["instants"] if instant["kind"] in ("phase_peak", "phase_end")]
    first, last = run.rows("SELECT min(event), max(event) FROM events WHERE device = :device", device=number)[0]
    return [*events[:2], first + zlib.crc32(run.name.encode()) % (last - first + 1)]


def check_live(run):
    """Sites and roles at other instants: `memtrace live`."""
    ask = {at: None for at in ("peak", "reserved-peak", "end")}
    if any(device["ooms"] for device in run.devices.values()):
        ask["oom"] = None
    for number, device in run.devices.items():
        ask |= {str(event): number for event in events_to_ask(run, number, device)}
    for at, only in ask.items():
        for by, column in (("site", "site, phase_name"), ("role", "role, 0"), ("tag", "coalesce(tag, 'no tag'), 0")):
            for answer in run.json("live", "--at", at, "--by", by)["devices"]:
                if not answer["missing"] and only in (None, answer["device"]):
                    check_answer(run, f"live --at {at} --by {by}", column, answer)


def check_answer(run, what, columns, answer):
    number, event, rows = answer["device"], answer["instant"]["event"], collections.Counter()
    for row in answer["rows"]:
        key = row["group"], row["phase"] if columns.startswith("site") else 0
        rows[key] += row["bytes"]
    what = f"device {number} {what}"
    run.equal(what, run.sums(f"SELECT {columns}, sum(bytes) {LIVE} GROUP BY 1, 2", device=number, event=event), rows)
    found, waiting = live_of(run, number, event), answer["waiting"]
    run.equal(f"{what} levels", found, {"allocated": answer["bytes"]["allocated"], "waiting": waiting["bytes"],
                                        "requested": answer["bytes"]["requested"]})


def check_lines(run):
    """Bytes that were allocated below each line, without those of threads that autograd ran for it."""
    for number, device in run.lines.items():
        total = run.one("SELECT sum(bytes) FROM blocks WHERE device = :device AND NOT is_initial", device=number)
        run.equal(f"device {number} lines: all bytes", total, device["allocated_bytes"])
        lines = {(function["function"], function["file"], line["line"]): line["allocated_bytes"] - line["engine_bytes"]
                 for function in device["functions"] for line in function["lines"]}
        found = run.sums("WITH frames AS (SELECT DISTINCT stack, function, file, coalesce(line, 0) AS line FROM"
                         " stack_frames WHERE stack IN (SELECT stack FROM origins)) SELECT function, file, line, sum(bytes)"
                         " FROM blocks JOIN frames USING(stack) WHERE device = :device AND NOT is_initial"
                         " GROUP BY 1, 2, 3", device=number)
        run.equal(f"device {number} lines", found, lines)


def check_dump(run):
    """Every event of the framework, once."""
    heaps = {row[0] for row in run.rows("SELECT DISTINCT heap FROM origins")}
    found = {row["event"]: (row["device"], row["t_ns"], row["kind"], row["address"] & (1 << 64) - 1, row["bytes"],
                            row["stack"], row["handle"] & (1 << 64) - 1)
             for row in run.rows("SELECT e.*, handle FROM events e JOIN streams USING(stream)")}
    events = {}
    for line in output(run.program, "dump", "--quiet", "--json", run.path).splitlines():
        event = json.loads(line)
        if event["heap"] in heaps and event["kind"] in KINDS:
            events[event["seq"]] = tuple(event[name] for name in ("device", "t_ns", "kind", "addr", "size", "stack", "stream"))
    run.equal("dump", found, events)
    run.equal("dump: every event once", run.one("SELECT count(*) FROM events"), len(events))


def check_pt_snap(run, number, device):
    """Queries in the schema that pt-snap documents: peaks, what is never freed, blocks with their events, stacks."""
    trace, block, summary = f"trace_entry_{number}", f"block_{number}", device["summary"]
    for name in ("allocated", "active", "reserved"):
        peak, start = summary[f"{name}_peak"], summary["start"][name]
        found = run.one(f"SELECT max({name}) FROM {trace} WHERE id >= 0")
        run.equal(f"{trace} {name}", max(found, start), peak["bytes"])
        if found > start:
            then = run.one(f"SELECT {name} FROM {trace} WHERE id = :event", event=peak["event"])
            run.equal(f"{trace} {name} at its peak", then, peak["bytes"])
    run.equal(f"{block} live", run.one(f"SELECT sum(size) FROM {block} WHERE freeEventId IS NULL OR freeEventId < 0"),
              summary["end"]["active"])
    run.equal(f"{block} allocations", run.one(f"SELECT count(*) FROM {block} b JOIN {trace} t ON t.id = b.allocEventId"
                                              " AND t.action = 4 AND t.address = b.address AND t.size = b.requestedSize"
                                              " WHERE b.id = b.allocEventId"), summary["allocations"])
    run.equal(f"{block} older", run.one(f"SELECT sum(size) FROM {block} WHERE id < 0 AND allocEventId = -1"),
              run.one("SELECT sum(bytes) FROM blocks WHERE device = :device AND is_initial", device=number))
    lines = run.rows(f"SELECT callstack, depth, site FROM {trace} JOIN events ON event = id LEFT JOIN stacks USING(stack)"
                     " WHERE device = :device ORDER BY id LIMIT 50", device=number)
    run.equal(f"{trace} callstack", [row["callstack"] and len(row["callstack"].split("\n")) for row in lines],
              [row["depth"] for row in lines])
    run.equal(f"{trace} action", run.sums("SELECT key, count(*) FROM dictionary JOIN " + trace + " ON value = action"
                                          " WHERE \"table\" = :name AND id >= 0 GROUP BY 1", name=trace),
              run.sums("SELECT kind, count(*) FROM events JOIN devices USING(device) WHERE device = :device AND"
                       " event >= first_event AND kind NOT IN ('oom', 'alloc_failed') GROUP BY 1", device=number))


def check(arguments):
    program, path, folder = arguments
    run = Run(program, path, folder)
    for number, device in run.devices.items():
        for part in (check_device, check_peaks, check_peak_roles, check_modules, check_steps, check_phases, check_instants,
                     check_levels, check_segments, check_waiting, check_ooms, check_findings, check_pt_snap):
            part(run, number, device)
    for part in (check_driver, check_live, check_lines, check_dump, check_questions):
        part(run)
    run.equal("devices", run.one("SELECT count(*) FROM devices"), len(run.devices))
    run.connection.close()
    run.database.unlink()
    return run.name, run.wrong


def inputs(fixtures):
    paths = [fixtures / "captures" / f"{name}.pickle.zst" for name in CAPTURES]
    paths += [fixtures / "recorded" / f"{name}.trace.zst" for name in RECORDED]
    return paths + [fixtures / name for name in OTHERS]


def main():
    program, fixtures, *names = sys.argv[1:]
    paths, status = inputs(pathlib.Path(fixtures)), 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        wanted = [(fast_program(program), path, folder) for path in paths
                  if not names or path.name.split(".")[0] in names]
        for name, wrong in pool.map(check, wanted):
            for line in wrong[:100]:
                print(f"{name}: {line}")
            status |= bool(wrong)
    print(f"{len(wanted)} recordings")
    sys.exit(status)


if __name__ == "__main__":
    main()
