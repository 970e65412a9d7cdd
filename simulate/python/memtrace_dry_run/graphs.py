"""CUDA graphs. The host computes what an operator does once, when it is captured; the device never does then, and does it
at each replay, with the inputs of that time. So all that a graph writes to is a guess (shadows.py)."""
import functools
import threading

from . import shadows

captures = {}  # thread that captures a graph: what the graph has written to so far


def install(torch):
    graph = torch.cuda.CUDAGraph
    begin, end, replay = graph.capture_begin, graph.capture_end, graph.replay

    @functools.wraps(begin)
    def capture_begin(self, *arguments, **named):
        begin(self, *arguments, **named)
        captures[threading.get_ident()] = shadows.Places()

    @functools.wraps(end)
    def capture_end(self):
        self.memtrace_written = captures.pop(threading.get_ident(), None)
        end(self)

    @functools.wraps(replay)
    def replayed(self):
        replay(self)
        written = getattr(self, "memtrace_written", None)
        if written is not None:
            written.doubt()

    graph.capture_begin, graph.capture_end, graph.replay = capture_begin, capture_end, replayed


def note(tensors):
    """The running thread writes to TENSORS on the device, perhaps while it captures a graph."""
    written = captures.get(threading.get_ident())
    if written is not None:
        for t in tensors:
            written.add(t)
