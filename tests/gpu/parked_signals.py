#!/usr/bin/env python3
"""memtrace.parked on a GPU under real SIGINTs at random moments: afterwards each value is what it was,
bit for bit, or NotRestored is raised and its file has each value.

    parked_signals.py [--interrupts N] [--processes N] [--asserts N] [--minutes N] [--no-values]

Six models, each in processes of its own; one is compiled. Then processes in which an assertion of a
kernel fails inside the block, so that no CUDA call works afterwards. Prints one line for each process,
a JSON document and a summary line; exits with 1 if something is lost or too few interrupts arrived.
--no-values: for a dry run, in which kernels compute nothing."""
import argparse
import contextlib
import gc
import json
import os
import pathlib
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODELS = ("mlp", "images", "tied", "types", "compiled", "sparse")
SETTLE_SECONDS = 30
armed = False
seen = 0


def handler(_number, _frame):
    """As Python's own, but only while a block runs, and it counts."""
    global seen
    seen += 1
    if armed:
        raise KeyboardInterrupt


# ---- the sender -------------------------------------------------------------


def send(pid, requests, answers):
    """For each pair of delays that it reads, sends one or two SIGINTs, and a byte when it has."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        words = os.read(requests, 16)
        if len(words) < 16:
            os._exit(0)
        start = time.perf_counter()
        for delay in struct.unpack("dd", words):
            if delay >= 0:
                while time.perf_counter() - start < delay:
                    pass
                os.kill(pid, signal.SIGINT)
        os.write(answers, b".")


class Sender:
    """A process of its own, made before CUDA starts: a thread would need Python's lock."""

    def __init__(self):
        requests, self.requests = os.pipe()
        self.answers, answers = os.pipe()
        pid = os.getpid()
        if os.fork() == 0:
            os.close(self.requests)
            send(pid, requests, answers)
        os.close(requests)

    def start(self, first, second=-1.0):
        os.write(self.requests, struct.pack("dd", first, second))

    def finish(self, before, expected):
        """Waits until all signals were handled. Two that are close may arrive as one."""
        if select.select([self.answers], [], [], 5)[0]:
            os.read(self.answers, 1)
        end = time.monotonic() + 0.2
        while seen < before + expected and time.monotonic() < end:
            time.sleep(0.0002)


# ---- the models -------------------------------------------------------------


def trained(model, optimizer, *inputs, run=None):
    """Two steps, so that gradients and state exist."""
    run = run or model
    for _ in range(2):
        run(*inputs).float().sum().backward()
        optimizer.step()
    return model, optimizer, lambda: run(*inputs)


def make(name):
    """Returns a model, its optimizer, and a function that uses them."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    if name == "mlp":
        model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(8))).cuda()
        return trained(model, torch.optim.AdamW(model.parameters()), torch.ones(4, 512, device="cuda"))
    if name == "images":
        model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 128, 3),
                              nn.Flatten(), nn.Linear(128 * 12 * 12, 100))
        model = model.cuda().to(memory_format=torch.channels_last)
        return trained(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
                       torch.rand(2, 3, 16, 16, device="cuda"))
    if name == "tied":
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.head = nn.Embedding(4096, 256), nn.Linear(256, 4096, bias=False)
                self.layers = nn.TransformerEncoder(
                    nn.TransformerEncoderLayer(256, 4, 512, batch_first=True), 2)
                self.head.weight = self.embedding.weight

            def forward(self, words):
                return self.head(self.layers(self.embedding(words)))

        model = Tied().cuda()
        return trained(model, torch.optim.AdamW(model.parameters(), fused=True),
                       torch.zeros(2, 16, dtype=torch.long, device="cuda"))
    if name == "types":
        model = nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 1024)).cuda().bfloat16()
        base = torch.randn(512, 512, device="cuda")
        for key, value in {"view": base.t()[::2, 1:], "row": base[3], "whole": torch.arange(1000, device="cuda"),
                           "complex": torch.randn(1000, device="cuda", dtype=torch.complex64),
                           "mask": torch.rand(999, device="cuda") > 0.5, "halved": base.half(),
                           "eight": base.to(torch.float8_e4m3fn), "csr": torch.eye(64, device="cuda").to_sparse_csr(),
                           "host": torch.randn(10), "empty": torch.empty(0, 3, device="cuda")}.items():
            model.register_buffer(key, value)
        return trained(model, torch.optim.Adagrad(model.parameters()),
                       torch.ones(2, 1024, device="cuda", dtype=torch.bfloat16))
    if name == "compiled":
        return compiled()
    layer = nn.Embedding(20000, 64, sparse=True).cuda()
    return trained(layer, torch.optim.SparseAdam(layer.parameters()),
                   torch.arange(0, 900, 3, device="cuda"), run=lambda words: layer(words))


backend = None


def compiled():
    """With the compiler that works here."""
    global backend
    import torch
    from torch import nn

    for backend in ("inductor", "aot_eager", "eager"):
        model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).cuda()
        try:
            return trained(model, torch.optim.Adam(model.parameters()), torch.ones(4, 512, device="cuda"),
                           run=torch.compile(model, backend=backend))
        except Exception as error:  # pylint: disable=broad-except
            print(f"{backend}: {type(error).__name__}", file=sys.stderr)
            torch._dynamo.reset()
    raise SystemExit("no compiler works")


def tensors_of(model, optimizer):
    """All storages: {name: tensor of bytes}."""
    import torch
    from memtrace import tensors

    found = {}
    for item in tensors.named([model], [optimizer]):
        for suffix, part in tensors.parts(item.tensor):
            storage = tensors.storage_of(part)
            view = torch.empty(0, dtype=torch.uint8, device=storage.device)
            found[item.name + suffix] = view.set_(storage, 0, (storage.nbytes(),))
    return found


def attributes(model, optimizer):
    return [sorted(owner.__dict__) for owner in (*model.modules(), optimizer)] + [
        len(optimizer._optimizer_step_pre_hooks)]


# ---- rounds -----------------------------------------------------------------


class Worker:
    def __init__(self, name, values):
        self.name, self.sender = name, Sender()
        signal.signal(signal.SIGINT, handler)
        sys.path.insert(0, str(ROOT / "python"))
        import torch
        import memtrace
        from memtrace import parking

        self.torch, self.memtrace, self.parking, self.values = torch, memtrace, parking, values
        self.model, self.optimizer, self.use = make(name)
        self.remember()
        self.attributes = attributes(self.model, self.optimizer)
        # `parked` looks at all objects of Python: without the frozen ones a block is short, and more
        # of the signals arrive while it copies.
        gc.collect()
        gc.freeze()
        self.counts = dict.fromkeys(("rounds", "interrupts", "double", "late", "lost", "guards_left",
                                     "restored_later", "not_restored", "used"), 0)

    def remember(self):
        self.before = {key: value.clone() for key, value in tensors_of(self.model, self.optimizer).items()}

    def block(self, dice):
        """The statement: with what a user does inside, and memory that others overwrite."""
        with self.memtrace.parked(self.model, self.optimizer) as away:
            junk = self.torch.full((max(away.moved_bytes, 1),), 255, dtype=self.torch.uint8, device="cuda")
            # An interrupt while TorchDynamo compiles is a test of TorchDynamo.
            if dice.random() < 0.2 and not (armed and self.name == "compiled"):
                with contextlib.suppress(self.memtrace.Error):
                    self.use()
                    self.counts["used"] += 1
            del junk

    def length(self):
        """Seconds of a block."""
        dice, times = random.Random(0), []
        for _ in range(7):
            self.torch.cuda.synchronize()
            start = time.perf_counter()
            self.block(dice)
            times.append(time.perf_counter() - start)
        return sorted(times)[3]

    def round(self, dice, seconds):
        global armed
        counts, is_double, before = self.counts, dice.random() < 1 / 3, seen
        first = dice.uniform(0, 1.1 * seconds)
        second = first + dice.uniform(0, 0.3 * seconds) if is_double else -1.0
        inside = False
        try:
            armed = True
            self.sender.start(first, second)
            inside = True
            self.block(dice)
            inside = False
        except KeyboardInterrupt:
            counts["interrupts" if inside else "late"] += 1
            counts["double"] += is_double and inside
        except self.memtrace.NotRestored as error:
            counts["not_restored"] += 1
            print(error, file=sys.stderr)
        finally:
            armed = False
        self.sender.finish(before, 1 + is_double)
        counts["rounds"] += 1

    def check(self):
        end = time.monotonic() + SETTLE_SECONDS
        self.counts["restored_later"] += bool(self.parking._blocks)
        while self.parking._blocks and time.monotonic() < end:
            time.sleep(0.001)
        now = tensors_of(self.model, self.optimizer)
        wrong = [name for name, value in self.before.items() if value.numel() != now[name].numel()]
        if self.values and not wrong:
            wrong = [name for name, value in self.before.items() if not self.torch.equal(value, now[name])]
        if wrong or self.parking._blocks:
            self.counts["lost"] += 1
            print(f"lost: {wrong}, {len(self.parking._blocks)} blocks", file=sys.stderr)
        if attributes(self.model, self.optimizer) != self.attributes:
            self.counts["guards_left"] += 1

    def run(self, interrupts, seed, deadline):
        global armed
        dice, seconds = random.Random(seed), self.length()
        while self.counts["interrupts"] < interrupts and time.time() < deadline:
            try:
                self.round(dice, seconds)
            except KeyboardInterrupt:  # between the block and the end of `try`
                armed = False
                self.counts["late"] += 1
                self.sender.finish(seen, 0)
            self.check()
            if self.counts["rounds"] % 50 == 0:
                self.use()
                self.remember()  # batch normalization counts what it sees
        self.use()
        self.torch.cuda.synchronize()
        return {**self.counts, "block_s": round(seconds, 4), "backend": backend,
                "moved_bytes": sum(value.numel() for value in self.before.values())}


# ---- an assertion of a kernel -----------------------------------------------


def check_file(worker, error, folder):
    """The file of NotRestored, compared on the host. Returns the names that are wrong."""
    torch = worker.torch
    path = os.path.join(folder, "state.pt")
    missing = error.save(path)
    found = torch.load(path, weights_only=True)
    return missing + [name for name, value in worker.expected.items() if name not in found or (
        worker.values and not torch.equal(found[name].contiguous().reshape(-1).view(torch.uint8), value))]


def assertion(name, seed, values):
    """Returns {lost, ...} of one process."""
    global armed
    from_host = Worker(name, values)
    torch, memtrace, parking = from_host.torch, from_host.memtrace, from_host.parking
    dice, seconds = random.Random(seed), from_host.length()
    named = memtrace.tensors.named([from_host.model], [from_host.optimizer])
    from_host.expected = {
        item.name + suffix: part.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        for item in named for suffix, part in memtrace.tensors.parts(item.tensor)}
    ended, error, chain = "nothing", None, ""
    before = seen
    try:
        armed = True
        if seed % 2:
            from_host.sender.start(dice.uniform(0, 1.5 * seconds))
        with memtrace.parked(from_host.model, from_host.optimizer):
            torch.zeros(4, device="cuda")[torch.tensor([10**6], device="cuda")]
            torch.cuda.synchronize()
    except memtrace.NotRestored as caught:
        error, ended = caught, "NotRestored"
        chain = type(caught.__cause__).__name__
    except KeyboardInterrupt:
        ended = "KeyboardInterrupt"
    except Exception as other:  # pylint: disable=broad-except
        ended = type(other).__name__
    finally:
        armed = False
    if seed % 2:
        from_host.sender.finish(before, 1)
    if parking._blocks and error is None:
        try:
            parking.restore_all()
        except memtrace.NotRestored as caught:
            error = caught
    with tempfile.TemporaryDirectory() as folder:
        wrong = check_file(from_host, error, folder) if error is not None else []
    # An interrupt before the failure: the block has ended, and the GPU has the values.
    is_lost = bool(wrong) or (error is None and ended not in ("KeyboardInterrupt", "nothing"))
    if error is None:
        from_host.check()
        is_lost = is_lost or from_host.counts["lost"] > 0
    result = {"ended": ended, "chain": chain, "lost": int(is_lost), "wrong": wrong[:3]}
    parking._blocks.clear()
    parking._copies.clear()
    del error, from_host, named
    gc.collect()  # pinned memory is freed without the GPU
    return result


# ---- all processes ----------------------------------------------------------


def start(*words, values):
    option = [] if values else ["--no-values"]
    return subprocess.Popen([sys.executable, __file__, *option, *map(str, words)], stdout=subprocess.PIPE,
                            env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1",
                                 "PYTHONDONTWRITEBYTECODE": "1"}, text=True)


def answer(process, words, limit):
    """The last line of a process as JSON, with its status."""
    try:
        output, _ = process.communicate(timeout=limit)
        found = json.loads((output.strip().splitlines() or ["{}"])[-1])
    except (subprocess.TimeoutExpired, ValueError):
        process.kill()
        found = {}
    found = {"process": " ".join(map(str, words)), "status": process.wait(), **found}
    print(json.dumps(found), flush=True)
    return found


def all_of(arguments):
    deadline, started = time.time() + 60 * arguments.minutes, time.time()
    share = -(-arguments.interrupts // arguments.processes)
    tasks = [("worker", MODELS[number % len(MODELS)], share, number, deadline - 60)
             for number in range(arguments.processes)]
    running = [(start(*task, values=arguments.values), task) for task in tasks]
    workers = [answer(process, task, max(deadline - time.time(), 30)) for process, task in running]
    asserts, tasks = [], [("assert", MODELS[number % len(MODELS)], number) for number in range(arguments.asserts)]
    while tasks:
        now, tasks = tasks[:arguments.processes], tasks[arguments.processes:]
        running = [(start(*task, values=arguments.values), task) for task in now]
        asserts += [answer(process, task, 120) for process, task in running]
    total = {key: sum(worker.get(key, 0) for worker in workers) for key in (
        "rounds", "interrupts", "double", "late", "lost", "guards_left", "restored_later", "not_restored", "used")}
    total["asserts"] = len(asserts)
    total["asserts_not_restored"] = sum(one.get("ended") == "NotRestored" for one in asserts)
    total["asserts_lost"] = sum(one.get("lost", 1) for one in asserts)
    total["ended_by_signal"] = sum(one["status"] < 0 for one in workers + asserts)
    total["incomplete"] = sum("lost" not in one or one["status"] > 0 for one in workers + asserts)
    total["seconds"] = round(time.time() - started)
    print(json.dumps({"workers": workers, "asserts": asserts, "total": total}))
    faults = [key for key in ("lost", "guards_left", "not_restored", "used", "asserts_lost",
                              "ended_by_signal", "incomplete") if total[key]]
    if total["interrupts"] < arguments.interrupts:
        faults.append("too few interrupts")
    print(f"parked under SIGINT: {total['interrupts']} interrupts in {total['rounds']} blocks "
          f"({total['double']} double), {total['lost']} lost, {total['guards_left']} guards left, "
          f"{total['restored_later']} restored later; {total['asserts']} failed kernels, "
          f"{total['asserts_not_restored']} NotRestored, {total['asserts_lost']} lost; {total['seconds']} s: "
          f"{'FAIL: ' + ', '.join(faults) if faults else 'ok'}")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interrupts", type=int, default=10000)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--asserts", type=int, default=12)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--no-values", dest="values", action="store_false")
    parser.add_argument("task", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.task:
        return all_of(arguments)
    kind, name, *rest = arguments.task
    if kind == "worker":
        interrupts, seed, deadline = int(rest[0]), int(rest[1]), float(rest[2])
        print(json.dumps(Worker(name, arguments.values).run(interrupts, seed, deadline)), flush=True)
    else:
        print(json.dumps(assertion(name, int(rest[0]), arguments.values)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
