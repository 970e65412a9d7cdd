#!/usr/bin/env python3
"""check_identity.py BUILD [CASE...]: who a rank is and how it ended, in the header of its trace as
the independent decoder reads it, and as `memtrace info` shows it."""
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time

from support import check, command_of, main, only

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import trace_decoder  # pylint: disable=wrong-import-position

UUID = "GPU-5d000000-0000-0000-0000-0000000000{:02x}"
LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_", "TORCHELASTIC_", "OMPI_", "PMI_", "PMIX_", "RAY_",
             "LSB_", "PBS_", "MV2_", "NODE_RANK")


def environment(bench, **more):
    kept = bench.environment(**more)
    return {name: value for name, value in kept.items() if name in more or not name.startswith(LAUNCHERS)}


def recorded(bench, *words, **variables):
    done = bench.record(bench.recorded, *words, environment=environment(bench, **variables))
    for trace in bench.work.glob("run-rank*.trace.zst"):
        trace.rename(bench.work / "run.trace.zst")
    return done, trace_decoder.read_header(bench.work / "run.trace.zst")


def identity(bench, trace="run.trace.zst"):
    return bench.info(trace)["identity"]


def known_from_the_start(bench):
    """Job, place and machine: the launcher's variables, the kernel, the driver."""
    before = time.time_ns()
    _, header = recorded(bench, "exit", "0", RANK="5", LOCAL_RANK="1", WORLD_SIZE="8", SLURM_JOB_ID="77",
                         TORCHELASTIC_RESTART_COUNT="2", MEMTRACE_MESH="pp=1/2,dp=1/4")
    wanted = {"rank": "5", "local_rank": "1", "world_size": "8", "restart": "2", "job": "slurm:77",
              "mesh": "pp=1/2,dp=1/4", "device.0.uuid": UUID.format(0), "device.0.pci": "0000:01:00.0",
              "ended": "exit:0",
              "boot_id": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()}
    found = {key: header.get(key) for key in wanted}
    check(found == wanted, f"{found}")
    check("device.0.mig" not in header, f"{header}")
    check(before <= int(header["ended_t_ns"]) <= time.time_ns(), f"{header}")
    shown = identity(bench)
    check([shown[key] for key in ("job", "rank", "rank_origin", "local_rank", "world_size", "restart", "ended")]
          == ["slurm:77", 5, "recorded", 1, 8, 2, "exit:0"], f"{shown}")
    check(shown["mesh"] == [{"axis": "pp", "coordinate": 1, "size": 2}, {"axis": "dp", "coordinate": 1, "size": 4}],
          f"{shown}")
    check(shown["devices"] == [{"device": 0, "uuid": UUID.format(0), "pci": "0000:01:00.0", "mig": None}], f"{shown}")
    text = bench.run(bench.memtrace, "info", "run.trace.zst").stdout.decode()
    for line in ("  job         slurm:77\n", "  rank        5 of 8, local rank 1, restart 2\n",
                 "  mesh        pp=1/2,dp=1/4\n", "  ended       exit status 0\n", UUID.format(0)):
        check(line in text, f"'{line}' is not in {text}")


def nothing_is_made_up(bench):
    """Without a launcher there is no job and no rank."""
    _, header = recorded(bench, "exit", "0")
    check(not {"rank", "world_size", "local_rank", "restart", "job", "mesh"} & set(header), f"{header}")


def lightning_numbers_its_processes(bench):
    """It sets no RANK. mpi4py, which Lightning imports, makes each process a rank 0 of its own."""
    alone = {"OMPI_MCA_ess": "singleton", "PMIX_RANK": "0"}
    for variables, place in (({"NODE_RANK": "0", "LOCAL_RANK": "1", "WORLD_SIZE": "2", **alone}, ("1", "1", "2")),
                             ({"NODE_RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}, (None, None, None)),
                             ({"NODE_RANK": "0", "LOCAL_RANK": "1"}, (None, None, None)),
                             ({"NODE_RANK": "0", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "RANK": "3"}, ("3", "1", "4")),
                             (alone, (None, None, None)), ({"PMIX_RANK": "2"}, ("2", None, None))):
        _, header = recorded(bench, "exit", "0", **variables)
        found = tuple(header.get(key) for key in ("rank", "local_rank", "world_size"))
        check(found == place, f"{variables}: {found}")


def a_bad_mesh_is_left_out(bench):
    """One line says what is wrong; the recording goes on."""
    done, header = recorded(bench, "exit", "0", MEMTRACE_MESH="pp=8/8")
    said = [line for line in done.stderr.decode().splitlines() if "MEMTRACE_MESH" in line]
    check(said == ["memtrace: MEMTRACE_MESH is ignored: a coordinate is not below the size of its axis"], f"{done}")
    check("mesh" not in header and header["ended"] == "exit:0", f"{header}")


def the_program_says_its_place(bench):
    """memtrace_set_mesh, before the first event and after it: the last call counts, and more than MEMTRACE_MESH."""
    for before, after, variable, mesh in (("pp=0/2", "-", None, "pp=0/2"), ("-", "dp=3/4,tp=1/2", None,
                                                                            "dp=3/4,tp=1/2"),
                                          ("pp=0/2", "pp=1/2", None, "pp=1/2"), ("-", "tp=1/8", "tp=0/8", "tp=1/8"),
                                          ("tp=2/8", "-", "tp=0/8", "tp=2/8"), ("-", "-", "tp=0/8", "tp=0/8")):
        variables = {"MEMTRACE_MESH": variable} if variable else {}
        done, header = recorded(bench, "mesh", before, after, **variables)
        check(done.returncode == 0 and b"mesh" not in done.stderr, f"{done}")
        check(header.get("mesh") == mesh, f"{before}, {after}, {variable}: {header.get('mesh')}")


def a_wrong_place_is_refused(bench):
    """The caller learns it, one line says why, and what was known stays."""
    for wrong, why in (("tp=8/8", "a coordinate is not below the size of its axis"), ("", "it is empty")):
        done, header = recorded(bench, "mesh", "tp=1/8", wrong)
        said = [line for line in done.stderr.decode().splitlines() if "memtrace_set_mesh" in line]
        check(done.returncode == 1 and said == [f"memtrace: memtrace_set_mesh is ignored: {why}"], f"{done}")
        check(header["mesh"] == "tp=1/8", f"{header}")


def scripts_of_slurm_are_no_ranks(bench):
    """A batch script has the variables of task 0 of the requested number of tasks, and no step."""
    slurm = {"SLURM_JOB_ID": "2", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "8", "SLURM_NPROCS": "8"}
    _, header = recorded(bench, "exit", "0", **slurm)
    check(header["job"] == "slurm:2" and not {"rank", "local_rank", "world_size"} & set(header), f"{header}")
    _, header = recorded(bench, "exit", "0", SLURM_STEP_ID="0", **slurm)
    check((header["rank"], header["local_rank"], header["world_size"]) == ("0", "0", "8"), f"{header}")


def instances_have_profiles(bench):
    """A MIG instance has a UUID of its own and the name of its profile."""
    _, header = recorded(bench, "exit", "0", MEMTRACE_SIMULATED_MIG="1g.18gb")
    check(header["device.0.mig"] == "1g.18gb", f"{header}")
    check(header["device.0.uuid"] == UUID.format(0).replace("GPU-", "MIG-"), f"{header}")


def ends_of_the_command(bench):
    """What the launcher sees of the process that it started."""
    for words, ended in ((("exit", "3"), "exit:3"), (("quick", "4"), "exit:4"), (("segv",), "signal:11"),
                         (("signal", "9"), "signal:9"), (("signal", "15"), "signal:15"), (("abort",), "signal:6")):
        done, header = recorded(bench, *words)
        check(header["ended"] == ended, f"{words}: {header.get('ended')} {done}")
        check(identity(bench)["ended"] == ended, f"{words}")
        (bench.work / "run.trace.zst").unlink()


def ends_in_the_answer_for_the_job(bench):
    """Nobody ran out of memory: fleet counts the ranks that did not end in order."""
    for rank, words in enumerate((("signal", "15"), ("signal", "9"), ("exit", "3"), ("exit", "0"))):
        done = bench.run(bench.memtrace, "record", "-q", "-o", "job/", bench.recorded, *words,
                         environment=environment(bench, RANK=str(rank), WORLD_SIZE="4"))
        check(len(bench.traces(bench.work / "job")) == rank + 1, f"{done}")
    lines = bench.run(bench.memtrace, "fleet", "job").stdout.decode().splitlines()
    check("  2 ranks ended by a signal or a time-out" in lines and "  1 rank ended with an error" in lines, f"{lines}")
    one = bench.run(bench.memtrace, "fleet", only((bench.work / "job").glob("*-rank3.trace.zst")))
    check(b" ended " not in one.stdout, f"{one}")


def ends_of_others(bench):
    """A process below the command: what it says itself; killed, it leaves a tape and no word."""
    for way, ends in (("forkexec", ["exit:0", "exit:0"]), ("spawn", ["exit:0", "exit:0"])):
        done = bench.run(bench.memtrace, "record", "-o", f"{way}/", bench.recorded, way,
                         environment=environment(bench))
        traces = bench.traces(bench.work / way)
        check([trace_decoder.read_header(trace).get("ended") for trace in traces] == ends, f"{way}: {done}")
    for way in ("signal 9", "atexit"):  # the second calls exit, and dies before its trace is closed
        script = f"'{bench.recorded}' {way}; exit 5"
        done = bench.run(bench.memtrace, "record", "-o", "shell/", "sh", "-c", script, environment=environment(bench))
        trace = only(bench.traces(bench.work / "shell"))
        header = trace_decoder.read_header(trace)
        check(done.returncode == 5 and header["ended"] == "unknown" and "ended_t_ns" not in header, f"{done} {header}")
        trace.unlink()


def killed_with_the_launcher(bench):
    """memtrace recover knows that the process did not end in order, and no more."""
    process = subprocess.Popen([bench.memtrace, "record", "-o", "both.trace.zst", bench.recorded, "wait", "gone"],
                               cwd=bench.work, env=environment(bench), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    (bench.work / "gone").touch()
    child, trace = None, bench.work / "both.trace.zst"
    while not child or not trace.exists() or not trace.stat().st_size:  # empty: its header comes next
        child = command_of(process, "recorded")
        time.sleep(0.01)
    process.kill()
    process.wait(timeout=600)
    os.kill(child, signal.SIGKILL)
    end = time.monotonic() + 600
    while time.monotonic() < end:
        done = bench.run(bench.memtrace, "recover", "both.trace.zst")
        if done.returncode == 0:
            break
        time.sleep(0.05)
    header = trace_decoder.read_header(bench.work / "both.trace.zst")
    check(header["ended"] == "unknown" and header["tape_added"] == "1", f"{header}")


def redacted(bench):
    """What is equal in the traces of one recording stays equal; nothing of it can be read."""
    done = bench.run(bench.memtrace, "record", "--redact", "-o", "d/", bench.recorded, "forkexec",
                     environment=environment(bench, SLURM_JOB_ID="77", RANK="3"))
    headers = [trace_decoder.read_header(trace) for trace in bench.traces(bench.work / "d")]
    check(len(headers) == 2, f"{done}")
    for key in ("boot_id", "job", "host", "device.0.uuid"):
        values = {header[key] for header in headers}
        check(len(values) == 1 and only(values).startswith("redacted-"), f"{key}: {values}")
    check(all(header["device.0.pci"] == "0000:01:00.0" and header["ended"] == "exit:0" and header["rank"] == "3"
              for header in headers), f"{headers}")
    found = bench.run(bench.memtrace, "info", "--secrets", "--json", bench.traces(bench.work / "d")[0])
    kinds = {kind["name"]: kind for kind in json.loads(found.stdout)["kinds"]}
    check(all(kinds[name]["redacted"] and not kinds[name]["distinct"] for name in ("boot_id", "job", "device_uuids")),
          f"{kinds}")


def counted_as_secrets(bench):
    """info --secrets names what --redact would replace."""
    recorded(bench, "exit", "0", SLURM_JOB_ID="77")
    found = bench.run(bench.memtrace, "info", "--secrets", "--json", "run.trace.zst")
    kinds = {kind["name"]: kind for kind in json.loads(found.stdout)["kinds"]}
    check(kinds["job"]["examples"] == ["slurm:77"] and kinds["device_uuids"]["examples"] == [UUID.format(0)]
          and kinds["boot_id"]["distinct"] == 1, f"{kinds}")


SNAPSHOT = {"segments": [], "device_traces": [[{"action": "alloc", "addr": 1 << 24, "size": 512, "stream": 0,
                                                "time_us": 1000, "frames": []}]]}


class Call:
    """A pickle of it would make a file where it is executed."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def dump_of(groups):
    """As the Flight Recorder writes it: protocol 2, ranks as text."""
    config = {uid: {"name": uid, "desc": desc, "ranks": ranks} for uid, desc, ranks in groups}
    return pickle.dumps({"version": "2.10", "pg_config": config, "entries": []}, protocol=2)


def dump_of_shared(group):
    """20,000 groups that are one object of the pickle: a small file, and much to read."""
    return pickle.dumps({"pg_config": {str(number): group for number in range(20000)}}, protocol=2)


def import_groups(bench, dump, *more):
    (bench.work / "rank_2.pickle").write_bytes(pickle.dumps(SNAPSHOT))
    (bench.work / "nccl_trace_rank_2").write_bytes(dump)
    return bench.run(bench.memtrace, "import", "rank_2.pickle", "--process-groups", "nccl_trace_rank_2", "-o",
                     "rank_2.trace.zst", *more)


def groups_of_the_flight_recorder(bench):
    """A snapshot has no groups: the dump beside it does."""
    dump = dump_of((("0", "default_pg", str(list(range(8)))), ("1", "undefined", "[6, 0, 2, 4]"), ("2", "", "[2, 7]")))
    for more in ((), ("--redact", "--force")):
        done = import_groups(bench, dump, *more)
        check(done.returncode == 0, f"{done}")
        header = trace_decoder.read_header(bench.work / "rank_2.trace.zst")
        check(header["process_groups"] == "0:default_pg=0-7\n1=0-6:2\n2=2-7:5\n", f"{header}")
    shown = identity(bench, "rank_2.trace.zst")
    check(shown["rank"] == 2 and shown["rank_origin"] == "file_name", f"{shown}")
    check([(group["name"], group["size"], group["position"]) for group in shown["process_groups"]]
          == [("0:default_pg", 8, 2), ("1", 4, 1), ("2", 2, 0)], f"{shown}")


def hostile_dumps_are_refused(bench):
    """No trace is written, one line says why, and nothing is executed."""
    made = bench.work / "executed"
    hostile = [pickle.dumps({"pg_config": Call(made)}, protocol=2), pickle.dumps([1]), pickle.dumps({"pg_config": [1]}),
               pickle.dumps({"entries": []}), b"", b"no pickle", dump_of([("0", "x", "[0, 1]")])[:-20]]
    hostile += [dump_of([("0", "x", ranks)]) for ranks in
                ("", "[]", "[0", "[0,]", "[-1]", "[0, 0]", "[2147483647]", "[99999999999999999999]", "0, 1", "[0] ",
                 None, 7, [0, 1])]
    hostile += [dump_of([(str(number), "x" * 60, str([number, number + 2, number + 9])) for number in range(2000)])]
    hostile += [dump_of_shared(dict.fromkeys(("name", "desc"), "x") | {"ranks": ranks}) for ranks in
                (str(list(range(20000))), str([number * number for number in range(20000)]))]
    hostile += [dump_of_shared({"name": "x", "desc": "x" * 1000000, "ranks": "[0]"}),
                dump_of_shared({str(number): "x" for number in range(100000)} | {"ranks": "[0]"})]
    for dump in hostile:
        done = import_groups(bench, dump)
        check(done.returncode == 3 and done.stderr.count(b"\n") == 1 and b"nccl_trace_rank_2" in done.stderr,
              f"{dump[:80]}: {done}")
        check(not (bench.work / "rank_2.trace.zst").exists() and not made.exists(), f"{dump[:80]}")


if __name__ == "__main__":
    sys.exit(main([known_from_the_start, nothing_is_made_up, lightning_numbers_its_processes, a_bad_mesh_is_left_out,
                   the_program_says_its_place,
                   a_wrong_place_is_refused, scripts_of_slurm_are_no_ranks, instances_have_profiles,
                   ends_of_the_command, ends_in_the_answer_for_the_job, ends_of_others, killed_with_the_launcher,
                   redacted, counted_as_secrets,
                   groups_of_the_flight_recorder, hostile_dumps_are_refused]))
