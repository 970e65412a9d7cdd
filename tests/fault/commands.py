"""Commands for the sweeps of faults, and the folders in which they run."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

FIXTURES = pathlib.Path(__file__).resolve().parent.parent.parent / "fixtures"
GOLDEN = FIXTURES.parent / "tests" / "golden"
ESTIMATE = GOLDEN.parent / "fuzz" / "seeds" / "estimate_json"

# Each runs in an empty folder that holds the fixtures, an estimate, made/ (below) and what the run
# writes.
MADE = {
    "leak.trace": "import captures/leak.pickle.zst -o made/leak.trace",
    "lines.trace": "import captures/lines.pickle.zst -o made/lines.trace",
    "base.json": "analyze captures/leak.pickle.zst --write-baseline made/base.json",
    # Of one file, because a rank that cannot be read is left out of the answer, with status 3.
    "ranks.mtsum": "fleet -q captures/ddp_leak_rank0.pickle.zst "
                   "captures/ddp_leak_rank1.pickle.zst -o made/ranks.mtsum",
}

COMMANDS = {
    "analyze": "analyze captures/leak.pickle.zst",
    "analyze all": "analyze --all captures/oom_adam.pickle.zst",
    "analyze two devices": "analyze captures/twogpu.pickle.zst",
    "analyze trace": "analyze made/leak.trace",
    "analyze recorded": "analyze recorded/driver_only.trace.zst",
    "analyze standard input": "analyze - <captures/leak.pickle.zst",
    "analyze json": "analyze captures/leak.pickle.zst --json",
    "analyze json oom": "analyze captures/oom_adam.pickle.zst --json",
    "analyze xplane": "analyze xplane/generate.xplane.pb.zst",
    "analyze folder": "analyze recorded/driver_only.trace.zst -o report",
    "analyze budget": "analyze captures/leak.pickle.zst --max-peak reserved=1GiB "
                      "--max-growth 1MiB/step --base made/base.json --max-regression 2% "
                      "--write-baseline base.json",
    "analyze gates fail": "analyze captures/leak.pickle.zst --max-peak reserved=1MiB "
                          "--base made/leak.trace --max-regression 2%",
    "analyze bounded": "analyze --max-memory 1GiB captures/leak.pickle.zst",
    "analyze too small": "analyze --max-memory 100KiB captures/leak.pickle.zst",
    "diff": "diff captures/leak.pickle.zst captures/keeps.pickle.zst",
    "diff json": "diff captures/leak.pickle.zst made/leak.trace --json",
    "diff estimate": "diff captures/leak.pickle.zst --estimate estimate.json",
    "diff estimate json": "diff --json made/leak.trace --estimate estimate.json",
    "diff folder": "diff -q captures/leak.pickle.zst captures/keeps.pickle.zst -o change",
    "diff picture": "diff -q captures/leak.pickle.zst captures/keeps.pickle.zst -o change.svg",
    "doctor": "doctor",
    "doctor json": "doctor --json",
    "dry-run": "dry-run -o d.trace.zst -- true",
    "dry-run json": "dry-run -q --json --max-peak reserved=1GiB -- true",
    "dump": "dump captures/streams.pickle.zst",
    "dump json": "dump --json made/leak.trace",
    "export folded": "export folded captures/leak.pickle.zst -o x.folded",
    "export speedscope": "export speedscope captures/leak.pickle.zst",
    "export perfetto": "export perfetto captures/leak.pickle.zst -o x.pftrace",
    "fit": "fit captures/oom_adam.pickle.zst",
    "fit policies": "fit captures/leak.pickle.zst -p planned -p best-fit -j 1 --no-cards",
    "fit json": "fit captures/leak.pickle.zst --json",
    # Without the summary: the exit status does not depend on it.
    "import": "import --no-summary captures/leak.pickle.zst -o copy.trace",
    "import oom": "import --no-summary captures/oom_adam.pickle.zst -o copy.trace",
    "import trace": "import --no-summary made/leak.trace -o copy.trace",
    "import profile": "import --no-summary categories/mlp.pickle.zst -o copy.trace",
    "import redact": "import --no-summary -q --redact captures/leak.pickle.zst -o copy.trace",
    "import redact trace": "import --no-summary -q --redact made/leak.trace -o copy.trace",
    "info": "info captures/leak.pickle.zst",
    "info trace": "info made/leak.trace --json",
    "fleet": "fleet captures/leak.pickle.zst recorded/mixed.trace.zst --job '' -j 1",
    "fleet json": "fleet --json captures/leak.pickle.zst --max-peak reserved=1GiB --junit junit.xml "
                  "-o part.mtsum -j 1",
    "fleet base": "fleet captures/leak.pickle.zst --base captures/keeps.pickle.zst --max-regression 2% -j 1",
    "fleet diff": "fleet diff captures/leak.pickle.zst captures/keeps.pickle.zst -j 1",
    "fleet diff json": "fleet diff --json captures/ddp_rank0.pickle.zst captures/ddp_leak_rank0.pickle.zst "
                       "-j 1",
    "fleet folder": "fleet -q made/ranks.mtsum --max-imbalance 50% -o report -j 1",
    "fleet tune": "fleet captures/ddp_leak_rank0.pickle.zst captures/ddp_leak_rank1.pickle.zst --tune -j 1",
    "fleet tune json": "fleet captures/twogpu.pickle.zst --tune --json -j 1",
    "info summary": "info made/leak.trace.mtsum",
    "info summary json": "info --json made/leak.trace.mtsum",
    "info recorded": "info recorded/driver_only.trace.zst",
    "info secrets": "info --secrets captures/leak.pickle.zst",
    "info secrets json": "info --secrets --json made/leak.trace",
    "lines": "lines captures/lines.pickle.zst",
    "lines json": "lines captures/leak.pickle.zst --json",
    "lines source": "lines --source --source-root workloads captures/lines.pickle.zst",
    "live": "live captures/leak.pickle.zst",
    "live json": "live captures/leak.pickle.zst --by stack --json",
    "live module": "live captures/oom_adam.pickle.zst --by module",
    "oom": "oom oom/cases.txt",
    "oom json": "oom --json - <oom/cases.txt",
    "oom elsewhere": "analyze oom/cases.txt",
    "optimal": "optimal captures/leak.pickle.zst --time none -o plan.csv",
    # The other part has the run: what fails in the process of a run is in its log.
    "plan": "plan -q --no-cache --card T4 --shard 2/2 --try n=1..2 -o report -- true {n}",
    "replay": "replay captures/leak.pickle.zst -p pytorch "
              "-p pytorch:expandable_segments:True -j 1",
    "replay verify": "replay captures/leak.pickle.zst --verify",
    "replay json": "replay captures/leak.pickle.zst -p pytorch:max_split_size_mb:64 --json",
    "replay list": "replay --policies",
    "replay counters": "replay captures/leak.pickle.zst -p pytorch --counters counters.csv",
    "replay pool": "replay captures/leak.pickle.zst -p pytorch --pool site=~forward,size<20MiB",
    "sql": "sql - --ask peak <captures/leak.pickle.zst",
    "sql list": "sql --ask list --json",
    "tune": "tune captures/leak.pickle.zst",
    "tune json": "tune captures/leak.pickle.zst --json",
    "view": "view captures/leak.pickle.zst",  # without a terminal
    "help": "help",
    "help command": "help analyze",
    "version": "--version",
    "wrong option": "analyze --resreved captures/leak.pickle.zst",
    "wrong command": "analize captures/leak.pickle.zst",
}

# As `replay --policies` and `render --help` list them.
POLICIES = re.findall(r"^(\S+)", (GOLDEN / "replay_policy_list.stdout").read_text(encoding="utf-8"), re.MULTILINE)
RENDER_HELP = (GOLDEN / "help_render.stdout").read_text(encoding="utf-8").split("\n\n")
CHARTS = re.findall(r"^  (\w+)", RENDER_HELP[2], re.MULTILINE)
CHARTS.remove("diff")

for policy in POLICIES:
    COMMANDS[f"replay {policy}"] = f"replay captures/churn_noctx.pickle.zst -j 1 -p {policy}"
for end in ("svg", "png"):
    for chart in CHARTS:
        COMMANDS[f"render {chart} {end}"] = f"render {chart} captures/leak.pickle.zst -o p.{end}"
    COMMANDS[f"render diff {end}"] = f"render diff captures/leak.pickle.zst made/leak.trace -o p.{end}"


class Workplace:
    """A folder for one run at a time."""

    def __init__(self, root, made):
        self.root, self.made = root, made
        self.clean()

    def clean(self):
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        for name in ("captures", "categories", "findings", "oom", "recorded", "workloads", "xplane"):
            (self.root / name).symlink_to(FIXTURES / name)
        (self.root / "estimate.json").symlink_to(ESTIMATE)
        (self.root / "made").symlink_to(self.made)

    def run(self, program, line, limit_seconds, **more):
        """{status: None if it does not end, stdout, stderr} of a command, with more environment."""
        line, _, standard_input = line.partition(" <")
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root.parent), "LC_ALL": "C.UTF-8",
                       "TERM": "dumb", "MEMTRACE_DRY_RUN_SITE": "own", "TMPDIR": str(self.root), **more}
        name = self.root / standard_input.strip() if standard_input else os.devnull
        with open(name, "rb") as feed:
            try:
                done = subprocess.run([str(program)] + line.split(), cwd=self.root,
                                      env=environment, stdin=feed, capture_output=True,
                                      timeout=limit_seconds)
                own = str(self.root).encode()  # doctor names it
                return {"status": done.returncode, "stdout": done.stdout.replace(own, b"HERE"),
                        "stderr": done.stderr.replace(own, b"HERE")}
            except subprocess.TimeoutExpired:
                return {"status": None, "stdout": b"", "stderr": b""}

    def files(self):
        """Digests of what a run wrote, by name; folders end with a slash."""
        found = {}
        for folder, folders, names in os.walk(self.root):
            for name in folders:
                path = pathlib.Path(folder) / name
                if not path.is_symlink():
                    found[f"{path.relative_to(self.root)}/"] = ""
            for name in names:
                path = pathlib.Path(folder) / name
                if not path.is_symlink():
                    found[str(path.relative_to(self.root))] = hashlib.sha256(
                        path.read_bytes()).hexdigest()
        return found


def without_salt(program, line, place):
    """The files of a run. A redacted trace has other hashes in each run: its events, without them."""
    found = place.files()
    if "--redact" not in line or "copy.trace" not in found:
        return found
    done = subprocess.run([program, "dump", "--json", place.root / "copy.trace"], check=False,
                          capture_output=True, env={})
    text = re.sub(rb"\b[0-9a-f]{12}\b", b"HASH", done.stdout) + done.stderr
    return {**found, "copy.trace": hashlib.sha256(text).hexdigest()}


def make_inputs(program, made, change=lambda line: line):
    """Fills the folder `made`; `change` may make it from other captures."""
    made.mkdir()
    place = Workplace(made.parent / "inputs", made)
    for line in MADE.values():
        done = place.run(program, change(line), 120)
        if done["status"] != 0:
            sys.exit(f"{line}: {done['stderr'].decode()}")
