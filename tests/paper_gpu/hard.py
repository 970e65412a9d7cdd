"""Workloads that a collector stumbles over, through the harness of fixtures/workloads/train.py: frees that wait, errors
that are caught, threads, forks, strange frames."""
import asyncio, gc, os, sys, threading
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures", "workloads", "train.py")
head, main = open(SOURCE).read().split("W = {k[2:]: v for k, v in globals()", 1)
exec(compile(head, "train.py", "exec"))


def small(n=100):
    return torch.empty(n, device="cuda")


def mlp(width=256, depth=3):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]).cuda()


def w_late(steps=6, seed=3):
    """Blocks that another stream still uses; nobody synchronizes inside a phase."""
    random.seed(seed); streams = [torch.cuda.Stream() for _ in range(3)]; T.mark("beginning")
    for i in range(steps):
        T.step = i
        with phase("late"):
            for _ in range(80):
                x = torch.empty(int(2 ** random.uniform(8, 25)), dtype=torch.uint8, device="cuda")
                for s in random.sample(streams, random.randrange(4)): x.record_stream(s)
                with torch.cuda.stream(random.choice(streams)): y = torch.empty(int(2 ** random.uniform(8, 22)), dtype=torch.uint8, device="cuda")
                y.record_stream(torch.cuda.current_stream())
                del x, y


def w_refused(steps=4):
    """Errors for want of memory, caught, and life after them."""
    keep = []; T.mark("beginning")
    for i in range(steps):
        T.step = i
        with phase("refused"):
            try:
                while True: keep.append(torch.empty(96 << 20, dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                pass
            try: torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError: pass
            del keep[: len(keep) // 2]; small()
    keep.clear()
    with phase("empty_cache"): torch.cuda.empty_cache()


def w_backwards(threads=4, steps=3):
    """Several threads train at once, each on its stream."""
    T.mark("beginning")

    def work():
        with torch.cuda.stream(torch.cuda.Stream()):
            m = mlp(); o = torch.optim.SGD(m.parameters(), lr=.1)
            for _ in range(steps):
                with record_function("thread_step"): m(torch.randn(32, 256, device="cuda")).sum().backward(); o.step(); o.zero_grad()

    with phase("threads"):
        ts = [threading.Thread(target=work, name=f"trainer{k}") for k in range(threads)]
        [t.start() for t in ts]; [t.join() for t in ts]


def w_emptied(steps=40):
    """One thread gives the cache back while others allocate."""
    done = threading.Event(); T.mark("beginning")

    def empty():
        while not done.is_set(): torch.cuda.empty_cache()

    with phase("emptied"):
        t = threading.Thread(target=empty); t.start()
        for i in range(steps): live = [torch.empty(1 << (10 + k % 14), dtype=torch.uint8, device="cuda") for k in range(30)]; del live
        done.set(); t.join()


class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((128,), float(i))


def w_loader(workers=2):
    """Forked workers, a thread that pins memory, a shell."""
    T.mark("beginning"); m = mlp(128)
    with phase("loader"):
        for x in torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=workers, pin_memory=True):
            m(x.to("cuda", non_blocking=True)).sum().backward()
    with phase("children"):
        os.system("true")
        if (child := os.fork()) == 0: os._exit(0)
        os.waitpid(child, 0)
    small()


def w_profiled(steps=3):
    """torch.profiler at the same time, and history asked for in the middle."""
    m = mlp(); T.mark("beginning")
    for i in range(steps):
        T.step = i
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True):
            with phase("profiled"): m(torch.randn(32, 256, device="cuda")).sum().backward()
        torch.cuda.memory._snapshot()


def w_frames(depth=300):
    """Frames of every kind: deep, generators, comprehensions, async, methods, executed text, C that calls back."""
    T.mark("beginning"); keep = []

    def down(n): return small() if n == 0 else down(n - 1)

    def generate():
        for k in range(3): yield small(k + 1)

    async def later():
        await asyncio.sleep(0); return small()

    async def gathered(): return await asyncio.gather(later(), later())

    class Kept:
        made = small()
        def __init__(self): self.mine = small()
        def __getattr__(self, name): return small()
        def __del__(self): small()

    with phase("frames"):
        keep += [down(depth), down(10)]
        keep += list(generate()); keep += [small() for _ in range(3)]; keep += list({k: small() for k in range(2)}.values())
        keep += asyncio.run(gathered()); k = Kept(); keep += [k.mine, k.anything]; del k
        exec("keep.append(small())"); keep.append(eval("small()")); keep += list(map(small, [1, 2])); keep.append(sorted([2, 1], key=lambda n: small(n).numel()))
        keep.append((lambda: (lambda: small())())())
    with phase("autograd"):
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): return g * 2
        x = torch.ones(10, device="cuda", requires_grad=True); x.register_hook(lambda g: g + 1); Twice.apply(x).sum().backward()
    keep.clear(); gc.collect()


def w_scopes(steps=3):
    """Scopes that are left by exceptions, by other threads, or nested deeply."""
    T.mark("beginning")
    for i in range(steps):
        T.step = i
        try:
            with phase("outer"):
                with record_function("inner"): small(); raise ValueError
        except ValueError: pass
        with contextlib.ExitStack() as stack:
            for k in range(50): stack.enter_context(record_function(f"deep{k}"))
            small()
        t = threading.Thread(target=lambda: record_function("elsewhere").__enter__()); t.start(); t.join()


exec(compile("W = {k[2:]: v for k, v in globals()" + main, "train.py", "exec"))
