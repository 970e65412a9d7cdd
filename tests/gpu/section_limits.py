"""Section limits: from one recorded run, what would be under other options and on a smaller GPU; then the program really runs so. Workloads run side by side, since each has a limit
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
TUNED = ("gpt_fp32", "gpt_seed3", "gpt_checkpoint", "seq2seq")


def limits(session):
    cases = {name: Case(session.out / "limits" / name, session.memtrace, session.python, name, WORKLOADS / script, workload, kw)
             for name, (script, workload, kw) in CASES.items()}
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(Case.record, cases.values()))
        asked = [(f"{name} {conf or '(defaults)'}", pool.submit(case.check, conf)) for name, case in cases.items() for conf in CONFS]
        asked += [(f"{name} tuned", pool.submit(cases[name].check_tuned)) for name in TUNED]
        for name, answer in asked:
            add(session, name, answer)


def add(session, name, answer):
    try:
        session.add("limits", name, *answer.result())
    except Exception as error:  # a run that cannot be had is a row, too
        session.add("limits", name, False, repr(error))
