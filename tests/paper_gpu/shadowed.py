"""A program of shadows.py: what it reads from the device, and the bytes of each request to the allocator, as JSON.

    shadowed.py CASE OUT"""

import json, sys
import torch

torch.cuda.memory._record_memory_history(max_entries=1_000_000, context=None)
torch.manual_seed(0)


def values():
    """What a program reads of small tensors is what it would read."""
    x = torch.arange(10, device="cuda")
    c = torch.zeros(4, dtype=torch.long, device="cuda")
    c[2] = 5
    c[0] += 1
    mask = torch.tensor([True, False, True], device="cuda")
    return [(x[1:5].prod() * torch.gcd(x[4], x[6])).item(), x.sum().item(), (x[x > 3]).tolist(), (x % 3 == 1).nonzero().flatten().tolist(), torch.where(x > 5, x, 0).tolist(),
            (1 - x).tolist(), (x & 1).tolist(), x.flip(0).argmax().item(), torch.unique(x // 3).tolist(), torch.bincount(x // 2).tolist(),
            c.tolist(), torch.equal(c, c), torch.nn.functional.one_hot(x % 3).sum(0).tolist(), torch.repeat_interleave(x[:4], x[:4]).tolist(),
            mask.sum().item(), x[:3][mask].tolist(), bool((x == x).all()), x.view(2, 5).t().contiguous()[1].tolist(), (x > 100).any().item(), (2 ** x[:4]).tolist(),
            torch._unique(x // 3)[0].tolist()]


def numbers():
    """Numbers of another type than the tensor's, and storages that grow."""
    borders, grown = torch.arange(10.0, device="cuda"), torch.arange(4, device="cuda")
    grown.resize_(1000)
    odd = torch.zeros(1001, dtype=torch.uint8, device="cuda")
    odd.untyped_storage().resize_(1003)
    types = [str((grown + 1j).dtype)]
    torch.set_default_dtype(torch.float64)
    types.append(str((grown + 1j).dtype))
    torch.set_default_dtype(torch.float32)
    return [odd[:16].view(torch.int64).tolist(), types, torch.bucketize(3, borders).item(), torch.searchsorted(borders, 4).item(), (3 ** torch.arange(3.0, device="cuda")).tolist(),
            grown[:4].tolist(), grown[900:903].tolist()]


def unknown():
    """Nothing that a program reads is unfit to go on with."""
    from memtrace_dry_run import shadows

    w = torch.randn(600, 600, device="cuda")
    y = w @ w
    tokens = torch.softmax(y[:4], -1).multinomial(1).flatten().tolist()
    torch.distributions.Categorical(logits=y[:4]).sample()
    share = y[y > 0].numel() / y.numel()
    corners, zeros = y[:8, :4].sigmoid(), (y[:8] == 1).sum(-1)
    return [bool((corners[:, 2:] >= corners[:, :2]).all()), bool((torch.arange(3, device="cuda") > 0).all()), bool(torch.isfinite(y).all()), bool(torch.isnan(y).any()), 0 < y.sum().item() < 1e6, all(0 < t < 599 for t in tokens),
            0.3 < share < 1.0, len(set(y[0].topk(5).indices.tolist())), torch.linalg.cholesky_ex(y[:8, :8])[1].item(),
            bool(torch.isnan(y[0]).all()), bool(torch.isnan(zeros / zeros).all()), bool(torch.isinf(1 / zeros).any()),
            [shadows.of(t).made for t in (torch.isnan(y[0]), torch.isinf(y[0]), y[0] == 1)]]


def computed():
    """What follows from known values is known, whichever operators compute it."""
    pos = torch.rand(300, 3, generator=torch.Generator().manual_seed(1)) * 6
    near, p = (torch.cdist(pos, pos) < 3).sum().item(), pos.cuda()
    apart = p[:, None] - p[None]
    ways = [torch.cdist(p, p), apart.norm(dim=-1), apart.pow(2).sum(-1).sqrt()]
    return [abs((way < 3).nonzero().shape[0] - near) <= 2 for way in ways] + [
        torch.softmax(p, -1).argmax(-1).tolist() == pos.argmax(-1).tolist(), (p[:2] @ p[:2].T).shape[0], torch.eye(3, device="cuda").lerp_(torch.ones(3, 3, device="cuda"), 0.5).sum().item()]


def forgotten():
    """What the engine, an optimizer, batch normalization or unknown values have changed is not known any more."""
    from memtrace_dry_run import shadows

    w, x, counts = torch.zeros(4, device="cuda", requires_grad=True), torch.zeros(4, device="cuda"), torch.zeros(4, dtype=torch.long, device="cuda")
    norm, large = torch.nn.BatchNorm1d(4).cuda(), torch.randn(600, 600, device="cuda")
    known = [shadows.of(t) is not None for t in (w, x, norm.running_mean)]
    w.sum().backward()
    w.grad.zero_()
    w.sum().backward()
    torch.optim.SGD([w], 1.0, foreach=True).step()
    norm(torch.randn(8, 4, device="cuda"))
    x.lerp_((large @ large)[0, :4], 0.5)
    counts.add_((large @ large)[0, :4].long()[:1].to(torch.int32))
    return known + [shadows.of(t) is None for t in (w.grad, w, norm.running_mean, x)] + [shadows.of(counts).made != shadows.KNOWN]


def written():
    """An argument that is read and filled; functions that autograd's engine calls; parts without elements."""
    x, n, w = torch.tensor([1, 2, 3], device="cuda"), torch.zeros((), dtype=torch.long, device="cuda"), torch.ones(2, device="cuda", requires_grad=True)
    torch.add(x, 1, out=x)
    w.register_hook(lambda g: n.add_(1) and None)
    (w * 2).sum().backward()
    sum_of, one = torch.zeros((), dtype=torch.long, device="cuda"), (torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda")).argmax()
    torch._foreach_add_([sum_of], [one])
    whole = torch.nn.functional.max_pool1d(torch.randn(1, 1, 1 << 20, device="cuda"), 2, return_indices=True)[1]
    whole[..., :0].zero_()
    from memtrace_dry_run import shadows
    return [x.tolist(), n.item(), shadows.of(sum_of).made != shadows.KNOWN, shadows.of(whole) is None]


def numbers_agree():
    """A number that nobody knows keeps the value that it was given: a solver's time grows, and ends."""
    y, t, steps = (torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda")).mean(), torch.zeros((), device="cuda"), 0
    while t < 2:
        later = t + y.abs()
        assert later > t
        t, steps = later, steps + 1
    error = (y.new_ones(600, 600) @ y.new_ones(600, 600)).mean()
    below = bool(error < 0.5)
    return [steps, all(bool(error < 0.5) == below and bool(error * 1 < 0.5) == below for _ in range(20))]


def printed():
    """Printing a tensor decides nothing, and reads of its values are not counted."""
    from memtrace_dry_run import notes

    y = torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda")
    repr(y[:3, :3])
    counted = [len(notes.as_dict()["answers"])]
    y[0, 0].item()
    return counted + [len(notes.as_dict()["answers"])]


def subclasses():
    """Values are known inside `__torch_dispatch__` of tensors, on tensors of a plain subclass, and under vmap."""
    found = []

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            x = torch.tensor([7, 8, 9]).cuda()
            found.extend([x.cpu().tolist(), x.sum().item(), bool((x == x).all())])
            return cls(func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {})))

    class Plain(torch.Tensor):
        pass

    x = torch.arange(3, device="cuda")
    compared = torch.vmap(lambda a, b: (a >= b) & (a < 2))(x, x)
    return [(Wrapper(x) + 1).inner.tolist()] + found + [(x.as_subclass(Plain) + 1).tolist(), compared.tolist()]


def modes():
    """Inside a dispatch mode, an operator is followed once, with all that it calls."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x = torch.arange(3, device="cuda")
    with Mode(), Mode():
        x.add_(1)
        y = [x.to("cpu"), x.clone(), torch.zeros(2, dtype=torch.int64, device="cuda") + x[0]]
    return [t.tolist() for t in [x] + y]


def experts():
    """Counts of tokens pass through the all-to-all of a fake group, also in selective checkpointing."""
    import torch.distributed as dist
    from torch.distributed._functional_collectives import all_to_all_single
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=2)
    chosen, found = torch.tensor([0, 3, 3, 1, 2, 2], device="cuda"), []

    def layer(x):
        counts = torch.histc(chosen, bins=4, min=0, max=4)
        others = torch.ops._c10d_functional.wait_tensor(all_to_all_single(counts, None, None, dist.group.WORLD))
        found.extend([others.view(2, 2).sum(1).to("cpu").tolist(), all_to_all_single(x.repeat(2), [8, 6], [4, 10], dist.group.WORLD).numel()])
        return x * 2

    x = torch.ones(7, device="cuda", requires_grad=True)
    checkpoint(layer, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts([torch.ops.aten.mm.default])).sum().backward()
    from memtrace_dry_run import notes
    counts = torch.bincount(torch.randn(4096, 256, device="cuda").topk(8).indices.flatten(), minlength=256)
    return found + [notes.as_dict()["facts"].get("fake_groups"), counts.min().item(), counts.max().item()]


def sharded():
    """Random operators of DTensor compare the states of generators, and count from them."""
    import torch.distributed as dist
    from torch.distributed.tensor import Shard, empty, init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    weight = empty(8, 4, device_mesh=init_device_mesh("cuda", (2,)), placements=[Shard(0)])
    torch.nn.init.ones_(torch.nn.init.normal_(weight))
    return [(weight.to_local() + 1).tolist()]


def drawn():
    """Numbers that the device draws; inside of a graph they are not known."""
    torch.cuda.manual_seed(0)
    answers = [(torch.rand(4, device="cuda") * 1e4).round().tolist()]
    torch.cuda.manual_seed(0)
    x, generator, graph = torch.randn(4, device="cuda"), torch.Generator("cuda"), torch.cuda.CUDAGraph()
    answers += [(x * 1e4).round().tolist(), (x > 0).sum().item(), sorted(torch.randperm(5, device="cuda").tolist()),
                torch.multinomial(torch.ones(3, device="cuda"), 2, generator=generator).numel()]
    with torch.cuda.graph(graph):
        x.uniform_()
    from memtrace_dry_run import notes
    before = len(notes.as_dict()["answers"])
    (x > 0.5).nonzero()
    return answers + [before, list(notes.as_dict()["answers"])]


def decided():
    """A number that the program compares decides; one that it reports or saves does not, nor one that it knows."""
    from memtrace_dry_run import notes

    def loss():
        return (w @ w).mean()

    def kinds(function):
        notes._state.clear()
        function()
        return sorted({place["kind"] for place in notes.as_dict()["places"]})

    def report():
        total = loss().item() + sum(loss().detach().cpu().item() for _ in range(3))
        torch.save({"loss": total}, sys.argv[2] + ".pt")
        torch.load(sys.argv[2] + ".pt")
        f"{total / 4:.3f} {max(total, 1.0)}"
        torch.tensor(total), torch.full((2,), total, device="cuda")
        torch.ones((), device="cuda").item() > 2

    def stop():
        best = 1.0
        for _ in range(2):
            mean = sum(loss().item() for _ in range(2)) / 2
            best = mean if mean < best else best

    def on_host():
        return loss().cpu().item() < 0.3

    def converted():
        return float(loss()) < 0.3

    def returned():
        value = loss().item()
        return value >= 0.3

    w = torch.randn(600, 600, device="cuda")
    found = [kinds(f) for f in (report, stop, on_host, converted, returned)]
    halved = torch.compile(lambda x, y: x * y)(torch.ones(4, device="cuda"), loss().item())
    return [found, loss().item(), halved.numel() - 1, type(loss().item()) is float, kinds(lambda: loss().item() < 0.3)]


def waits():
    """A loop that waits for a condition on unknown values ends."""
    y, turns = torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda"), 0
    while (y * y > 1e-6).any() and turns < 5000:
        turns += 1
    return [turns < 5000]


def unread():
    """Nobody computes indices that were made up, or copies of numbers that were drawn, until they are read; then they are those
    of the time of the copy."""
    from memtrace_dry_run import shadows

    def drawn():
        torch.cuda.manual_seed(1)
        return torch.rand(40, 30, device="cuda")

    expected = drawn().cpu()
    w, whole = drawn(), torch.zeros(40, 30, device="cuda")
    copies = [w.to(torch.bfloat16), w.clone(), w.t().contiguous(), w.view(torch.int32).clone(), whole.copy_(w), torch.zeros(2, 40, 30, device="cuda").copy_(w)]
    again, order = copies[0].to(torch.float64), (torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda")).sort(-1).indices
    late = [shadows.of(t).later is not None for t in (copies[0], copies[1], again, order)]
    w.mul_(2)
    order, same = order.clone(), order.tolist()
    wanted = [expected.bfloat16(), expected, expected.t(), expected.view(torch.int32), expected, expected.expand(2, 40, 30)]
    return [late, [torch.equal(a.cpu(), b) for a, b in zip(copies, wanted)], torch.equal(again.cpu(), expected.bfloat16().double()),
            torch.equal(w.cpu(), expected * 2), order.tolist() == same, all(len(set(row)) == 600 for row in same)]


def copied():
    """However often nobody read what is copied: one computation serves all copies, a failed one is repeated, and none outlives
    the last read."""
    import weakref
    from memtrace_dry_run import philox, shadows

    def drawn():
        torch.cuda.manual_seed(1)
        return torch.rand(40, 30, device="cuda")

    def counted(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise MemoryError
        return uniform(*arguments)

    expected, calls, uniform = drawn().cpu(), [], philox.uniform_
    philox.uniform_ = counted
    w, a, b, narrow, wide = drawn(), drawn(), torch.zeros(40, 30, device="cuda"), drawn(), expected
    first, function = w, weakref.ref(shadows.of(w).later.function)
    for _ in range(2000):
        w = w.clone()
        b.copy_(a)
        a.copy_(b)
    try:
        shadows.view(w, shadows.of(w))
    except MemoryError:
        calls.append("failed")
    shadows.sweep()
    clones = [torch.equal(t.cpu(), expected) for t in (w, first)] + [len(calls), function() is None]
    for dtype in [torch.float16, torch.bfloat16, torch.float32, torch.float64] * 500:
        narrow, wide = narrow.to(dtype), wide.to(dtype)
    return clones + [torch.equal(a.cpu(), expected), torch.equal(b.cpu(), expected), shadows.of(narrow).later is None, torch.equal(narrow.cpu(), wide),
                     len(calls)]


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(1000, 256), *[torch.nn.TransformerEncoderLayer(256, 4, batch_first=True, dropout=0.1) for _ in range(3)],
                               torch.nn.Linear(256, 1000)).cuda()


def training():
    """Gradients are added in place, in autograd's threads, as without shadows."""
    net, scaler = model(), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.AdamW(net.parameters())
    for step in range(4):
        ids = torch.randint(0, 1000, (4, 64 + 16 * step), device="cuda")
        with torch.autocast("cuda", torch.float16):
            out = net(ids)
            loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), ids.flatten())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return [scaler.get_scale(), len(optimizer.state)]


def joined():
    """The engine adds in place to a gradient of which Python has seen another view."""

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = torch.randn(1024, 1024, device="cuda", requires_grad=True)
    for _ in range(4):
        x = x * 3
        x = x + Doubled.apply(x.view(-1)).view_as(x)
    (x * 3).sum().backward()
    return [x.grad_fn is not None]


def checkpointed():
    """Python that autograd's engine calls has shadows: experts see as many tokens when they are computed again."""
    from torch.utils.checkpoint import checkpoint
    experts = torch.nn.ModuleList(torch.nn.Linear(128, 128) for _ in range(4)).cuda()
    gate, seen = torch.nn.Linear(128, 4).cuda(), []

    def layer(x):
        chosen, out = gate(x).argmax(-1), torch.zeros_like(x)
        for i, expert in enumerate(experts):
            rows = torch.where(chosen == i)[0]
            seen.append(rows.numel())
            out = out.index_add(0, rows, expert(x[rows]))
        return out

    x = torch.randn(512, 128, device="cuda", requires_grad=True)
    for reentrant in (True, False):
        checkpoint(layer, x, use_reentrant=reentrant).sum().backward()
    return [sum(seen), min(seen) > 50]


def elsewhere():
    """Threads, and processes that load data."""
    import threading
    from torch.utils.data import DataLoader
    found = []
    thread = threading.Thread(target=lambda: found.append((torch.arange(5, device="cuda") * 2).tolist()))
    thread.start()
    thread.join()
    for batch in DataLoader(torch.arange(12), batch_size=4, num_workers=2, pin_memory=True):
        found.append(batch.cuda(non_blocking=True).sum().item())
    return found


def compiled():
    """Inductor compiles a function once; graph and guards live with the hooks."""
    import importlib.util
    if importlib.util.find_spec("triton") is None:
        return "skipped: Triton is not installed"
    w = torch.randn(256, 512, device="cuda", requires_grad=True)
    f = torch.compile(lambda x: torch.nn.functional.gelu(x @ w).softmax(-1).sum())
    for _ in range(3):
        f(torch.randn(128, 256, device="cuda")).backward()
    from memtrace_dry_run import notes
    return [torch._dynamo.utils.counters["stats"]["unique_graphs"], notes.as_dict()["facts"]["torch_compile"], "eager" in notes.as_dict()["answers"], w.grad.shape == w.shape]


def proposals():
    """The threshold of 0 for the probabilities of torchvision's region proposals drops none of them."""
    try:
        from torchvision.models.detection import rpn
    except ImportError:
        return "no torchvision here"
    from memtrace_dry_run import rules

    scores = (torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda"))[0]
    count = lambda: torch.where(scores >= 0)[0].shape[0]
    return [hasattr(rpn.RegionProposalNetwork.filter_proposals, "__wrapped__"), rules.among_probabilities(count)(), 200 < count() < 400]


def received():
    """Values that came from other ranks are this rank's own: `all` of them is what it is, so that loops end."""
    from memtrace_dry_run import shadows

    more = torch.tensor([1, 0], device="cuda")
    shadows.of(more).made = shadows.RECEIVED
    return [bool((more > 0).all()), bool((more[:1] > 0).all()), more.sum().item()]


def conjugated():
    """Views that stand for the conjugate, or for the negative, of what the storage has."""
    x, unknown = torch.tensor([1 + 2j, 3 - 4j], device="cuda"), torch.randn(600, 600, device="cuda", dtype=torch.complex64)
    y, unknown = torch.zeros(2, device="cuda", dtype=torch.complex64), (unknown @ unknown)[0, :4]
    y.conj().copy_(x)
    return [str(v.tolist()) for v in (x.conj(), x.conj().imag, x.conj() * 1j, y, x == x.conj())] + [(unknown == unknown.conj()).any().item()]


def doubted():
    """NaN is not equal to itself; a storage that was freed and allocated again, as FSDP does, has no values."""
    from memtrace_dry_run import shadows

    y = (torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda"))[0]
    x, grown = torch.ones(4, device="cuda"), torch.ones(4, device="cuda")
    for size_bytes in (0, 16):
        x.untyped_storage().resize_(size_bytes)
    grown.untyped_storage().resize_(64)
    return [shadows.of(mask).made == shadows.GUESSED for mask in (y == y, y != y)] + [bool((y == y).all()), shadows.of(x) is None, grown.tolist()]


def parts():
    """Whole numbers that are written part by part are known when all of them are."""
    from memtrace_dry_run import shadows

    made, x = [], torch.empty(6, dtype=torch.long, device="cuda")
    for write in (lambda: x[:2].copy_(torch.arange(2)), lambda: x[1:4].fill_(7), lambda: torch.cumsum(torch.ones(2, dtype=torch.long, device="cuda"), 0, out=x[4:])):
        write()
        made.append(shadows.of(x).made)
    bits = (torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda"))[0].clone().view(torch.int32)
    bits[0] = 5
    added = torch.empty(2, dtype=torch.long, device="cuda")
    added[0] = 1
    added += 1
    added[1] = 1
    rest, mask = torch.empty(3, dtype=torch.long, device="cuda"), torch.empty(100, dtype=torch.bool, device="cuda")
    rest[0], mask[0] = 5, True
    return made + [x.tolist()] + [shadows.of(t).made for t in (bits, added)] + [rest.tolist(), [bool(mask[0]), 20 < mask.sum().item() < 80]]


def later():
    """A mask of unknown values is made when something reads it, from the values of that time; operators of unknown values make none."""
    from memtrace_dry_run import shadows

    def is_made(t):
        return shadows.of(t).later is None

    x, limit = torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda"), torch.full((600, 1), 1e-9, device="cuda")
    mask = x < limit
    made = [shadows.of(mask).made, is_made(mask), is_made(x > 0)]
    torch.where(mask, x, 0.0)
    x.masked_fill(mask, 1.0)
    made[2] = is_made(mask)
    limit.fill_(1e9)
    made += [not mask.any().item(), shadows.of(mask[0]).made, is_made(mask)]
    one = torch.ones(1, device="cuda")
    return made + [torch.copysign(one, number).item() for number in (0.0, -0.0)]


def overwritten():
    """What operators write to that compute no values here, such as those for quantization, is not known any more."""
    from memtrace_dry_run import shadows

    def zeros(*shape):
        return torch.zeros(*shape, device="cuda")

    x, observer = zeros(4, 4), torch.ones(1, dtype=torch.long, device="cuda")
    low, high, zero_point = zeros(1), zeros(1), torch.zeros(1, dtype=torch.int32, device="cuda")
    torch.fused_moving_avg_obs_fake_quant(x, observer, observer, low, high, zeros(1), zero_point, 0.1, 0, 255, -1)
    copied, spaced, ranged, lower, best, at = zeros(4), zeros(4), zeros(4), zeros(4, 4), zeros(4), torch.zeros(4, dtype=torch.long, device="cuda")
    torch.index_copy(zeros(4), 0, torch.tensor([0], device="cuda"), (torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda"))[0, :1], out=copied)
    torch.logspace(0, 1, 4, out=spaced)
    torch.ops.aten.range.out(0, 3, 1, out=ranged)
    torch.cummax(x[0], 0, out=(best, at))
    torch.linalg.cholesky(torch.eye(4, device="cuda"), out=lower)
    pivots, info = torch.linalg.lu_factor_ex(torch.eye(4, device="cuda"))[1:]
    x.record_stream(torch.cuda.Stream())
    return [shadows.of(t) is None for t in (low, copied, spaced, ranged, best, at, lower, pivots)] + [info.item(), shadows.of(x) is not None]


def accumulated():
    """Autograd's engine adds to gradients that were assigned or written, whichever tensor that was done with."""
    from memtrace_dry_run import shadows

    def is_stale(write):
        w = torch.ones(4, device="cuda", requires_grad=True)
        (w * 2).sum().backward()
        write(w)
        assert shadows.of(w.grad) is not None
        (w * 2).sum().backward()
        return shadows.of(w.grad) is not None

    def assign(make):
        return is_stale(lambda w: setattr(w, "grad", make()))

    constant, kept, moved = (torch.tensor([1.0, 2.0, 3.0, 4.0]).cuda() for _ in range(3))
    (torch.ones(2, device="cuda", requires_grad=True) * 2).sum().backward()
    return [assign(lambda: torch.tensor([1.0, 2.0, 3.0, 4.0], device="cuda")), assign(lambda: constant * 2), assign(lambda: torch.randn(8, device="cuda")[:4]),
            assign(lambda: torch.ones(4, device="cuda").detach()), is_stale(lambda w: w.grad.zero_()), is_stale(lambda w: w.grad.data.zero_()),
            is_stale(lambda w: w.grad.copy_(constant)), is_stale(lambda w: w.grad.data.copy_(constant)),
            assign(lambda: torch.tensor([1.0, 2.0, 3.0, 4.0], device="cuda").data), assign(lambda: kept.data),
            is_stale(lambda w: setattr(w.grad, "data", moved))] + [constant.tolist(), shadows.of(kept) is None]


def filled_inside():
    """Operators that fill their results before a kernel computes them."""
    from memtrace_dry_run import shadows

    x = torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda")
    folded = torch.nn.functional.fold(x[None, :4, :9], (4, 4), 2)
    counts = torch.bincount(torch.empty(600, dtype=torch.long, device="cuda"), minlength=5)
    return [shadows.of(t) is None for t in (folded, counts, torch.zeros_like(x[:4]))]


def sparse():
    """Sparse tensors have as many elements as their indices say; products find their buffers; a product of two is a guess."""
    from memtrace_dry_run import notes

    places = torch.randint(0, 100, (2, 500), device="cuda")
    s, x = torch.sparse_coo_tensor(places, torch.randn(500, device="cuda"), (100, 100)).coalesce(), torch.randn(100, 8, device="cuda")
    bag = torch.nn.EmbeddingBag(1000, 64, mode="sum", sparse=True).cuda()
    ids = torch.randint(0, 1000, (256,), device="cuda")
    bag(ids, torch.arange(0, 256, 8, device="cuda")).sum().backward()
    found = [s._nnz() == len(set(zip(*places.tolist()))), s.indices()[0].tolist() == sorted(s.indices()[0].tolist()),
             bag.weight.grad.coalesce()._nnz() == len(set(ids.tolist())), list((s @ x).shape), list((s.to_sparse_csr() @ x[:, 0]).shape)]
    found.append(list(notes.as_dict()["answers"]))
    counts = [torch.sparse.mm(s, s)._nnz(), torch.sparse_coo_tensor(torch.empty(1, 600, dtype=torch.long, device="cuda"), x.view(-1)[:600], (1000,)).coalesce()._nnz()]
    return found + [1500 < counts[0] < 3000, counts[1], notes.as_dict()["answers"]["unique"]["count"]]


def frozen():
    """Parameters that get no gradient stay known, whichever tensor they were filled with."""
    from memtrace_dry_run import shadows

    frozen, other = (torch.nn.Parameter(torch.empty(4, device="cuda"), requires_grad=False) for _ in range(2))
    frozen.data.fill_(2.0)
    other.detach().zero_()
    ones = torch.ones(4, 1, device="cuda").view(-1)
    for _ in range(2):
        w = torch.ones(4, device="cuda", requires_grad=True)
        (w * frozen + other + ones).sum().backward()
        w.grad = other
    return [t.tolist() for t in (frozen, other, ones)] + [shadows.of(t) is not None for t in (frozen, other, ones)] + [len(shadows.of(other).tensors)]


def equal():
    """torch.equal compares where no rule sees it."""
    from memtrace_dry_run import notes

    x, unknown = torch.tensor([1, 2], device="cuda"), torch.randn(600, 600, device="cuda") @ torch.randn(600, 600, device="cuda")
    found = [torch.equal(x, torch.tensor(values, device="cuda")) for values in ([1, 2], [1, 3], [1], [1.0, 2.0])]
    mask = torch.zeros(3, dtype=torch.bool, device="cuda")
    found += [torch.equal(mask, ~mask), len(notes.as_dict()["answers"])]
    partly = torch.empty(2, dtype=torch.long, device="cuda")
    partly[0] = 1
    return found + [torch.equal(unknown, unknown.t()), torch.equal(partly, x), notes.as_dict()["answers"]["condition"]["count"], torch.equal(x, x), bool((x > 0).all())]


def stepped():
    """Optimizers of other packages change parameters outside of PyTorch's operators."""
    from memtrace_dry_run import shadows

    class Other(torch.optim.Optimizer):
        def step(self, closure=None):
            """As a library in C++ would: nothing that operators see."""

    found = []
    for kind in (Other, torch.optim.SGD):
        w, number = (torch.nn.Parameter(torch.tensor(values, device="cuda")) for values in ([1.0, 2.0], 3.0))
        optimizer = kind([w, number], {"lr": 0.1} if kind is Other else 0.1)
        state = {"state1": torch.zeros(2, dtype=torch.uint8, device="cuda"), "absmax1": torch.zeros(1, device="cuda"), "step": torch.zeros((), device="cuda")}
        optimizer.state[w] = {**state, "lists": [state["absmax1"]], "count": 1}
        optimizer.step() # without gradients
        found += [shadows.of(t) is None for t in (w, number, *state.values())]
    return found


def eight_bits():
    """The state of an optimizer of bitsandbytes, which C++ writes to."""
    try:
        import bitsandbytes
    except ImportError:
        return "skipped: bitsandbytes is not installed"
    from memtrace_dry_run import shadows

    w = torch.nn.Parameter(torch.ones(64, 128, device="cuda"))
    optimizer = bitsandbytes.optim.Adam8bit([w])
    (w * 2).sum().backward()
    optimizer.step()
    state = optimizer.state[w]
    return sorted(name for name, t in state.items() if isinstance(t, torch.Tensor) and t.is_cuda and shadows.of(t) is not None)


def graphs():
    """A graph changes what it writes to at each replay, whatever the program has written there in between."""
    from memtrace_dry_run import notes, shadows

    n, x, late = torch.zeros((), dtype=torch.long, device="cuda"), torch.arange(4, device="cuda"), torch.empty(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        n.add_(1)
        y = x * 2
        torch.mm(torch.empty(600, 600, device="cuda")[:1], torch.empty(600, 4, device="cuda"), out=late[None])
    made = [shadows.of(t).made for t in (n, y, x)]
    for t in (n, y, late):
        t.fill_(5)
    made += [shadows.of(t).made for t in (n, y, late)]
    graph.replay()
    made += [shadows.of(t).made for t in (n, y, late, x)]
    n.item()
    return made + [list(notes.as_dict()["answers"])]


def graph_backward():
    """A graph with a backward writes to gradients: those that it makes, those that were there, and what the program writes in
    hooks of the engine."""
    from memtrace_dry_run import shadows

    class Named(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.variable = 3  # nodes of leaves have an attribute of this name
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    made, there, asked = (torch.ones(4, device="cuda", requires_grad=True) for _ in range(3))
    there.grad, hooked = torch.zeros(4, device="cuda"), torch.zeros(4, device="cuda")
    made.register_hook(lambda g: hooked.add_(1).sum() * 0 + g)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (Named.apply(made) * there).sum().backward()
        (found,) = torch.autograd.grad((asked * 2).sum(), asked)
    written = [made.grad, there.grad, hooked, found]
    for t in written:
        t.zero_()
    known = [shadows.of(t).made for t in written]
    graph.replay()
    return known + [shadows.of(t).made for t in written]


def ranks():
    """Collectives of a process group of one rank bring its own values; those of several processes bring values that count as guesses."""
    import torch.distributed as dist
    from memtrace_dry_run import shadows

    found, x = [], torch.arange(3, device="cuda")
    for size in (1, 2):
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=size)
        whole, part, total = torch.zeros(3 * size, dtype=torch.long, device="cuda"), torch.zeros(3, dtype=torch.long, device="cuda"), x.clone()
        dist.all_gather_into_tensor(whole, x)
        dist.all_to_all_single(part, x, [3] + [0] * (size - 1), [3] + [0] * (size - 1))
        dist.all_reduce(total)
        found += [[t.cpu().tolist(), shadows.of(t).made] for t in (whole, part, total)]
        dist.destroy_process_group()
    return found


def main():
    answers = {"values": values, "numbers": numbers, "unknown": unknown, "subclasses": subclasses, "sharded": sharded, "modes": modes, "experts": experts, "waits": waits, "decided": decided, "training": training, "joined": joined, "checkpointed": checkpointed, "elsewhere": elsewhere, "proposals": proposals, "received": received, "computed": computed, "forgotten": forgotten, "written": written, "numbers_agree": numbers_agree, "printed": printed, "drawn": drawn,
               "conjugated": conjugated, "doubted": doubted, "parts": parts, "later": later, "unread": unread, "copied": copied, "overwritten": overwritten, "accumulated": accumulated, "stepped": stepped, "eight_bits": eight_bits, "filled_inside": filled_inside, "sparse": sparse, "frozen": frozen, "equal": equal, "graphs": graphs, "graph_backward": graph_backward, "ranks": ranks, "compiled": compiled}[sys.argv[1]]()
    requests = [e["size"] for e in torch.cuda.memory._snapshot()["device_traces"][0] if e["action"] == "alloc"]
    with open(sys.argv[2], "w") as f:
        json.dump({"answers": answers, "requests": requests}, f)


main()
