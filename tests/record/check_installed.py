#!/usr/bin/env python3
"""check_installed.py BUILD [CASE...]: the program works where `cmake --install` puts it, and nothing is put elsewhere."""
import sys

from support import check, main


def install(bench):
    """The installed program. DESTDIR keeps even a wrong absolute path inside of the test's folder."""
    done = bench.run("cmake", "--install", bench.build, "--prefix", "/usr/local",
                     environment=bench.environment(DESTDIR=str(bench.work / "root")))
    check(done.returncode == 0, f"{done}")
    places = sorted(str(path.relative_to(bench.work)) for path in (bench.work / "root").iterdir())
    check(places == ["root/usr"], f"files are outside of the prefix: {places}")
    return str(bench.work / "root" / "usr" / "local" / "bin" / "memtrace")


def commands_find_their_parts(bench):
    memtrace = install(bench)
    done = bench.run(memtrace, "record", "-q", "-o", "r.trace.zst", "--", bench.recorded, "exit", "0")
    check(done.returncode == 0 and (bench.work / "r.trace.zst").exists(), f"{done}")
    done = bench.run(memtrace, "dry-run", "-q", "-o", "d.trace.zst", "--", bench.recorded, "exit", "0",
                     environment=bench.environment(MEMTRACE_DRY_RUN_SITE="own"))
    check(done.returncode == 0 and done.stdout.startswith(b"Dry run on a simulated H200"), f"{done}")


if __name__ == "__main__":
    sys.exit(main([commands_find_their_parts]))
