"""Section parked: memtrace.parked under 10,000 interrupts, and under kernels that fail."""
from session import HERE


def parked(session):
    done = session.run([session.python, HERE / "parked_signals.py"], "parked_signals.txt", timeout=600)
    lines = done.stdout.strip().splitlines()
    session.add("parked", "interrupts and failed kernels", done.returncode == 0, lines[-1] if lines else f"status {done.returncode}")
