"""torch_cases.py: memtrace.report and memtrace.who_holds with a real PyTorch, on a GPU or in a dry
run."""
import asyncio
import gc
import pathlib
import sys
import threading
import unittest
import weakref

import torch
import torch.utils.checkpoint
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "python"))
import memtrace  # noqa: E402  pylint: disable=wrong-import-position


def new():
    return torch.ones(1000, device="cuda")


class Holder:
    pass


kept_list, cache, holder = [], {}, Holder()
closure = generator = error = local = loss = None


class WhoHolds(unittest.TestCase):
    """Ten planted leaks. The question names an address, so that the test itself holds nothing."""

    def chains(self, address):
        gc.collect()
        found = memtrace.who_holds(address)
        return [str(chain) for chain in found.chains], found

    def expect(self, address, *words):
        chains, found = self.chains(address)
        self.assertTrue(any(all(word in chain for word in words) for chain in chains),
                        f"{words} are in none of {chains}; {found}")

    def test_list(self):
        kept_list.append(new())
        self.expect(kept_list[0].data_ptr(), "kept_list[0]")

    def test_closure(self):
        global closure
        held = new()
        address = held.data_ptr()
        closure = lambda: held  # noqa: E731
        self.expect(address, "closure (closure variable held)")

    def test_frame_of_an_exception(self):
        global error
        addresses = []

        def fails():
            inside = new()
            addresses.append(inside.data_ptr())
            raise ValueError

        try:
            fails()
        except ValueError as caught:
            error = caught
        self.expect(addresses[0], "inside in fails")

    def test_attribute(self):
        holder.field = new()
        self.expect(holder.field.data_ptr(), "holder.field")

    def test_cache(self):
        cache["key", 3] = {"value": new()}
        self.expect(cache["key", 3]["value"].data_ptr(), "cache[('key', 3)]['value']")

    def test_generator(self):
        global generator

        def runs():
            inside = new()
            yield inside.data_ptr()
            del inside

        generator = runs()
        self.expect(next(generator), "generator (variable inside of a suspended generator)")

    def test_thread_local(self):
        global local
        local = threading.local()
        local.value = new()
        self.expect(local.value.data_ptr(), "local.value")

    def test_local_of_a_thread(self):
        ready, stop, addresses = threading.Event(), threading.Event(), []

        def work():
            inside = new()
            addresses.append(inside.data_ptr())
            ready.set()
            stop.wait()
            del inside

        thread = threading.Thread(target=work, name="loader")
        thread.start()
        ready.wait()
        self.expect(addresses[0], "inside in work", "thread loader")
        stop.set()
        thread.join()

    def test_autograd_graph(self):
        global loss
        weight, data = nn.Parameter(new()), new()
        address = data.data_ptr()
        loss = (weight * data).sum()
        del data
        self.expect(address, "loss.grad_fn", "MulBackward0._saved_other")

    def test_hook(self):
        held, weight = new(), nn.Parameter(new())
        address = held.data_ptr()
        holder.weight = weight

        def hook(gradient, held=held):
            return gradient

        weight.register_hook(hook)
        del held, hook
        self.expect(address, "holder.weight._backward_hooks")

    def test_gradient(self):
        holder.trained = nn.Parameter(new())
        holder.trained.sum().backward()
        self.expect(holder.trained.grad.data_ptr(), "holder.trained.grad")

    def test_memory_that_only_cpp_holds(self):
        new() @ new()  # cuBLAS gets a workspace
        addresses = set()
        for segment in torch.cuda.memory_snapshot():
            at = segment["address"]
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    addresses.add((block["size"], at))
                at += block["size"]
        _, workspace = max(addresses)
        chains, found = self.chains(workspace)
        self.assertEqual(chains, [])
        self.assertIn("C++ holds it", str(found))

    def test_search_is_bounded(self):
        kept_list.append([[new()]])
        found = memtrace.who_holds(kept_list[-1][0][0].data_ptr(), limit=1)
        self.assertFalse(found.complete)
        self.assertIn("stopped", str(found))

    def test_what_it_does_not_take(self):
        with self.assertRaisesRegex(memtrace.Error, "not float"):
            memtrace.who_holds(1.5)
        with self.assertRaisesRegex(memtrace.Error, "FILE:LINE"):
            memtrace.who_holds("train.py")


class Search(unittest.TestCase):
    """The search changes nothing, runs nothing of the program, and ends."""

    def found(self, question, **options):
        gc.collect()
        return memtrace.who_holds(question, **options)

    def test_it_keeps_nothing_alive(self):
        """Frames of a Python before 3.13 keep the copies that f_locals made."""
        inside = new()
        reference = weakref.ref(inside)
        self.assertIn("inside in test_it", str(self.found(inside.data_ptr())))
        del inside
        gc.collect()
        self.assertIsNone(reference())

    def test_copies_that_the_program_uses_stay(self):
        inside = new()
        copies = locals()
        self.found(inside.data_ptr())
        self.assertIs(copies["inside"], inside)

    def test_hooks_of_saved_tensors_do_not_run(self):
        """They may compute a checkpoint again."""
        global loss
        runs = []
        weight, data = nn.Parameter(new()), new()
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: ("packed", tensor),
                                                      lambda packed: runs.append(1) or packed[1]):
            loss = (weight * data).sum()
        address = data.data_ptr()
        del data
        self.assertIn("MulBackward0._saved_other", str(self.found(address)))
        loss = torch.utils.checkpoint.checkpoint(
            lambda data: runs.append(2) or (weight * data).sin().sum(), new(), use_reentrant=False)
        runs.clear()
        self.found(weight)
        self.assertEqual(runs, [])

    def test_functions_of_the_program_in_the_graph(self):
        class Function(torch.autograd.Function):
            @staticmethod
            def forward(context, data, kept):
                context.save_for_backward(kept)
                context.other = kept + 1
                return data * 2

        global loss
        kept = new()
        address = kept.data_ptr()
        loss = Function.apply(nn.Parameter(new()), kept).sum()
        other = loss.grad_fn.next_functions[0][0].other.data_ptr()
        del kept
        self.assertIn("loss.grad_fn ... FunctionBackward._saved_tensors", str(self.found(address)))
        self.assertIn("FunctionBackward.other", str(self.found(other)))

    def test_no_code_of_the_program_runs(self):
        runs = []

        class Strange:
            """Each of these may import a module, raise, or talk to a server."""
            __slots__ = ("field", "__dict__")

            @property
            def __class__(self):
                runs.append("class")
                raise RuntimeError("outside of a request")

            @property
            def grad(self):
                runs.append("property")

            def __getattr__(self, name):
                runs.append(name)
                raise AttributeError(name)

        class Meta(type):
            def __getattribute__(cls, name):
                runs.append(f"meta {name}")
                return type.__getattribute__(cls, name)

        class Made(metaclass=Meta):
            __slots__ = ("slot",)

        class Mapping(dict):
            def items(self):
                runs.append("items")
                return ()

        class Tensor(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, arguments=(), named=None):
                runs.append(function)
                raise ValueError(function)

        strange, made = Strange(), Made()
        made.slot = [new()]
        strange.field = Mapping(key=[new()])
        kept_list.append(strange)
        kept_list.append(made)
        address = dict.__getitem__(strange.field, "key")[0].data_ptr()
        in_made = made.slot[0].data_ptr()
        other = new().as_subclass(Tensor)
        lazy = nn.LazyLinear(4)
        del strange, made
        runs.clear()
        self.assertIn(".field['key'][0]", str(self.found(address)))
        self.assertIn("].slot[0]", str(self.found(in_made)))
        memtrace.report(lazy)
        self.assertEqual(runs, [])
        del kept_list[-2:], other

    def test_names_are_escaped(self):
        """They may have escapes of a terminal, or characters that change the order of a line."""
        name, one = "x\u202e\x1b[31m", Holder()
        setattr(one, name, new())
        address, holder.many = getattr(one, name).data_ptr(), [one]
        del one
        held = self.found(address)
        holder.many = None
        for text in (str(held), held._repr_html_()):
            self.assertIn(r"x\u202e\x1b[31m", text)
            self.assertFalse({"\x1b", "\u202e"} & set(text))

    def test_coroutines_and_classes(self):
        async def waits():
            inside = new()
            addresses.append(inside.data_ptr())
            await asyncio.sleep(0)
            del inside

        addresses = []
        holder.coroutine = waits()
        holder.coroutine.send(None)
        self.assertIn("coroutine (variable inside of a suspended coroutine)", str(self.found(addresses[0])))
        Holder.shared = new()
        self.assertIn("Holder.shared", str(self.found(Holder.shared.data_ptr())))
        del Holder.shared
        holder.coroutine.close()

    def test_it_ends_in_a_large_heap(self):
        """Many objects in one level, and a chain of many levels."""
        inside = new()
        holder.many = [[inside] for _ in range(50_000)]
        address = inside.data_ptr()
        del inside
        self.assertIn("holder.many[", str(self.found(address)))
        holder.many = None
        chain = [new()]
        address = chain[0].data_ptr()
        for _ in range(1000):
            chain = [chain]
        holder.many = chain
        del chain
        found = self.found(address)
        self.assertFalse(found.complete)
        self.assertIn("stopped at its limit", str(found))
        holder.many = None

    def test_many_nodes_of_a_graph(self):
        global loss
        weight = nn.Parameter(new())
        loss = sum((weight * new()).sum() for _ in range(500))
        found = self.found(weight)
        self.assertLessEqual(len(found.chains), 10)
        loss = None

    def test_memory_that_is_free(self):
        address = new().data_ptr()
        kept = torch.ones(10_000_000, device="cuda")
        found = self.found(address)
        self.assertEqual((found.tensors, found.is_allocated), (0, False))
        self.assertIn("it is free", str(found))
        self.assertTrue(self.found(kept.data_ptr()).is_allocated)
        with self.assertRaisesRegex(memtrace.Error, "not bool"):
            memtrace.who_holds(True)

    def test_sites(self):
        torch.cuda.memory._record_memory_history(stacks="python")
        try:
            held, line = new(), new.__code__.co_firstlineno + 1
            self.assertIn("held in test_sites", str(self.found(f"python/torch_cases.py:{line}")))
            with self.assertRaisesRegex(memtrace.Error, "no memory that is allocated now"):
                self.found(f"cases.py:{line}")
            del held
        finally:
            torch.cuda.memory._record_memory_history(None)


class Tied(nn.Module):
    """Tied weights, a view as a buffer, a frozen part."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(512, 256)
        self.head = nn.Linear(256, 512, bias=False)
        self.head.weight = self.embedding.weight
        self.frozen = nn.Linear(256, 256)
        self.frozen.requires_grad_(False)
        self.register_buffer("mask", torch.ones(64, 64).t()[:32])

    def forward(self, words):
        return self.head(self.frozen(self.embedding(words)))


def trained(module=Tied):
    model = module().cuda()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for _ in range(2):
        words = torch.zeros(4, 16, dtype=torch.long, device="cuda")
        model(words).float().sum().backward()
        optimizer.step()
    return model, optimizer


class Report(unittest.TestCase):
    def row(self, report, name):
        (found,) = [row for row in report.rows if row.name == name and row.device == "cuda:0"]
        return found

    def test_names_kinds_and_shares(self):
        model, optimizer = trained()
        report = memtrace.report(model, optimizer)
        weight = self.row(report, "embedding.weight")
        self.assertEqual((weight.size_bytes, weight.kind), (512 * 256 * 4, "parameters"))
        self.assertEqual(weight.views, ("head.weight",))
        self.assertEqual(self.row(report, "embedding.weight.grad").kind, "gradients")
        self.assertEqual(self.row(report, "embedding.weight.exp_avg").kind, "optimizer state")
        self.assertEqual(self.row(report, "mask").kind, "buffers")
        self.assertNotIn("frozen.weight.grad", [row.name for row in report.rows])

    def test_bytes_are_those_of_the_allocator(self):
        model, optimizer = trained()
        report = memtrace.report(model, optimizer)
        (device,) = [one for one in report.devices if one.device == "cuda:0"]
        self.assertEqual(device.allocated_bytes, torch.cuda.memory_allocated())
        held = {row.block_bytes for row in report.rows if row.device == "cuda:0"}
        self.assertNotIn(None, held)
        self.assertGreaterEqual(device.allocated_bytes, device.size_bytes)

    def test_what_it_cannot_name_is_counted(self):
        words = nn.Parameter(torch.ones(10, 100, device="cuda"))
        target = torch.zeros(10, dtype=torch.long, device="cuda")
        before = memtrace.report().devices[0].beyond_bytes
        loss, hooks = nn.functional.cross_entropy, sys.modules.get("memtrace_dry_run.hooks")
        if hooks: # operators pass through Python, where their results become known to the report
            loss = hooks.switched_off(loss)
        result = loss(words, target)
        found = memtrace.report()
        # The logarithms of the probabilities, and the sum of the weights, are saved in C++.
        self.assertEqual(found.devices[0].beyond_bytes - before, 4096 + 512, str(result))
        self.assertIn("that no tensor here uses", str(found))

    def test_nested_tensors(self):
        kept = torch.nested.nested_tensor([torch.ones(2, device="cuda"), torch.ones(3, device="cuda")])
        jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
        sizes = [row.size_bytes for row in memtrace.report().rows if row.shape == ()]
        self.assertIn(20, sizes)
        del kept, jagged

    def test_text(self):
        model, optimizer = trained()
        others = [new() for _ in range(30)]
        short, full = memtrace.report(model, optimizer), memtrace.report(model, optimizer, verbose=True)
        del others
        self.assertIn("= head.weight", str(full))
        self.assertRegex(str(short), r"\n  \d+ more storages, .*; verbose=True shows them\n")
        self.assertNotIn("more storages", str(full))
        self.assertLessEqual(max(len(line) for line in str(full).splitlines()), 80)


if __name__ == "__main__":
    unittest.main()
