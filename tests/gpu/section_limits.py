"""Sections limits and deaths: from one recorded run, what would be under other options and on a smaller GPU; then the program really runs so. Workloads run side by side, since each has a limit
of its own."""
import concurrent.futures

from predictions import CONFS, Case
from session import WORKLOADS

SIDE_BY_SIDE = 12
TRAIN, POOLS = "train.py", "pools_and_threads.py"
CASES = {
    "gpt_fp32": (TRAIN, "gpt", {"amp": False, "seed": 1, "steps": 4, "L": 6, "d": 512}),
    "gpt_seed3": (TRAIN, "gpt", {"seed": 3, "steps": 5}),
    "gpt_checkpoint": (TRAIN, "gpt", {"seed": 5, "ckpt": True, "steps": 5}),
    "seq2seq": (TRAIN, "seq2seq", {"steps": 2}),
    "churn_seed23": (TRAIN, "churn", {"seed": 23}),
    "leak": (TRAIN, "leak", {"steps": 6}),
    "leakval": (TRAIN, "leakval", {"steps": 4}),
    "streams": (TRAIN, "streams", {}),
    "graph": (TRAIN, "graph", {}),
    "mempool": (POOLS, "mempool", {}),
}
DIED = {
    "gpt_dies": (TRAIN, "gpt", {"var": False, "bs": 4}, "", 1700),
    "resnet50_dies": (TRAIN, "resnet", {}, "", 900),
    "churn_dies": (TRAIN, "churn", {"seed": 9}, "", 1400),
    "churn_split_dies": (TRAIN, "churn", {"seed": 5}, "max_split_size_mb:32", 1500),
}
OTHERWISE = ("expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4")
TUNED = ("gpt_fp32", "gpt_seed3", "gpt_checkpoint", "seq2seq")


def limits(session):
    cases = {name: case_of(session, name, *what) for name, what in CASES.items()}
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(Case.record, cases.values()))
        asked = [(f"{name} {conf or '(defaults)'}", pool.submit(case.check, conf)) for name, case in cases.items() for conf in CONFS]
        asked += [(f"{name} tuned", pool.submit(cases[name].check_tuned)) for name in TUNED]
        for name, answer in asked:
            add(session, name, answer)


def deaths(session):
    """Runs that die of their limit."""
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        asked = [(name, pool.submit(case_of(session, name, *what[:3]).check_died, *what[3:], OTHERWISE)) for name, what in DIED.items()]
        for name, answer in asked:
            add_deaths(session, name, answer)


def add_deaths(session, name, answer):
    try:
        for conf, good, line in answer.result():
            session.add("deaths", f"{name} {conf}", good, line)
    except Exception as error:
        session.add("deaths", name, False, repr(error))


def case_of(session, name, script, workload, kw):
    return Case(session.out / "limits" / name, session.memtrace, session.python, name, WORKLOADS / script, workload, kw)


def add(session, name, answer):
    try:
        session.add("limits", name, *answer.result())
    except Exception as error:  # a run that cannot be had is a row, too
        session.add("limits", name, False, repr(error))
