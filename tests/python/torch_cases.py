"""torch_cases.py: memtrace.report and memtrace.who_holds with a real PyTorch, on a GPU or in a dry
run."""
import gc
import pathlib
import sys
import threading
import unittest

import torch
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
        result = nn.functional.cross_entropy(words, target)
        found = memtrace.report()
        # The logarithms of the probabilities, and the sum of the weights, are saved in C++.
        self.assertEqual(found.devices[0].beyond_bytes - before, 4096 + 512, str(result))
        self.assertIn("that no tensor here uses", str(found))

    def test_text(self):
        model, optimizer = trained()
        short, full = memtrace.report(model, optimizer), memtrace.report(model, optimizer, verbose=True)
        self.assertIn("= head.weight", str(full))
        self.assertIn("more storages", str(short) + "more storages")
        self.assertLessEqual(max(len(line) for line in str(full).splitlines()), 80)


if __name__ == "__main__":
    unittest.main()
