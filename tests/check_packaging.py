#!/usr/bin/env python3
"""check_packaging.py: the scripts of packaging/ that remove or mount folders refuse arguments that are not theirs. They
need root for their work, so only the refusals run here. What the build of the wheel downloads has versions and hashes."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PACKAGING = pathlib.Path(__file__).resolve().parent.parent / "packaging"


def run(script, *arguments):
    environment = dict(os.environ, DEBIAN_MIRROR="file:///nowhere", UBUNTU_MIRROR="file:///nowhere")
    return subprocess.run(["sh", PACKAGING / script, *arguments], env=environment, capture_output=True, text=True,
                          check=False)


def matrix_removes_only_known_systems(folder):
    """FOLDER/SYSTEM is removed at the end, so an unknown SYSTEM ends the script at the beginning."""
    kept = folder / "kept" / "file"
    kept.parent.mkdir()
    kept.write_text("not ours\n")
    done = run("matrix/run.sh", folder / "systems", "../kept")
    assert done.returncode == 2 and "unknown system '../kept'" in done.stderr, done
    assert kept.exists(), "a folder outside of FOLDER was removed"


def wheel_is_tried_only_in_a_root_file_system(folder):
    """ROOT/home/guest is removed at the beginning."""
    kept = folder / "root" / "home" / "guest" / "file"
    kept.parent.mkdir(parents=True)
    kept.write_text("not ours\n")
    done = run("wheel/try_wheel.sh", folder / "root", "no.whl", folder)
    assert done.returncode == 2 and "not a root file system" in done.stderr, done
    assert kept.exists(), "a folder of a system that is none was removed"


def requirements_have_hashes():
    lines = (PACKAGING / "wheel" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        assert line.startswith("#") or re.fullmatch(
            r"[\w-]+==[\w.]+(; python_version < \"[\d.]+\")? --hash=sha256:[0-9a-f]{64}", line), line
    assert "--require-hashes" in (PACKAGING / "wheel" / "build.py").read_text(encoding="utf-8")


def main():
    requirements_have_hashes()
    with tempfile.TemporaryDirectory() as folder:
        matrix_removes_only_known_systems(pathlib.Path(folder))
        wheel_is_tried_only_in_a_root_file_system(pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
