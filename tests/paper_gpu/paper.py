"""What limits.py and pools.py share: their arguments, and which Python runs the programs."""

import argparse, pathlib, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def arguments_of(description, cases):
    """The arguments, with paths resolved; the site of the libraries without a GPU is made."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "paper_gpu")
    parser.add_argument("site_packages", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(cases))
    arguments = parser.parse_args()
    arguments.memtrace = str(arguments.build.resolve() / "memtrace")
    arguments.site_packages, arguments.out = arguments.site_packages.resolve(), arguments.out.resolve()
    unknown = [name for name in arguments.cases if name not in cases]
    if unknown:
        parser.error(f"no case is called {unknown[0]}")
    subprocess.run([sys.executable, str(HERE / "make_site.py"), str(arguments.site_packages), str(arguments.out / "site")], check=True, stdout=subprocess.DEVNULL)
    return arguments


def python_of(site_packages):
    own = site_packages.parent.parent.parent / "bin" / "python3"
    return str(own) if own.exists() else "python3"
