"""The questions of cli/database/questions, compared with the commands that answer the same: for check_database.py."""
import collections
import pathlib

QUESTIONS = pathlib.Path(__file__).resolve().parents[2] / "cli" / "database" / "questions"
EVERY = 1 << 62


def statement_of(name):
    """(SQL, defaults): "-- :rows 20 ..." gives the parameter :rows a default."""
    sql, defaults = (QUESTIONS / f"{name}.sql").read_text(encoding="utf-8"), {}
    for line in sql.splitlines():
        if line.startswith("-- :"):
            parameter, value = line.split()[1:3]
            defaults[parameter[1:]] = None if value == "null" else int(value)
    return sql, defaults


def ask(run, name, **parameters):
    sql, defaults = statement_of(name)
    unknown = set(parameters) - set(defaults)
    assert not unknown, f"{name}.sql has no parameter {unknown}"
    run.rows(sql, **defaults)  # on its defaults
    return run.rows(sql, **defaults | parameters)


def sums(rows, *names):
    """{the other columns of NAMES: sum of the last one}"""
    found = collections.Counter()
    for row in rows:
        found[tuple(row[name] for name in names[:-1])] += row[names[-1]] or 0
    return {key: size for key, size in found.items() if size}


def peak(run):
    rows = ask(run, "peak")
    return {(row["device"], row["size"]): row["bytes"] for row in rows}, {
        (number, size): device["summary"][f"{size}_peak"]["bytes"] for number, device in run.devices.items()
        for size in ("requested", "allocated", "active", "reserved")}


def of_peak(run, part):
    return {(number,): device["summary"]["allocated_peak"]["bytes"] for number, device in run.devices.items()} if not part else {
        (number, *key): size for number, device in run.devices.items() for key, size in part(device) if size}


def largest(run):
    return sums(ask(run, "largest", rows=EVERY), "device", "bytes"), of_peak(run, None)


def by_role(run):
    return sums(ask(run, "by-role"), "device", "role", "bytes"), of_peak(
        run, lambda device: (((role,), size) for role, size in device["peak_roles"].items()))


def by_site(run):
    def sites(device):
        found = collections.Counter()
        for site in device["peak_sites"]:
            found[site["site"], site["phase"]] += site["bytes"]
        return found.items()
    return sums(ask(run, "by-site", rows=EVERY), "device", "site", "phase", "bytes"), of_peak(run, sites)


def by_module(run):
    def modules(device):
        for row in device["modules"]["rows"] if device["modules"] else ():
            name = row["path"] if row["layer"] is None else f"{row['path']}[{row['layer']}]"
            yield (name, "all"), row["bytes"]
            yield (name, "gradients"), row["roles"].get("gradients", 0)
    rows = ask(run, "by-module")
    found = {(row["device"], row["module"], what): row[column] for row in rows
             for what, column in (("all", "bytes"), ("gradients", "gradient_bytes")) if row[column]}
    return found, of_peak(run, modules)


def by_phase(run):
    expected = collections.Counter()
    for number, device in run.devices.items():
        for phase in device["phases"]:
            key = number, phase["path"]
            expected[*key, "peak"] = max(expected[*key, "peak"], phase["peak"]["allocated"])
            expected[*key, "left"] += phase["exit"]["allocated"] - phase["enter"]["allocated"]
            expected[*key, "allocations"] += phase["allocations"]
    found = {(row["device"], row["phase"], what): row[column] for row in ask(run, "by-phase")
             for what, column in (("peak", "peak_allocated_bytes"), ("left", "left_bytes"), ("allocations", "allocations"))}
    return found, dict(expected)


def by_step(run):
    names = ("step", "peak_allocated_bytes", "peak_reserved_bytes", "exit_allocated_bytes", "peak_event")
    return [tuple(row[name] for name in ("device", *names)) for row in ask(run, "by-step")], [
        (number, step["step"], step["peak"]["allocated"], step["peak"]["reserved"], step["end_allocated"], step["peak_event"])
        for number, device in run.devices.items() for step in device["steps"]]


def by_pool(run):
    rows, then = ask(run, "by-pool"), {number: device["summary"]["reserved_peak"]["then"] for number, device in run.devices.items()}
    names = ("reserved", "allocated") if run.has_segments else ("allocated",)
    return {name: sums(rows, "device", f"{name}_bytes") for name in names}, {
        name: {(number,): levels[name] for number, levels in then.items() if levels[name]} for name in names}


def at(run):
    """At the peak, and at two thirds of it if the recording has a history."""
    found, expected = {"peak": sums(ask(run, "at", rows=EVERY), "device", "bytes")}, {"peak": of_peak(run, None)}
    event = max(device["summary"]["allocated_peak"]["event"] for device in run.devices.values()) * 2 // 3
    if any(device["summary"]["events"] for device in run.devices.values()):
        found["event"] = sums(ask(run, "at", rows=EVERY, event=event), "device", "site", "bytes")
        expected["event"] = collections.Counter()
        for device in run.json("live", "--at", str(event), "--by", "site")["devices"]:
            for row in device.get("rows", ()):
                expected["event"][device["device"], row["group"]] += row["bytes"]
    return found, expected


def leak(run):
    """What is live at the end and belongs to no step is the rest."""
    expected = {}
    for number, device in run.devices.items():
        rest = run.one("SELECT sum(bytes) FROM blocks WHERE device = :device AND free_event IS NULL AND step IS NULL", device=number)
        if device["summary"]["end"]["allocated"] - rest:
            expected[number,] = device["summary"]["end"]["allocated"] - rest
    return sums(ask(run, "leak", steps=1, rows=EVERY), "device", "bytes"), expected


def survivors(run):
    """A step changes memory by what it leaves and by what it frees of others."""
    found, expected = {}, {}
    for number, device in run.devices.items():
        steps = run.rows("SELECT * FROM steps WHERE device = :device", device=number)
        counts = collections.Counter(row["step"] for row in steps)
        for row in (row for row in steps[:4] if counts[row["step"]] == 1):
            freed = run.one("SELECT sum(bytes) FROM blocks WHERE device = :device AND birth_event < :begin"
                            " AND free_event BETWEEN :begin AND :end", device=number, begin=row["begin_event"], end=row["end_event"])
            left = sums(ask(run, "survivors", step=row["step"], rows=EVERY), "device", "bytes").get((number,), 0)
            found[number, row["step"]] = left - freed
            expected[number, row["step"]] = row["exit_allocated_bytes"] - row["enter_allocated_bytes"]
    return found, expected


def allocated_in(run):
    """The requests in an interval of the events."""
    first, last = run.rows("SELECT min(event), max(event) FROM events")[0]
    middle = first + (last - first) // 3, first + (last - first) // 2
    found = sums(ask(run, "allocated-in", rows=EVERY, **{"from": middle[0], "to": middle[1]}), "device", "requested_bytes")
    expected = run.sums("SELECT device, sum(bytes) FROM events WHERE kind = 'alloc' AND event BETWEEN :first AND :last"
                        " AND event NOT IN (SELECT birth_event FROM blocks WHERE is_initial) GROUP BY 1", first=middle[0], last=middle[1])
    return found, {(device,): size for device, size in expected.items() if size}


def churn(run):
    return sums(ask(run, "churn", rows=EVERY), "device", "bytes"), run.allocated


def short_lived(run):
    """With every length of life: all blocks, without those that are live at the end."""
    live = run.sums("SELECT device, sum(bytes) FROM blocks WHERE free_event IS NULL AND NOT is_initial GROUP BY 1")
    found = collections.Counter(sums(ask(run, "short-lived", rows=EVERY, events=EVERY), "device", "bytes"))
    found.update({(device,): size for device, size in live.items()})
    return dict(found), run.allocated


def waiting(run):
    expected = {}
    for number, device in run.devices.items():
        peak = device["summary"]["active_peak"]["then"]
        if peak["active"] - peak["allocated"]:
            expected[number,] = peak["active"] - peak["allocated"]
    return sums(ask(run, "waiting", rows=EVERY), "device", "bytes"), expected


def fragmentation(run):
    rows, expected = ask(run, "fragmentation", rows=EVERY), {}
    for number, device in run.devices.items() if run.has_segments else ():
        peak = device["summary"]["reserved_peak"]["then"]
        expected |= {("bytes", number): peak["reserved"], ("unused_bytes", number): peak["reserved"] - peak["active"]}
    found = {(name, *key): size for name in ("bytes", "unused_bytes") for key, size in sums(rows, "device", name).items()}
    least = min((row["unused_bytes"] for row in rows), default=0)
    return {**found, "least": min(least, 0)}, {**{key: size for key, size in expected.items() if size}, "least": 0}


def oom(run):
    return sums(ask(run, "oom", rows=EVERY), "device", "event", "bytes"), {
        (number, oom["event"]): oom["then"]["allocated"] for number, device in run.devices.items() for oom in device["ooms"]
        if oom["then"]["allocated"]}


def outside(run):
    expected = collections.Counter()
    for driver in run.report.get("driver", ()):
        for owner in driver["owners"]:
            expected[driver["device"], owner["library"]] += owner["bytes"]
    return sums(ask(run, "outside"), "device", "library", "bytes"), {key: size for key, size in expected.items() if size}


def findings(run):
    return [(row["device"], row["finding"], row["saves_bytes"]) for row in ask(run, "findings")], [
        (number, finding["id"], finding["saves_bytes"]) for number, device in run.devices.items() for finding in device["findings"]]


def timeline(run):
    found = collections.Counter()
    for row in ask(run, "timeline"):
        for size, column in (("allocated", "allocated_bytes"), ("reserved", "reserved_max_bytes"), ("active", "active_bytes")):
            found[row["device"], size] = max(found[row["device"], size], row[column])
    return dict(found), {(number, size): device["summary"][f"{size}_peak"]["bytes"] for number, device in run.devices.items()
                         for size in ("allocated", "reserved", "active") if device["summary"][f"{size}_peak"]["bytes"]}


CHECKS = {check.__name__.replace("_", "-"): check for check in (
    allocated_in, at, by_module, by_phase, by_pool, by_role, by_site, by_step, churn, findings, fragmentation, largest, leak,
    oom, outside, peak, short_lived, survivors, timeline, waiting)}


def check_questions(run):
    """Every question has a check."""
    for path in sorted(QUESTIONS.glob("*.sql")):
        found, expected = CHECKS[path.stem](run)
        run.equal(f"question {path.stem}", found, expected)
