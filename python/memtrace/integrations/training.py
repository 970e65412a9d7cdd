"""What the callbacks share: steps and phases, traces when memory runs out or at a step, and peaks
for the log of the trainer."""
from __future__ import annotations

import logging
import os
import sys
import weakref
from collections import Counter
from collections.abc import Collection
from typing import Any

from ..dumps import DEFAULT_ENTRIES, Dumps, dump_on_oom, rank_and_process
from ..errors import Error
from ..program import Path
from ..ranges import end_step, phase, step

_LOG = logging.getLogger("memtrace")
_GIB = float(1 << 30)


class Training:
    """The marks and traces of one training run.

    `folder`: where traces go when a request fails and at the end of `steps`; None: none.
    `max_entries`: how many events of the history are kept."""

    def __init__(self, folder: Path | None, steps: Collection[int],
                 max_entries: int = DEFAULT_ENTRIES) -> None:
        if steps and folder is None:
            raise Error("traces at steps need a folder")
        self._folder = None if folder is None else os.fspath(folder)
        self._steps = frozenset(steps)
        self._max_entries = max_entries
        self._dumps: Dumps | None = None
        self._phases: list[phase] = []
        self._times: Counter[int] = Counter()  # how often a step has a trace

    @property
    def traces(self) -> list[str]:
        """The traces that were written."""
        return [] if self._dumps is None else list(self._dumps.traces)

    def begin(self) -> None:
        """The training begins, or another one after `end`: from now on, a failed request leaves a
        trace."""
        self.end_phases()
        end_step()
        if self._folder is None:
            return
        try:
            if self._dumps is not None:
                self._dumps.resume()
                return
            self._dumps = dump_on_oom(self._folder, max_entries=self._max_entries)
            # Trainers without a hook for exceptions leave the history on.
            weakref.finalize(self, self._dumps.stop).atexit = False
        except Error as error:
            _LOG.warning("no traces are written: %s", error)

    def end(self) -> None:
        self.end_phases()
        end_step()
        if self._dumps is not None:
            self._dumps.stop()

    def begin_step(self, number: int) -> None:
        self.end_phases()
        step(number)

    def end_step(self, number: int) -> None:
        """The step ends. Writes a trace if it is one of the chosen steps."""
        self.end_phases()
        end_step()
        if number in self._steps and self._dumps is not None:
            self._times[number] += 1
            again = f"-{self._times[number]}" if self._times[number] > 1 else ""
            try:
                self._dumps.write(f"step{number}-{rank_and_process()}{again}")
            except Error as error:
                _LOG.warning("no trace of step %d: %s", number, error)

    def begin_phase(self, name: str) -> None:
        opened = phase(name)
        opened.__enter__()
        self._phases.append(opened)

    def end_phase(self, name: str) -> None:
        """Ends the innermost phase of this name, and what is open inside it. An exception may have
        left phases open, or the trainer may end one that it never began."""
        if not any(opened.name == name for opened in self._phases):
            return
        is_closed = False
        while not is_closed:
            opened = self._phases.pop()
            opened.__exit__()
            is_closed = opened.name == name

    def end_phases(self) -> None:
        while self._phases:
            self._phases.pop().__exit__()


def peaks() -> dict[str, float]:
    """The peaks of this process so far, in GiB, and what is allocated, by PyTorch's counters on the
    current device. Empty if CUDA has not started."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return {}
    counters: dict[str, Any] = cuda.memory_stats()
    return {
        "memtrace/allocated_gib": counters.get("allocated_bytes.all.current", 0) / _GIB,
        "memtrace/allocated_peak_gib": counters.get("allocated_bytes.all.peak", 0) / _GIB,
        "memtrace/reserved_peak_gib": counters.get("reserved_bytes.all.peak", 0) / _GIB,
    }
