#!/usr/bin/env python3
"""check_source_files.py PROGRAM: `lines --source` reads what lies below the current
folder or a --source-root, whatever the trace names, and says what it did not read."""
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

SECRET = "SECRET_TOKEN=abc1"


def snapshot(paths):
    """One function a file, in line 1."""
    trace = [{"action": "alloc", "addr": (i + 1) << 24, "size": 512, "stream": 0, "time_us": 1000 + i,
              "frames": [{"filename": path, "name": f"f{i}", "line": 1}]} for i, path in enumerate(paths)]
    return {"segments": [], "device_traces": [trace], "external_annotations": []}


def lines(program, work, paths, *options):
    (work / "t.pickle").write_bytes(pickle.dumps(snapshot([str(path) for path in paths])))
    done = subprocess.run([program, "lines", "--all", "--source", "t.pickle", *options], cwd=work, text=True,
                          capture_output=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def main():
    program = os.path.abspath(sys.argv[1])
    wrong = []

    def expect(condition, words):
        if not condition:
            wrong.append(words)
            print(f"FAILED: {words}")

    with tempfile.TemporaryDirectory(prefix="memtrace-source-") as name:
        root = pathlib.Path(name).resolve()
        work, other = root / "work", root / "work2"
        (work / "pkg").mkdir(parents=True)
        other.mkdir()
        (other / "secret.env").write_text(SECRET + "\n")
        (other / "loop.py").write_text("other = loop()\n")
        (work / "train.py").write_text("loss = step()\n")
        (work / "pkg" / "loop.py").write_text("inner = loop()\n")
        (work / "loop.py").write_text("outer = loop()\n")
        (work / "inside.py").symlink_to("train.py")
        (work / "outside.py").symlink_to(other / "secret.env")
        (work / "folder").symlink_to(other)
        os.mkfifo(work / "pipe.py")
        for path in (other / "secret.env", work / "outside.py", work / "folder" / "secret.env", "../work2/secret.env",
                     f"{work}/../work2/secret.env", "/proc/self/environ"):
            for form in ((), ("--json",), ("--source-root", str(work))):
                out, err = lines(program, work, [path], *form)
                expect(SECRET not in out, f"{path} {form}: printed")
                expect("was not read: " in err and "--source-root" in err, f"{path} {form}: said, not {err!r}")
        out, err = lines(program, work, [other / "secret.env"], "--source-root", str(other))
        expect(SECRET in out and not err, "a root that was named is read")
        out, err = lines(program, work, ["train.py", "/gone/pkg/loop.py", work / "inside.py"])
        expect("loss = step()" in out and "inner = loop()" in out and "outer" not in out and not err,
               f"files that are there: {out} {err}")
        out, err = lines(program, work, [work / "pipe.py", work / "gone.py", work / "pkg"])
        expect("not a regular file" in err and "No such file" in err and err.count("\n") == 3, f"reasons: {err}")
        out, err = lines(program, work, [other / f"{i}.py" for i in range(20)], "--quiet")
        expect(not err, "--quiet is quiet")
        out, err = lines(program, work, [other / f"{i}.py" for i in range(20)])
        expect("12 more source files were not read" in err and err.count("\n") == 9, f"at most a few: {err}")
    print(f"{len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
