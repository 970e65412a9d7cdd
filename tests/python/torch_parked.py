"""torch_parked.py: memtrace.parked with a real PyTorch, on a GPU or in a dry run. In a dry run kernels
compute nothing, so values are compared on a GPU only (MEMTRACE_TEST_VALUES=1)."""
import asyncio
import copy
import functools
import gc
import io
import os
import pickle
import signal
import unittest
import unittest.mock

import torch
from torch import nn
from torch_cases import memtrace, new, trained

HAS_VALUES = os.environ.get("MEMTRACE_TEST_VALUES") == "1"


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


class Parked(unittest.TestCase):
    def setUp(self):
        gc.collect()  # models of earlier tests

    def state(self, model, optimizer):
        tensors = {name: tensor for name, tensor in model.state_dict().items()}
        tensors.update({f"{name}.grad": p.grad for name, p in model.named_parameters() if p.grad is not None})
        for number, state in enumerate(optimizer.state.values()):
            tensors.update({f"{number}.{key}": value for key, value in state.items()})
        return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}

    def check_restored(self, model, optimizer, before):
        after = self.state(model, optimizer)
        self.assertEqual(before.keys(), after.keys())
        if HAS_VALUES:
            for name, tensor in before.items():
                self.assertTrue(torch.equal(bits(tensor), bits(after[name])), name)
        self.assertEqual(model.head.weight.data_ptr(), model.embedding.weight.data_ptr())

    def test_memory_is_freed_and_comes_back(self):
        model, optimizer = trained()
        for _ in range(10):
            before, values = torch.cuda.memory_allocated(), self.state(model, optimizer)
            with memtrace.parked(model, optimizer) as away:
                freed = before - torch.cuda.memory_allocated()
                self.assertGreaterEqual(freed, away.moved_bytes)
                self.assertGreater(away.moved_bytes, 512 * 256 * 4 * 4)
                self.assertEqual(away.kept, [])
            self.assertEqual(torch.cuda.memory_allocated(), before)
            self.check_restored(model, optimizer, values)

    def test_under_exceptions(self):
        model, optimizer = trained()
        before, values = torch.cuda.memory_allocated(), self.state(model, optimizer)
        for _ in range(10):
            with self.assertRaises(KeyError):
                with memtrace.parked(model, optimizer):
                    raise KeyError
        self.assertEqual(torch.cuda.memory_allocated(), before)
        self.check_restored(model, optimizer, values)

    def test_nested(self):
        model, optimizer = trained()
        before, values = torch.cuda.memory_allocated(), self.state(model, optimizer)
        with memtrace.parked(model):
            between = torch.cuda.memory_allocated()
            with memtrace.parked(model, optimizer):
                self.assertLess(torch.cuda.memory_allocated(), between)
            self.assertEqual(torch.cuda.memory_allocated(), between)
        self.assertEqual(torch.cuda.memory_allocated(), before)
        self.check_restored(model, optimizer, values)

    def test_use_is_refused(self):
        model, optimizer = trained()
        words = torch.zeros(1, 1, dtype=torch.long, device="cuda")
        with memtrace.parked(model, optimizer):
            weight, file = model.head.weight, io.BytesIO()
            for number, use in enumerate((
                    lambda: model(words), lambda: model.frozen(new()), optimizer.step,
                    model.state_dict, lambda: model.load_state_dict({}), optimizer.state_dict,
                    lambda: optimizer.load_state_dict({}), model.half, model.cpu,
                    lambda: nn.Sequential(model).state_dict(), lambda: nn.Sequential(model).half(),
                    lambda: nn.Sequential(model).load_state_dict({}, strict=False),
                    lambda: copy.deepcopy(model), lambda: copy.copy(model),
                    lambda: copy.deepcopy(nn.Sequential(model)), lambda: copy.deepcopy(optimizer),
                    lambda: copy.deepcopy(weight), lambda: copy.deepcopy(weight.detach()),
                    lambda: pickle.dumps(model), lambda: pickle.dumps(optimizer),
                    lambda: pickle.dumps(weight), lambda: torch.save(model, file),
                    lambda: torch.save(weight, file), lambda: torch.save(weight.detach(), file))):
                with self.subTest(number), self.assertRaisesRegex(memtrace.Error, "parked"):
                    use()
        model(words).sum().backward()
        optimizer.step()
        model.load_state_dict(copy.deepcopy(model).state_dict())
        optimizer.load_state_dict(copy.deepcopy(optimizer).state_dict())
        self.assertEqual([owner.__dict__ for owner in model.parameters() if owner.__dict__], [])

    def test_hooks_views_and_flags_stay(self):
        model, optimizer = trained()
        view, hooks = model.embedding.weight[3], []
        model.embedding.weight.register_hook(lambda gradient: hooks.append(gradient) or gradient)
        version = model.embedding.weight._version
        with memtrace.parked(model, optimizer):
            pass
        self.assertEqual(view.data_ptr(), model.embedding.weight.data_ptr() + 3 * 256 * 4)
        self.assertFalse(model.frozen.weight.requires_grad)
        self.assertEqual(model.embedding.weight._version, version)
        model(torch.zeros(1, 1, dtype=torch.long, device="cuda")).sum().backward()
        self.assertEqual(len(hooks), 1)

    def test_what_is_refused(self):
        class FullyShardedDataParallel(nn.Module):
            pass

        with self.assertRaisesRegex(memtrace.Error, "fully_shard"):
            with memtrace.parked(FullyShardedDataParallel()):
                pass
        with self.assertRaisesRegex(memtrace.Error, "takes models"):
            memtrace.parked(3)
        graph = torch.cuda.CUDAGraph()
        with self.assertRaisesRegex(memtrace.Error, "CUDA graphs"):
            with memtrace.parked(nn.Linear(2, 2).cuda()):
                pass
        del graph

    def test_a_failed_way_back_loses_nothing(self):
        model, optimizer = trained()
        before, values = torch.cuda.memory_allocated(), self.state(model, optimizer)
        away = memtrace.parked(model, optimizer)
        total = torch.cuda.get_device_properties(0).total_memory
        with away:
            torch.cuda.set_per_process_memory_fraction(1 / total)
            torch.cuda.empty_cache()
            with self.assertRaisesRegex(memtrace.Error, "call restore"):
                away.restore()
            torch.cuda.set_per_process_memory_fraction(1.0)
        self.assertEqual(torch.cuda.memory_allocated(), before)
        self.check_restored(model, optimizer, values)

    # ---- nothing may be lost ------------------------------------------------

    def both(self, **options):
        """A model with an optimizer, what it holds, and a `parked` of both."""
        model, optimizer = trained()
        before = torch.cuda.memory_allocated()
        return model, optimizer, self.state(model, optimizer), before, memtrace.parked(
            model, optimizer, **options)

    def check(self, model, optimizer, values, before):
        self.assertEqual(torch.cuda.memory_allocated(), before)
        self.check_restored(model, optimizer, values)
        self.assertNotIn("forward", model.__dict__)
        model(torch.zeros(1, 1, dtype=torch.long, device="cuda")).sum().backward()
        optimizer.step()

    def test_an_optimizer_that_refuses_hooks(self):
        """As the wrappers of Accelerate do."""
        class Wrapper:
            def __init__(self, inner):
                self.inner, self.param_groups, self.state = inner, inner.param_groups, inner.state

            def register_step_pre_hook(self, hook):
                raise AttributeError("_optimizer_step_pre_hooks")

            def step(self):
                self.inner.step()

        model, optimizer, values, before, _ = self.both()
        wrapper = Wrapper(optimizer)
        with memtrace.parked(model, wrapper):
            self.assertLess(torch.cuda.memory_allocated(), before)
            with self.assertRaisesRegex(memtrace.Error, "parameters of Wrapper"):
                wrapper.step()
        self.check(model, wrapper, values, before)

    def test_a_script(self):
        """TorchScript has no hooks."""
        model = torch.jit.script(nn.Sequential(nn.Linear(64, 64), nn.ReLU())).cuda()
        words, before = torch.ones(2, 64, device="cuda"), torch.cuda.memory_allocated()
        with memtrace.parked(model) as away:
            self.assertEqual(away.moved_bytes, 4 * (64 * 64 + 64))
            with self.assertRaisesRegex(memtrace.Error, "parked"):
                model(words)
        self.assertEqual(torch.cuda.memory_allocated(), before)
        model(words)

    def test_interrupts_while_bytes_move(self):
        """A real signal, before and after each storage changes, in both directions."""
        model, optimizer, values, before, _ = self.both()
        copies = memtrace.parking.HostCopy
        for method in ("free", "restore"):
            for number in range(6):
                calls, real = [], getattr(copies, method)

                def interrupted(copy, real=real, calls=calls, number=number):
                    real(copy)
                    calls.append(copy)
                    if len(calls) == number + 1:
                        os.kill(os.getpid(), signal.SIGINT)

                with self.subTest(method=method, number=number):
                    with unittest.mock.patch.object(copies, method, interrupted):
                        with self.assertRaises(KeyboardInterrupt):
                            with memtrace.parked(model, optimizer):
                                pass
                    self.assertEqual(torch.cuda.memory_allocated(), before)
                    self.check_restored(model, optimizer, values)

    def test_the_exception_leads_back(self):
        """Also where the program has no name for the object."""
        model, optimizer, values, before, _ = self.both()

        @memtrace.parked(model, optimizer)
        def function():
            torch.cuda.set_per_process_memory_fraction(
                1 / torch.cuda.get_device_properties(0).total_memory)
            torch.cuda.empty_cache()

        with self.assertRaisesRegex(memtrace.NotRestored, "could not be restored") as caught:
            function()
        torch.cuda.set_per_process_memory_fraction(1.0)
        caught.exception.parked.restore()
        self.check(model, optimizer, values, before)

    def test_default_device(self):
        """The copies are on the host all the same."""
        model, optimizer, values, before, away = self.both()
        with torch.device("cuda"), away:
            self.assertLessEqual(torch.cuda.memory_allocated(), before - away.moved_bytes)
        self.check(model, optimizer, values, before)

    def test_no_other_device_is_touched(self):
        """To synchronize a device makes a context there."""
        model, _, _, _, away = self.both()
        with unittest.mock.patch.object(torch.cuda, "device_count", lambda: 8), \
                unittest.mock.patch.object(torch.cuda, "synchronize") as synchronize, away:
            pass
        self.assertEqual({str(call.args[0]) for call in synchronize.call_args_list}, {"cuda:0"})
        self.assertEqual(str(model.head.weight.device), "cuda:0")

    # ---- several times, in turn, and in other kinds of functions ------------

    def test_one_object_twice(self):
        model, optimizer, values, before, away = self.both()
        with away:
            moved = away.moved_bytes
            with self.assertRaisesRegex(memtrace.Error, "in use"):
                with away:
                    pass
            self.assertLess(torch.cuda.memory_allocated(), before)
        with away:
            self.assertEqual(away.moved_bytes, moved)
        self.check(model, optimizer, values, before)

    def test_in_any_order(self):
        model, optimizer, values, before, first = self.both()
        second = memtrace.parked(model)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        with self.assertRaisesRegex(memtrace.Error, "parked"):
            model(torch.zeros(1, 1, dtype=torch.long, device="cuda"))
        second.__exit__(None, None, None)
        self.check(model, optimizer, values, before)

    def test_decorated_coroutines_and_generators(self):
        model, optimizer, values, before, away = self.both()

        @away
        async def coroutine():
            await asyncio.sleep(0)
            return torch.cuda.memory_allocated()

        @away
        def generator():
            yield torch.cuda.memory_allocated()

        self.assertLess(asyncio.run(coroutine()), before)
        self.assertLess(next(generator()), before)
        gc.collect()
        self.check(model, optimizer, values, before)

    def test_the_stream_of_the_program(self):
        """PyTorch reuses a block on its own stream without waiting for others."""
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            layer = nn.Linear(1024, 1024, device="cuda")
            with memtrace.parked(layer):
                pass
        address = layer.weight.data_ptr()
        (found,) = [segment["stream"] for segment in torch.cuda.memory_snapshot()
                    if 0 <= address - segment["address"] < segment["total_size"]]
        self.assertEqual(found, stream.cuda_stream)

    def test_compiled_functions(self):
        """Compiled code ignores hooks that modules get later. It must not run with freed memory."""
        if os.environ.get("TORCHDYNAMO_DISABLE") == "1":
            self.skipTest("TorchDynamo is off")
        compile = getattr(torch.compile, "__wrapped__", torch.compile)
        words = torch.zeros(1, 1, dtype=torch.long, device="cuda")
        for name in ("model", "function", "in place"):
            model, optimizer = trained()
            if name == "in place":
                model.compile(backend="eager")
            run = {"model": lambda model=model: compile(model, backend="eager"),
                   "function": lambda model=model: compile(lambda words: model(words), backend="eager"),
                   "in place": lambda model=model: model}[name]()
            run(words)
            graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
            with self.subTest(name), memtrace.parked(model, optimizer):
                with self.assertRaisesRegex(memtrace.Error, "parked"):
                    run(words)
            run(words)
            self.assertEqual(torch._dynamo.utils.counters["stats"]["unique_graphs"], graphs)

    # ---- kinds of tensors ---------------------------------------------------

    def moved(self, *objects):
        """Parks and restores; returns what the allocator got back, which must be all."""
        gc.collect()  # what earlier cases left could end in the block
        before = torch.cuda.memory_allocated()
        with memtrace.parked(*objects) as away:
            left = torch.cuda.memory_allocated()
            self.assertEqual(away.kept, [])
        self.assertEqual(torch.cuda.memory_allocated(), before)
        return before - left

    def model_of(self, *tensors):
        model = nn.Module()
        for number, tensor in enumerate(tensors):
            model.register_buffer(f"buffer{number}", tensor)
        return model

    def test_layouts(self):
        images = torch.rand(2, 3, 8, 8, device="cuda").to(memory_format=torch.channels_last)
        strided = torch.rand(64, 64, device="cuda").t()[::2, 1:]
        sparse = torch.eye(64, device="cuda").to_sparse()
        compressed = [torch.eye(64, device="cuda").to_sparse_csr(),
                      torch.eye(64, device="cuda").to_sparse_csc()]
        values = [images.cpu().clone(), strided.cpu().clone(), *[one.to_dense().cpu() for one in
                                                                 (sparse, *compressed)]]
        model = self.model_of(images, strided, sparse, *compressed)
        self.assertGreater(self.moved(model), 64 * 64 * 4)
        self.assertTrue(images.is_contiguous(memory_format=torch.channels_last))
        self.assertEqual(strided.stride(), (2, 64))
        if HAS_VALUES:
            for tensor, value in zip(model.buffers(), values):
                self.assertTrue(torch.equal(tensor.to_dense() if tensor.layout != torch.strided else tensor,
                                            value.cuda()))

    def test_types(self):
        tensors = [torch.ones(1000, device="cuda").to(kind) for kind in (
            torch.bool, torch.int8, torch.bfloat16, torch.complex64, torch.float8_e4m3fn)]
        tensors.append(torch.quantize_per_tensor(torch.ones(1000, device="cuda"), 0.1, 0, torch.quint8))
        self.assertGreaterEqual(self.moved(self.model_of(*tensors)), 1000 * (1 + 1 + 2 + 8 + 1 + 1))

    def test_lazy_parameters(self):
        model = nn.Sequential(nn.Linear(64, 64), nn.LazyLinear(4)).cuda()
        self.assertGreaterEqual(self.moved(model), 64 * 64 * 4)

    def test_states_of_optimizers(self):
        for make in (functools.partial(torch.optim.Adam, capturable=True),
                     functools.partial(torch.optim.AdamW, fused=True),
                     functools.partial(torch.optim.Adam, foreach=True, amsgrad=True),
                     functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9),
                     torch.optim.Adagrad, torch.optim.Adafactor, torch.optim.LBFGS):
            layer = nn.Linear(64, 64).cuda()
            optimizer = make(layer.parameters())

            def loss(layer=layer, optimizer=optimizer):
                optimizer.zero_grad()
                value = layer(torch.ones(2, 64, device="cuda")).sum()
                value.backward()
                return value

            for _ in range(2):
                optimizer.step(loss)
            with self.subTest(type(optimizer).__name__):
                self.assertGreaterEqual(self.moved(layer, optimizer), 2 * 64 * 65 * 4)
                optimizer.step(loss)

    def test_sparse_gradients(self):
        layer = nn.Embedding(1000, 64, sparse=True).cuda()
        optimizer = torch.optim.SparseAdam(layer.parameters())
        layer(torch.ones(4, dtype=torch.long, device="cuda")).sum().backward()
        optimizer.step()
        self.assertGreaterEqual(self.moved(layer, optimizer), 3 * 1000 * 64 * 4)
        optimizer.step()

    def test_sharded_tensors(self):
        """DTensor and FSDP2."""
        if not torch.distributed.is_available():
            self.skipTest("this PyTorch has no torch.distributed")
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.testing._internal.distributed.fake_pg import FakeStore

        torch.distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
        self.addCleanup(torch.distributed.destroy_process_group)
        layer = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)).cuda()
        fully_shard(layer, mesh=init_device_mesh("cuda", (2,)))
        optimizer = torch.optim.AdamW(layer.parameters())
        words = torch.ones(2, 64, device="cuda")
        for _ in range(2):
            layer(words).sum().backward()
            optimizer.step()
        self.assertGreaterEqual(self.moved(layer, optimizer), 4 * 64 * 65 * 4)
        layer(words).sum().backward()
        optimizer.step()

    def test_a_model_of_its_own_kind(self):
        """named_parameters without an argument."""
        class Model(nn.Linear):
            def named_parameters(self, prefix="", recurse=True):
                return super().named_parameters(prefix, recurse)

        self.assertGreaterEqual(self.moved(Model(64, 64).cuda()), 64 * 64 * 4)


if __name__ == "__main__":
    unittest.main()
