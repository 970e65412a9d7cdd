"""Workloads of fixtures/workloads/train.py some of whose functions allocate from a torch.cuda.MemPool of their own, if
POOLED names them (joined by commas: all of them in one pool); else they are as they were."""
import os
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures", "workloads", "train.py")
head, main = open(SOURCE).read().split("W = {k[2:]: v for k, v in globals()", 1)
exec(compile(head, "train.py", "exec"))
pooled = [name for name in os.environ.get("POOLED", "").split(",") if name]
pool = torch.cuda.MemPool() if pooled else None
inside = False


def in_pool(name, function):
    """The function with all that it calls on its thread; a region must not begin inside of itself."""
    if name not in pooled: return function
    def call(*arguments, **kw):
        global inside
        if inside: return function(*arguments, **kw)
        inside = True
        try:
            with torch.cuda.use_mem_pool(pool): return function(*arguments, **kw)
        finally:
            inside = False
    return call


def scratch(n): return torch.empty(n, dtype=torch.uint8, device="cuda")
def kept(n): return torch.empty(n, dtype=torch.uint8, device="cuda")
scratch, kept = in_pool("scratch", scratch), in_pool("kept", kept)


def w_mixed(steps=8, seed=3):
    """Two kinds of blocks, short-lived and long-lived; the cache is emptied occasionally."""
    random.seed(seed); live, short = [], []; T.mark("beginning")
    for i in range(steps):
        T.step = i
        with phase("mixed"):
            for _ in range(80):
                n = int(2 ** random.uniform(8, 26))
                if random.random() < .3: live.append(kept(n // 8))
                else: short.append(scratch(n))
                if len(short) > 12: short.pop(random.randrange(len(short)))
                if len(live) > 60: live.pop(random.randrange(len(live)))
        if i % 3 == 2:
            with phase("empty_cache"): torch.cuda.empty_cache()


torch.optim.AdamW.step = in_pool("step", torch.optim.AdamW.step)
nn.Embedding.forward = in_pool("Embedding", nn.Embedding.forward)
exec(compile("W = {k[2:]: v for k, v in globals()" + main, "train.py", "exec"))
