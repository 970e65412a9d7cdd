"""Programs that do what real ones do beside allocating. Each prints what must be the same with and without memtrace.

    beside.py profiler [once] | subscriber | loader | processes | exit CODE | quick CODE | segv | abort | error"""
import ctypes
import glob
import multiprocessing
import os
import signal
import subprocess
import sys

import torch


def train(steps=5):
    torch.manual_seed(0)
    model = torch.nn.Linear(512, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(64, 512, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
    return f"{loss.item():.6f}"


def profiler():
    """torch.profiler, CUDA activities on: it sees its kernels and its memory; twice, between
    which it may have detached CUPTI (TEARDOWN_CUPTI=1)."""
    train(1)
    profile()
    train(1)
    if "once" not in sys.argv:
        profile()


def profile():
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA], profile_memory=True) as profile:
        loss = train()
    kernels = sum(str(event.device_type).endswith("CUDA") for event in profile.events())
    print("kernels seen:", kernels > 10, "memory seen:", any(event.self_device_memory_usage for event in profile.key_averages()), loss)


def subscriber():
    """A program that subscribes to CUPTI itself, before CUDA starts."""
    folder = os.path.dirname(os.path.dirname(torch.__file__))
    copies = glob.glob(folder + "/nvidia/*/lib/libcupti.so.1*") or ["libcupti.so.13"]
    cupti = ctypes.CDLL(copies[0])
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)
    print("subscribed:", cupti.cuptiSubscribe(ctypes.byref(ctypes.c_void_p()), callback, None), file=sys.stderr)
    print(train())


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, index):
        return torch.full((8,), float(index))


def loader():
    total = 0.0
    for method in ("fork", "forkserver", "spawn"):
        batches = torch.utils.data.DataLoader(Numbers(), batch_size=16, num_workers=4, pin_memory=True, multiprocessing_context=method)
        total += sum(batch.cuda().sum().item() for batch in batches)
    print(total)


def on_gpu(number):
    return torch.full((4,), float(number), device="cuda").sum().item()


def processes():
    """CUDA in children, and programs without it."""
    subprocess.run(["bash", "-c", "true; /bin/true"], check=True)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(sum(pool.map(on_gpu, range(8))))
    print(train(1))


def main():
    way, code = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 0
    if way in ("profiler", "subscriber", "loader", "processes"):
        globals()[way]()
        return
    print(train())
    sys.stdout.flush()
    if way == "exit":
        sys.exit(code)
    if way == "quick":
        os._exit(code)
    if way == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == "abort":
        os.abort()
    if way == "error": # a kernel that fails: CUDA is unusable after it
        torch.ones(4, device="cuda")[torch.tensor([99], device="cuda")].sum().item()


if __name__ == "__main__":
    main()
