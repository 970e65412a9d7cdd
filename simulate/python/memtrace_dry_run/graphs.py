"""CUDA graphs. The host computes what an operator does once, when it is captured; the device never does then, and does it
at each replay, with the inputs of that time. So all that a graph writes to is a guess (shadows.py)."""
import functools
import threading

import torch

from . import notes, others, shadows

captures = {}  # thread that captures a graph: what the graph has written to so far


def install():
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
    """The running thread writes to TENSORS on the device, perhaps while a graph is captured: by it, or by the thread for which
    it runs a backward."""
    written = captures.get(threading.get_ident())
    if written is None and not torch.cuda.is_current_stream_capturing():
        return
    for places in tuple(captures.values()) if written is None else (written,):
        for t in tensors:
            places.add(t)


def noting_gradients(run_backward):
    """RUN_BACKWARD of autograd's engine, which writes to gradients where no rule sees it."""

    @functools.wraps(run_backward)
    def run(*arguments, **named):
        if threading.get_ident() not in captures:
            return run_backward(*arguments, **named)
        leaves = []
        try:
            leaves += _leaves(arguments[0] if arguments else named["tensors"])
        except Exception as error:
            notes.failed("backward of a graph", error)
        found = run_backward(*arguments, **named)
        try:
            made = others.tensors_in([*(leaf.grad for leaf in leaves), *(found or ())])
            note([t for t in made if t.is_cuda and t.layout is torch.strided])
        except Exception as error:
            notes.failed("backward of a graph", error)
        return found

    return run


def _leaves(roots):
    """The tensors that have gradients of ROOTS."""
    tensors = [root for root in roots if isinstance(root, torch.Tensor)]
    yield from (t for t in tensors if t.is_leaf)
    seen, nodes = set(), [t.grad_fn for t in tensors] + [root.node for root in roots if not isinstance(root, torch.Tensor)]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None) # of a function in Python, what the program keeps under this name
        if isinstance(leaf, torch.Tensor):
            yield leaf
        nodes += [following for following, _ in node.next_functions]
