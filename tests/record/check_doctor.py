#!/usr/bin/env python3
"""check_doctor.py BUILD [CASE...]: each source that is there, missing, taken or
broken has its word, and nothing breaks the doctor."""
import json
import pathlib
import shutil
import sys
import tempfile

from support import check, main


def ask(bench, library_path=None, **environment):
    """{name: check}, and the status."""
    if library_path is not None:
        environment["LD_LIBRARY_PATH"] = str(library_path)
    done = bench.run(bench.memtrace, "doctor", "--json",
                     environment=bench.environment(**environment))
    check(not done.stderr, f"{done.stderr}")
    document = json.loads(done.stdout)
    check(document["schema"] == "memtrace.doctor/1", "the schema")
    checks = {entry["name"]: entry for entry in document["checks"]}
    missing = any(entry["state"] == "missing" for entry in checks.values())
    check(done.returncode == int(missing), f"{done.returncode}: {checks}")
    bench.check_left()
    return checks


def states(checks, *names):
    return [checks[name]["state"] for name in names]


def all_there(bench):
    checks = ask(bench)
    check(states(checks, "collector", "driver", "cupti", "nvtx", "native", "tape") == ["ok"] * 6, f"{checks}")
    # The Python that doctor starts cannot load what needs the runtime of ThreadSanitizer.
    check(bench.preload or checks["python"]["state"] == "ok", f"{checks}")
    check("80.0 GiB" in checks["driver"]["text"] and "13.0" in checks["cupti"]["text"], f"{checks}")


def library_in_a_folder_with_a_colon(bench):
    """LD_PRELOAD cannot name it: another place helps, to install it again does not."""
    with tempfile.TemporaryDirectory(prefix="a:colon ") as folder:
        library = pathlib.Path(folder, "libmemtrace-inject.so")
        shutil.copyfile(bench.build / library.name, library)
        entry = ask(bench, MEMTRACE_INJECT=str(library))["collector"]
    check(entry["state"] == "missing" and "colons" in entry["mend"], f"{entry}")
    entry = ask(bench, MEMTRACE_INJECT="/nowhere/library.so")["collector"]
    check("reinstall memtrace" in entry["mend"], f"{entry}")


def no_driver(bench):
    checks = ask(bench, library_path="/nowhere")
    check(states(checks, "collector", "driver", "cupti", "nvtx") == ["ok", "missing", "missing",
                                                                     "ok"], f"{checks}")
    check("--gpus" in checks["driver"]["mend"], f"{checks}")


def cupti_in_trouble(bench):
    for environment, words in (({"MEMTRACE_SIMULATED_CUPTI_HOLDER": "Nsight"}, "Nsight uses CUPTI"),
                               ({"MEMTRACE_SIMULATED_CUPTI_ERROR": "15"}, "newer than the driver"),
                               ({"MEMTRACE_SIMULATED_CUPTI_ERROR": "35"}, "returns an error"),
                               ({"MEMTRACE_CUPTI": "none"}, "no libcupti"),
                               ({"MEMTRACE_CUPTI": "/nowhere/libcupti.so"}, "no libcupti")):
        entry = ask(bench, **environment)["cupti"]
        check(entry["state"] == "degraded" and words in entry["text"], f"{environment}: {entry}")


def broken_libraries(bench):
    """A library that is none, and one that kills the process that loads it."""
    folder = bench.work / "libraries"
    for content in (b"no library", None):
        folder.mkdir()
        library = folder / "libcuda.so.1"
        if content:
            library.write_bytes(content)
        else:
            library.symlink_to(bench.build / "tests" / "deadly.so")
        environment = bench.environment(LD_LIBRARY_PATH=str(folder))
        done = bench.run(bench.memtrace, "doctor", "--json", environment=environment)
        driver = json.loads(done.stdout)["checks"][1]
        check(done.returncode == 1 and driver["name"] == "driver" and driver["state"] == "missing",
              f"{driver}")
        check(content or "signal 6" in driver["text"], f"{driver}")
        library.unlink()
        folder.rmdir()


def other_pythons(bench):
    """One whose frames are not as expected, and none."""
    folder = bench.work / "bin"
    folder.mkdir()
    (folder / "python3").write_text('#!/bin/sh\ncase $2 in *platform.python_version*) echo '
                                    'PyPy 3.10;; esac\n')
    (folder / "python3").chmod(0o755)
    for path, words in ((f"{folder}:/bin:/usr/bin", "PyPy 3.10: its frames cannot be read"),
                        ("/nowhere", "python3 is not in PATH")):
        environment = bench.environment(PATH=path)
        done = bench.run(bench.memtrace, "doctor", "--json", environment=environment)
        entry = {one["name"]: one for one in json.loads(done.stdout)["checks"]}["python"]
        check(entry["state"] == "degraded" and words in entry["text"], f"{entry}")


def text(bench):
    done = bench.run(bench.memtrace, "doctor", environment=bench.environment(LD_LIBRARY_PATH=""))
    lines = done.stdout.decode().splitlines()
    check(lines[0].startswith("collector  ok "), lines[0])
    check(any("->" in line for line in lines), f"{lines}")
    done = bench.run(bench.memtrace, "doctor", cwd="/proc")
    check(done.returncode == 1 and b"tape       missing" in done.stdout, f"{done}")


if __name__ == "__main__":
    sys.exit(main([all_there, library_in_a_folder_with_a_colon, no_driver, cupti_in_trouble, broken_libraries, other_pythons, text]))
