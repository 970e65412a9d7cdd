#!/usr/bin/env python3
"""check_installed.py BUILD [CASE...]: the program works where `cmake --install` puts it, nothing is
put elsewhere, and `uninstall` removes exactly what was installed."""
import os
import pathlib
import re
import subprocess
import sys

from support import check, main

PREFIX = pathlib.Path("usr/local")


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}


def install(bench):
    """The installed prefix. DESTDIR keeps even a wrong absolute path inside of the test's folder."""
    root = bench.work / "root"
    done = bench.run("cmake", "--install", bench.build, "--prefix", f"/{PREFIX}",
                     environment=bench.environment(DESTDIR=str(root)))
    check(done.returncode == 0, f"{done}")
    places = sorted(str(path.relative_to(bench.work)) for path in root.iterdir())
    check(places == ["root/usr"], f"files are outside of the prefix: {places}")
    return root / PREFIX


def check_works(bench, memtrace):
    done = bench.run(memtrace, "record", "-q", "-o", "r.trace.zst", "--", bench.recorded, "exit", "0")
    check(done.returncode == 0 and (bench.work / "r.trace.zst").exists(), f"{done}")
    (bench.work / "r.trace.zst").unlink()
    done = bench.run(memtrace, "dry-run", "-q", "-o", "d.trace.zst", "--", bench.recorded, "exit", "0",
                     environment=bench.environment(MEMTRACE_DRY_RUN_SITE="own"))
    check(done.returncode == 0 and done.stdout.startswith(b"Dry run on a simulated H200"), f"{done}")
    (bench.work / "d.trace.zst").unlink()


def commands_find_their_parts(bench):
    """As installed, through a link, and after the prefix was moved."""
    prefix = install(bench)
    check_works(bench, prefix / "bin" / "memtrace")
    link = bench.work / "elsewhere"
    link.symlink_to(prefix / "bin" / "memtrace")
    check_works(bench, link)
    moved = bench.work / "moved"
    prefix.rename(moved)
    check_works(bench, moved / "bin" / "memtrace")


def only_the_program_is_public(bench):
    """Everything that programs load or start is in one private folder."""
    prefix = install(bench)
    check([path.name for path in (prefix / "bin").iterdir()] == ["memtrace"], "bin has other files")
    check({path.name for path in prefix.iterdir()} == {"bin", "libexec", "share"}, f"{list(prefix.iterdir())}")
    check([path.name for path in (prefix / "libexec").iterdir()] == ["memtrace"], "libexec has other files")
    private = {path.name for path in (prefix / "libexec" / "memtrace").iterdir()}
    check({"libmemtrace-inject.so", "memtrace-python"} <= private, f"{private}")
    documents = {path.name for path in (prefix / "share" / "doc" / "memtrace").iterdir()}
    check({"LICENSE", "NOTICE"} <= documents, f"{documents}")


def uninstall(bench, root, manifest=None):
    """`uninstall` of the build, for what `install` wrote below DESTDIR."""
    manifest = manifest or f"{bench.build}/install_manifest.txt"
    source = re.search(r"^CMAKE_HOME_DIRECTORY:\w+=(.*)$", (bench.build / "CMakeCache.txt").read_text(), re.MULTILINE).group(1)
    return subprocess.run(["cmake", f"-DMANIFEST={manifest}", "-P",
                           f"{source}/cmake/uninstall.cmake"], env={**os.environ, "DESTDIR": str(root)},
                          capture_output=True, text=True, check=False)


def uninstall_removes_what_was_installed(bench):
    prefix = install(bench)
    root = bench.work / "root"
    others = {prefix / "bin" / "other", prefix / "libexec" / "memtrace" / "other"}
    for path in others:
        path.write_text("not ours\n")
    manifest = {line.lstrip("/") for line in (bench.build / "install_manifest.txt").read_text().split("\n") if line}
    mine = files_below(root) - {str(path.relative_to(root)) for path in others}
    check(manifest == mine, f"the manifest is not what was installed: {manifest ^ mine}")
    program = prefix / "bin" / "memtrace"
    program.unlink()
    program.symlink_to("other")  # what a link leads to stays
    done = uninstall(bench, root)
    check(done.returncode == 0 and not program.is_symlink(), f"{done}")
    check(files_below(root) == {str(path.relative_to(root)) for path in others}, f"{files_below(root)}")
    check(not (prefix / "share" / "doc" / "memtrace").exists(), "an empty folder of memtrace is left")
    check(uninstall(bench, root).returncode == 0, "a second uninstall fails")


def uninstall_reads_any_prefix(bench):
    """No character of the prefix means something to CMake: files of others stay, ours go."""
    root = bench.work / "root"
    for prefix in ("opt/[x]", "opt/gr\u00f6\u00dfe", "opt/a;b", "opt/a b", "opt/a]b", "opt/a[b", "opt/$x${y}", "opt/a*"):
        private = root / prefix / "libexec" / "memtrace"
        private.mkdir(parents=True)
        ours, other = private / "libmemtrace-inject.so", private / "other"
        # What CMake 3.25 would take for the name of a file if it cut the path at that character.
        part = root / re.split("[\u00f6;]", prefix)[0]
        cut = not part.exists()
        for path in (ours, other, *([part] if cut else [])):
            path.write_text("a file\n")
        manifest = bench.work / "manifest.txt"
        manifest.write_text(f"/{ours.relative_to(root)}\n" * 2, encoding="utf-8")
        done = uninstall(bench, root, manifest)
        check(done.returncode == 0 and not ours.exists(), f"{prefix}: {done}")
        check(other.exists() and (part.exists() or not cut), f"{prefix}: a file of another program was removed")
        other.unlink()
        check(uninstall(bench, root, manifest).returncode == 0 and not private.exists(),
              f"{prefix}: an empty folder of memtrace is left")


def uninstall_removes_nothing_of_others(bench):
    """CMake 3.25 writes the prefix "a;b" as two lines; the first is the name of another file."""
    root = bench.work / "root"
    (root / "opt").mkdir(parents=True)
    (root / "opt" / "a").write_text("not ours\n")
    manifest = bench.work / "manifest.txt"
    manifest.write_text("/opt/a\n/opt/b/libexec/memtrace/libmemtrace-inject.so", encoding="utf-8")
    done = uninstall(bench, root, manifest)
    check(done.returncode != 0 and (root / "opt" / "a").exists(), f"a file of others was removed: {done}")


if __name__ == "__main__":
    sys.exit(main([commands_find_their_parts, only_the_program_is_public,
                   uninstall_removes_what_was_installed, uninstall_reads_any_prefix,
                   uninstall_removes_nothing_of_others]))
