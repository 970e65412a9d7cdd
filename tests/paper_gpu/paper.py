"""What run, limits.py and pools.py share: which Python runs the programs, on which libraries; arguments."""

import argparse, os, pathlib, subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def arguments_of(description, cases):
    """The arguments, with paths resolved, and `site`, the environment of the programs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "paper_gpu")
    parser.add_argument("site_packages", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(cases))
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    arguments.memtrace = str(arguments.build / "memtrace")
    arguments.site_packages, arguments.out = arguments.site_packages.resolve(), arguments.out.resolve()
    unknown = [name for name in arguments.cases if name not in cases]
    if unknown:
        parser.error(f"no case is called {unknown[0]}")
    arguments.site = prepare_site(arguments)
    return arguments


def python_of(site_packages):
    own = site_packages.parent.parent.parent / "bin" / "python3"
    return str(own) if own.exists() else "python3"


def prepare_site(arguments):
    """The environment in which programs find simulated libraries: simulate/site makes them."""
    packages = os.pathsep.join([str(arguments.site_packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [str(arguments.build / "tests" / "print_site"), str(arguments.build / "libmemtrace-simulated-cuda.so"), python_of(arguments.site_packages)]
    text = subprocess.run(command, env=os.environ | {"PYTHONPATH": packages}, check=True, stdout=subprocess.PIPE, text=True).stdout
    own = {"PYTHONPATH": packages, "ASAN_OPTIONS": "verify_asan_link_order=0"} # of a sanitized memtrace
    return own | dict(line.split("=", 1) for line in text.splitlines())
