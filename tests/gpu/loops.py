"""Loops whose time says what recording costs.

    loops.py NAME... [--history python|all] [--scale N] [--repeats N]

Prints one JSON object: {NAME: seconds}. Each loop runs once before it is timed, so that start-up (CUDA, libraries, the recorder's own) does not count, then --repeats times, of which the
fastest counts: what disturbs a run only ever adds to it. --history
turns PyTorch's own recording on, to compare with."""
import argparse
import json
import os
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures", "workloads"))
from train import GPT  # noqa: E402


def training(steps, batch, context, mixed, **shape):
    """A loop over training steps of a GPT."""
    torch.manual_seed(0)
    model = GPT(**shape).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=shape["d"] >= 512)
    tokens = torch.randint(0, 32000, (batch, context), device="cuda")

    def loop():
        for _ in range(steps):
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=mixed):
                out = model(tokens)
            F.cross_entropy(out.float().flatten(0, 1), tokens.flatten()).backward()
            optimizer.step()
    return loop


def gpu_bound(scale):
    """12 layers, batch 8 x 1024, bf16: the GPU is never idle."""
    return training(10 * scale, 8, 1024, True, L=12, d=768, h=12)


def allocation_bound(scale):
    """12 layers of width 128, batch 1 x 64, one optimizer kernel a parameter: Python and the allocator are the time."""
    return training(40 * scale, 1, 64, False, L=12, d=128, h=2)


def empty(scale):
    """200,000 x torch.empty."""
    def loop():
        for _ in range(200_000 * scale):
            torch.empty(1024, device="cuda")
    return loop


def launches(scale):
    """Kernels that do nothing, no allocation."""
    x = torch.zeros(1, device="cuda")

    def loop():
        for _ in range(100_000 * scale):
            x.add_(0)
    return loop


LOOPS = {"gpu_bound": gpu_bound, "allocation_bound": allocation_bound, "empty": empty, "launches": launches}


def timed(loop):
    torch.cuda.synchronize()
    start = time.perf_counter()
    loop()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+", choices=list(LOOPS))
    parser.add_argument("--history")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.history:
        torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks=arguments.history, max_entries=1_000_000)
    seconds = {}
    for name in arguments.names:
        loop = LOOPS[name](arguments.scale)
        timed(loop)
        seconds[name] = min(timed(loop) for _ in range(arguments.repeats))
        torch.cuda.empty_cache()
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
