#!/usr/bin/env python3
"""check_job_database.py PROGRAM WRITE_JOB FIXTURES: `export sqlite` of jobs against `fleet --json`.

Ranks, their peaks and needs, what holds their memory by site and role, their steps and their sums are
the same to the byte, for a simulated job of 24 ranks and for the recorded ones. What cannot be read is reported."""
import collections
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile


def fleet_of(program, job):
    done = subprocess.run([program, "fleet", job, "--json", "--all", "-q"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


def open_database(program, job, path):
    subprocess.run([program, "export", "sqlite", job, "-o", path, "-q"], check=True)
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def check_ranks(rows, database):
    wanted = [(row["rank"], row["device"], row["host"], row["trace"], row["outcome"],
               row["allocated_peak_bytes"], row["reserved_peak_bytes"], row["needed_bytes"],
               int(row["needed_is_exact"]), row["growth_bytes_per_step"]) for row in rows]
    found = database.execute(
        "SELECT rank, device, host, trace, outcome, allocated_peak_bytes, reserved_peak_bytes, needed_bytes,"
        " needed_is_exact, growth_bytes_per_step FROM ranks ORDER BY row").fetchall()
    assert sorted(wanted, key=str) == sorted(found, key=str), (wanted[0], found[0])


def check_holders(sites, database):
    open_sums = database.execute(
        "SELECT count(*) FROM ranks r WHERE allocated_peak_bytes !="
        " (SELECT sum(bytes) FROM rank_holders h WHERE h.row = r.row)").fetchone()
    assert open_sums == (0,), open_sums
    named = collections.Counter((row["site"], row["role"]) for row in sites)
    found = {(site, role): (ranks, most) for site, role, ranks, most in database.execute(
        "SELECT site, role, count(*), max(bytes) FROM (SELECT row, site, role, sum(bytes) AS bytes"
        " FROM rank_holders GROUP BY row, site, role) GROUP BY site, role")}
    for row in sites:
        key = (row["site"], row["role"])
        if named[key] == 1 and row["site"]:
            assert found[key] == (row["ranks"], row["max_bytes"]), (row, found[key])
    return sum(count == 1 for count in named.values())


def check_steps(steps, database):
    for step in steps:
        found = database.execute(
            "SELECT count(DISTINCT row), max(reserved_peak_bytes), max(allocated_peak_bytes) FROM rank_steps"
            " WHERE first_step <= ? AND last_step >= ?", (step["first"], step["last"])).fetchone()
        assert found == (step["ranks"], step["reserved_max_bytes"], step["allocated_max_bytes"]), (step, found)


def check(program, job, path):
    report = fleet_of(program, job)
    database = open_database(program, job, path)
    check_ranks(report["ranks"], database)
    sites = check_holders(report["sites"], database)
    check_steps(report["steps"], database)
    peak = database.execute("SELECT max(reserved_peak_bytes), sum(reserved_peak_bytes) FROM ranks").fetchone()
    assert peak[0] == report["reserved_peak"]["max_bytes"], peak
    print(f"{pathlib.Path(job).name}: {len(report['ranks'])} ranks, {sites} sites, {len(report['steps'])} steps")
    database.close()


def export(program, folder, *words, status):
    done = subprocess.run([program, "export", "sqlite", folder, "-o", folder / "job.db", *words], capture_output=True,
                          text=True, check=False)
    assert done.returncode == status, done
    return done.stderr


def check_faults(program, jobs, folder):
    """Files that cannot be read, several jobs in a folder, and an option that does not apply."""
    shutil.copytree(jobs / "share", folder)
    assert "--events applies to one recording" in export(program, folder, "--events", status=2)
    (folder / "broken.trace.zst").write_bytes(b"no trace")
    assert "broken.trace.zst': neither" in export(program, folder, status=3)
    done = subprocess.run([program, "sql", folder / "job.db", "SELECT count(*) AS ranks FROM ranks", "--csv"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "ranks\n2\n") and "is damaged" in done.stderr, done
    (folder / "job.db").unlink()
    shutil.copytree(jobs / "oom", folder / "oom")
    text = export(program, folder, status=2)
    assert "there are 2 jobs: name a folder or a summary with only one job\n" in text, text
    assert not (folder / "job.db").exists()


def main():
    program, writer, fixtures = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = folder / "made"
        made.mkdir()
        subprocess.run([writer, "2", "4", "3", "5", made, "leak=7", "die=20", "logs=3"], check=True)
        jobs = [made] + [pathlib.Path(fixtures) / "jobs" / each
                         for each in ("ddp", "ddp_leak", "fsdp2_gather", "oom", "pipeline4", "share")]
        for number, job in enumerate(jobs):
            check(program, job, folder / f"{number}.db")
        check_faults(program, pathlib.Path(fixtures) / "jobs", folder / "faults")


if __name__ == "__main__":
    main()
