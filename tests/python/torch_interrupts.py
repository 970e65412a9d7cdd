"""torch_interrupts.py: nothing interrupts memtrace.parked, and nothing is lost. A real PyTorch, whose
values are in host memory here, so that a dry run has them: `parked` takes them for a GPU's."""
import contextlib
import gc
import linecache
import os
import pathlib
import random
import signal
import sys
import threading
import time
import unittest
import unittest.mock

import torch
from torch import nn
from torch_cases import memtrace
from memtrace import host_copies, parking

PACKAGE = str(pathlib.Path(memtrace.__file__).parent)
LIMIT_SECONDS = 120
STEP = int(os.environ.get("MEMTRACE_TEST_STEP", "9"))  # 1: each line of the keeper
GUARDED = ("forward", "state_dict", "load_state_dict", "_apply", "__deepcopy__", "__getstate__", "step")


class Interrupts:
    """Raises an exception at some of the lines of the package, or of its functions in `names`, that
    this thread runs. Counts from 1."""

    def __init__(self, *at, kind=KeyboardInterrupt, opcodes=False, names=None):
        self.at, self.kind, self.opcodes, self.names = set(at), kind, opcodes, names
        self.count = self.raised = 0

    def trace(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if self.names is not None and frame.f_code.co_name not in self.names:
            return None
        frame.f_trace_opcodes = self.opcodes
        if event == ("opcode" if self.opcodes else "line"):
            if parking._mutex.locked() and "with _mutex" in linecache.getline(
                    frame.f_code.co_filename, frame.f_lineno):
                return self.trace  # the end of the statement: an exception here leaves the lock taken
            self.count += 1
            if self.count in self.at:
                self.raised += 1
                raise self.kind
        return self.trace

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_):
        sys.settrace(None)


class Case(unittest.TestCase):
    def setUp(self):
        gc.collect()
        for target, name, value in ((host_copies, "is_on_gpu", lambda storage: True),
                                    (sys, "unraisablehook", lambda _: None),
                                    (parking, "_POLL_SECONDS", 0.1)):
            patch = unittest.mock.patch.object(target, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.layer = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.1, momentum=0.9)
        self.layer(torch.ones(1, 3)).sum().backward()
        self.optimizer.step()
        self.before = [tensor.detach().clone() for tensor in self.tensors()]
        gc.collect()
        gc.freeze()  # `parked` looks at all objects of Python that are not frozen: few make it fast
        self.addCleanup(gc.unfreeze)

    def tensors(self):
        return [*self.layer.parameters(), *(parameter.grad for parameter in self.layer.parameters()),
                *(state["momentum_buffer"] for state in self.optimizer.state.values())]

    def parked(self):
        return memtrace.parked(self.layer, self.optimizer, pin=False, empty_cache=False,
                               allow_graphs=True)

    def settle(self):
        """What an interrupt left is brought back without any help, when the keeper runs."""
        end = time.monotonic() + LIMIT_SECONDS
        while parking._blocks and time.monotonic() < end:
            time.sleep(0.001)

    def lost(self):
        """What is not as it was: names of tensors, guards, and blocks."""
        lost = [f"tensor {number} of {before.numel()}: {now.untyped_storage().nbytes()} bytes"
                for number, (before, now) in enumerate(zip(self.before, self.tensors()))
                if now.untyped_storage().nbytes() == 0 or not torch.equal(before, now)]
        for owner in (self.layer, self.optimizer, *self.tensors(),
                      *(tensor.untyped_storage() for tensor in self.tensors())):
            lost += [f"guard {name} of {type(owner).__name__}" for name in GUARDED
                     if name in owner.__dict__]
        if self.optimizer._optimizer_step_pre_hooks:
            lost.append("hook of the optimizer")
        return lost + [f"{len(known)} known" for known in (parking._blocks, parking._copies) if known]

    def check(self):
        self.assertEqual(self.lost(), [])


class EveryLine(Case):
    def once(self, interrupts, body=lambda: None):
        """Returns the type of the exception that left the block."""
        kind = None
        with interrupts:
            try:
                with self.parked():
                    body()
            except BaseException as error:
                kind = type(error)
        return kind

    def count(self, **options):
        interrupts = Interrupts(**options)
        self.once(interrupts)
        self.check()
        return interrupts.count

    def test_one_interrupt_at_every_line(self):
        """Everything is back when it leaves the statement."""
        faults, total = {}, self.count()
        for number in range(1, total + 1):
            interrupts = Interrupts(number)
            kind = self.once(interrupts)
            if self.lost() or (interrupts.raised and kind is not KeyboardInterrupt):
                faults[number] = (kind, self.lost())
                parking.restore_all()
        self.assertGreater(total, 100)
        self.assertEqual(faults, {})

    def test_one_interrupt_at_every_instruction(self):
        names = ("_leave", "end", "_wait", "start", "_dropped", "__enter__", "wait", "_launch")
        faults, total = {}, self.count(opcodes=True, names=names)
        for number in range(1, total + 1):
            self.once(Interrupts(number, opcodes=True, names=names))
            if self.lost():
                faults[number] = self.lost()
                parking.restore_all()
        self.assertGreater(total, 100)
        self.assertEqual(faults, {})

    def test_two_interrupts(self):
        """The second one may also end the wait for the last byte. The keeper goes on."""
        faults, total, runs = {}, self.count(), 0
        names = ("_leave", "end", "_wait", "start", "_dropped", "__enter__", "wait", "_launch",
                 "leaver", "__get__", "_leaver", "_not_restored")
        late = self.count(names=names)
        for number, gap in [(number, gap) for number in range(1, late + 1) for gap in range(1, 13)]:
            runs += 1
            self.once(Interrupts(number, number + gap, names=names))
            self.settle()
            if self.lost():
                faults[number, gap] = self.lost()
                parking.restore_all()
        for number in range(1, total + 1):
            self.once(Interrupts(number, number + 1))
            self.settle()
            if self.lost():
                faults[number] = self.lost()
                parking.restore_all()
        self.assertGreater(runs, 100)
        self.assertEqual(faults, {})

    def test_with_an_exception_in_the_block(self):
        def body():
            raise ValueError

        faults, total = {}, self.count()
        for number in range(total // 2, total + 1):
            self.once(Interrupts(number), body)
            self.settle()
            if self.lost():
                faults[number] = self.lost()
                parking.restore_all()
        self.assertEqual(faults, {})

    def test_errors_in_the_keeper(self):
        """At every line of what moves bytes, for example if memory runs out. The bytes stay known, and
        the next attempt brings them back."""
        number = 1
        while not self.error_in_the_keeper(number, MemoryError if number % 2 else KeyboardInterrupt):
            number += STEP
        self.assertGreater(number, 100)

    def error_in_the_keeper(self, number, kind):
        """Returns whether the keeper has fewer lines than `number`."""
        interrupts = Interrupts(number, kind=kind)
        serve = parking._Block._serve

        def traced(block):
            sys.settrace(lambda frame, event, _: None if frame.f_code is serve.__code__
                         else interrupts.trace(frame, event, _))
            try:
                return serve(block)
            finally:
                sys.settrace(None)

        with unittest.mock.patch.object(parking._Block, "_serve", traced):
            with contextlib.suppress(memtrace.NotRestored, kind):
                with self.parked():
                    pass
        parking.restore_all()
        self.assertEqual(self.lost(), [], f"line {number}")
        return not interrupts.raised

    def test_signals(self):
        """Real ones, at random moments, with a handler of the program that raises."""
        dice = random.Random(36)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        for _ in range(300):
            try: # not suppress(), in whose own code a signal would end the test
                signal.setitimer(signal.ITIMER_REAL, dice.uniform(1e-5, 2e-3))
                with self.parked():
                    pass
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            self.settle()
            self.check()

    def test_an_interrupt_in_the_first_line_of_the_end(self):
        """Also where the program has a name for the block."""
        away = self.parked()
        with self.assertRaises(KeyboardInterrupt):
            with Interrupts(1, names=("_leave",)), away as named:
                pass
        self.check()
        self.assertGreater(named.moved_bytes, 0)


class Others(Case):
    """Other threads, and failures of the GPU."""

    def run_beside(self, function):
        thread = threading.Thread(target=function)
        thread.start()
        self.addCleanup(thread.join)
        return thread

    def test_threads_do_not_wait_for_each_other(self):
        """The end of a block does not wait for a thread that parks something else."""
        started, go_on, other = threading.Event(), threading.Event(), nn.Linear(3, 2)
        late = []
        fill = host_copies.HostCopy.fill

        def slow(copy, pin):
            if copy.storage.data_ptr() == other.weight.data_ptr():
                started.set()
                late.append(not go_on.wait(LIMIT_SECONDS))
            fill(copy, pin)

        def beside():
            with memtrace.parked(other, pin=False, empty_cache=False, allow_graphs=True):
                pass

        with unittest.mock.patch.object(host_copies.HostCopy, "fill", slow):
            with self.parked():
                thread = self.run_beside(beside)
                self.assertTrue(started.wait(LIMIT_SECONDS))
            self.assertEqual(late, [], "the block waited for the other thread")
            self.assertEqual([line for line in self.lost() if "known" not in line], [])
            go_on.set()
            thread.join()
        self.check()

    def test_threads_that_park_the_same(self):
        """They share the copy, and the last one brings it back."""
        both, faults = threading.Barrier(2), []

        def park():
            for _ in range(50):
                both.wait(LIMIT_SECONDS)
                with self.parked():
                    if self.layer.weight.untyped_storage().nbytes():
                        faults.append("not parked")

        threads = [self.run_beside(park) for _ in range(2)]
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])
        self.check()

    def test_a_forked_child(self):
        """Another thread held the lock of the keepers at the time of the fork."""
        with self.parked():
            held = parking._mutex
            held.acquire()
            child = os.fork()
            if child:
                held.release()
            else:
                signal.alarm(LIMIT_SECONDS)
                try:
                    with memtrace.parked(nn.Linear(3, 2), pin=False, empty_cache=False,
                                         allow_graphs=True):
                        pass
                    parking.restore_all()
                    os._exit(0)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.check()

    def test_other_ways_to_leave(self):
        """The functions of the protocol, also looked up at the class, and in any order."""
        with contextlib.ExitStack() as stack:
            away = stack.enter_context(self.parked())
            self.assertEqual(self.layer.weight.untyped_storage().nbytes(), 0)
        self.check()
        for leave in (away.__exit__, lambda *words: type(away).__exit__(away, *words)):
            away.__enter__()
            self.assertEqual(self.layer.weight.untyped_storage().nbytes(), 0)
            leave(None, None, None)
            self.check()
        away.__enter__()
        parking.restore_all()
        self.check()
        away.restore()

    def test_an_inner_block_of_an_alias(self):
        """The guards of its module stay as long as the weight is empty."""
        other = nn.Linear(3, 2)
        other.weight = self.layer.weight
        with self.parked():
            with memtrace.parked(other, pin=False, empty_cache=False, allow_graphs=True) as inner:
                self.assertEqual(inner.moved_bytes, 2 * 4)
            self.assertEqual(self.layer.weight.untyped_storage().nbytes(), 0)
            with self.assertRaisesRegex(memtrace.Error, "parked"):
                other(torch.ones(1, 3))
            self.assertGreater(other.bias.untyped_storage().nbytes(), 0)
        other(torch.ones(1, 3))
        self.check()

    def test_a_failure_of_the_gpu(self):
        """NotRestored leads to whole copies, and to the error of the program."""
        broken = unittest.mock.patch.object(
            host_copies, "as_bytes", side_effect=RuntimeError("CUDA error: device-side assert triggered"))
        with self.assertRaisesRegex(memtrace.NotRestored, "device-side assert") as caught:
            with self.parked():
                broken.start()
                self.addCleanup(broken.stop)
                raise ValueError("of the program")
        self.assertIsInstance(caught.exception.__cause__, ValueError)
        self.check_file(caught.exception.save)
        with self.assertRaisesRegex(memtrace.Error, "restore_all"):
            self.layer(torch.ones(1, 3))
        broken.stop()
        parking.restore_all()
        self.check()

    def check_file(self, save):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "state.pt")
            before = os.umask(0o027)
            try:
                self.assertEqual(save(path), [])
            finally:
                os.umask(before)
            self.assertEqual(path.stat().st_mode & 0o777, 0o640)
            found = torch.load(path, weights_only=True)
            self.assertEqual([child.name for child in path.parent.iterdir()], ["state.pt"])
            with self.assertRaises(FileNotFoundError):
                save(pathlib.Path(folder, "missing", "state.pt"))
            with unittest.mock.patch.object(torch, "save", side_effect=OSError):
                with self.assertRaises(OSError):
                    save(path)
            self.assertEqual([child.name for child in path.parent.iterdir()], ["state.pt"])
        names = ("weight", "bias", "weight.grad", "bias.grad", "weight.momentum_buffer",
                 "bias.momentum_buffer")
        self.assertEqual(set(found), set(names))
        for name, before in zip(names, self.before):
            self.assertTrue(torch.equal(found[name], before), name)
            self.assertEqual(found[name].stride(), before.stride())

    def test_a_failure_after_some_bytes_are_back(self):
        """The host keeps all copies until the GPU has all bytes."""
        restore, calls = host_copies.HostCopy.restore, []

        def fails(copy):
            calls.append(copy)
            if len(calls) == 3:
                raise RuntimeError("CUDA error")
            restore(copy)

        with unittest.mock.patch.object(host_copies.HostCopy, "restore", fails):
            with self.assertRaises(memtrace.NotRestored) as caught:
                with self.parked():
                    pass
            self.check_file(caught.exception.save)
            self.assertEqual([copy.name for copy in parking._copies.values() if copy.host is None], [])
            caught.exception.parked.restore()
        self.check()

    def test_too_little_host_memory(self):
        with unittest.mock.patch.object(parking.host_copies.host_memory, "available",
                                        lambda: (17, "this machine")):
            with self.assertRaisesRegex(memtrace.Error, "needs 96 B of host memory, and this machine has "
                                        "17 B free"):
                with self.parked():
                    pass
        self.check()

    def test_pinned_memory_is_rounded_up(self):
        """PyTorch takes the next power of two, so less may be left than the sum suggests."""
        for free, expected in ((1000, False), (1023, False), (1024, True)):
            with unittest.mock.patch.object(parking.host_copies.host_memory, "available",
                                            lambda free=free: (free, "this machine")):
                self.assertIs(host_copies.may_pin([513], True), expected)

    def test_other_users_of_the_memory(self):
        """They keep the address, so the tensor stays where it is."""
        gc.unfreeze()
        alias = torch.from_dlpack(self.layer.weight.detach())
        with self.parked() as away:
            (kept,) = away.kept
            self.assertEqual(kept[0], "weight")
            self.assertIn("DLPack", kept[1])
            self.assertTrue(torch.equal(alias, self.before[0]))
        from torch.multiprocessing import reductions

        del alias
        reference = reductions.StorageWeakRef(self.layer.weight.untyped_storage())
        with unittest.mock.patch.dict(reductions.shared_cache, {"handle": reference}):
            with self.parked() as away:
                self.assertEqual(away.kept, [("weight", "it was sent to another process")])
        self.check()


if __name__ == "__main__":
    unittest.main()
