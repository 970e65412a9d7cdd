"""timed_job.py KIND PAUSE: four steps of training, with a pause of PAUSE seconds after each backward pass, in which
NCCL's watchdog thread notices that collectives ended.

ddp     DistributedDataParallel, which does not wait for its collectives with Work.wait()
open    the same, and the program ends without destroy_process_group()
waits   averages each gradient, and waits
fsdp    FSDP2, whose collectives run on streams of its own"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

KIND, PAUSE_SECONDS = sys.argv[1], float(sys.argv[2])


def model():
    layers = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8))).cuda()
    if KIND in ("ddp", "open"):
        return nn.parallel.DistributedDataParallel(layers, bucket_cap_mb=8)
    if KIND == "fsdp":
        from torch.distributed.fsdp import fully_shard
        for layer in layers:
            fully_shard(layer)
        return fully_shard(layers)
    return layers


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    trained = model()
    optimizer = torch.optim.AdamW(trained.parameters())
    for _ in range(4):
        trained(torch.randn(64, 1024, device="cuda")).sum().backward()
        time.sleep(PAUSE_SECONDS)
        if KIND == "waits":
            for parameter in trained.parameters():
                dist.all_reduce(parameter.grad, async_op=True).wait()
        optimizer.step()
        optimizer.zero_grad()
    if KIND != "open":
        dist.destroy_process_group()


main()
