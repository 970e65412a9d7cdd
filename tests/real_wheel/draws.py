"""Numbers that the device draws: what draws.json has of an H200, and what a dry run computes. Prints JSON."""
import hashlib
import json

import torch

device = torch.device("cuda")
generator = torch.Generator(device)
drawn = {}


def empty(shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device=device)


def described(t):
    host = t.cpu().contiguous().reshape(-1)
    if host.is_complex():
        host = torch.view_as_real(host).reshape(-1)
    text = bytes(host.view(torch.uint8).tolist() if host.dtype is not torch.bool else host.to(torch.uint8).tolist())
    first = host[:8]
    return {"sha": hashlib.sha256(text).hexdigest()[:16],
            "first": first.double().tolist() if first.is_floating_point() else first.long().tolist()}


def case(name, *functions):
    """FUNCTIONS draw one after another, after the seed was set to the number at the end of NAME."""
    torch.cuda.manual_seed(int(name.split("/")[-1]))
    results = [function() for function in functions]
    drawn[name] = [described(r) if isinstance(r, torch.Tensor) else r for r in results]


def seeded(seed, function):
    generator.manual_seed(seed)
    return function()


for n, seed in ((1, 1234567890123), (1000, -7), (12288, 45)):
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        tag = f"{str(dtype)[6:]}/{n}/{seed}"
        case(f"uniform/{tag}", lambda: empty(n, dtype).uniform_())
        case(f"uniform_range/{tag}", lambda: empty(n, dtype).uniform_(-0.3, 1.7))
        case(f"normal/{tag}", lambda: empty(n, dtype).normal_())
        case(f"exponential/{tag}", lambda: empty(n, dtype).exponential_())
        case(f"bernoulli/{tag}", lambda: empty(n, dtype).bernoulli_(0.3))
    for dtype in (torch.uint8, torch.int32, torch.int64, torch.float16, torch.float64, torch.bool):
        case(f"random/{str(dtype)[6:]}/{n}/{seed}", lambda: empty(n, dtype).random_())
    for low, high in ((0, 10), (0, (1 << 28) - 1), (0, 1 << 28), (-(1 << 40), 1 << 40), (-(1 << 63) + 1, (1 << 63) - 1)):
        case(f"randint/{low}_{high}/{n}/{seed}", lambda: torch.randint(low, high, (n,), device=device))
    case(f"random_full/{n}/{seed}", lambda: empty(n, torch.int64).random_(-(1 << 63), None))
    case(f"complex/{n}/{seed}", lambda: torch.randn(n, device=device, dtype=torch.complex64))
    case(f"bernoulli_tensor/{n}/{seed}", lambda: empty(n, torch.bool).bernoulli_(torch.linspace(0, 1, n, device=device)))
case("grid/1500000/47", lambda: torch.randint(0, 10, (1500000,), device=device))
for n in (7, 20000, 60000):
    case(f"randperm/{n}/5", lambda: torch.randperm(n, device=device), lambda: torch.rand(4, device=device))
for n, count in ((5, 1), (1000, 200)):
    weights = torch.linspace(0.1, 2, n)
    case(f"multinomial/{n}_{count}/9", lambda: torch.multinomial(weights.to(device), count))
    case(f"multinomial_replace/{n}_{count}/9", lambda: torch.multinomial(weights.to(device), count, replacement=True))
case("layout/transposed/11", lambda: empty((40, 30)).t().uniform_())
case("layout/strided/11", lambda: torch.zeros((40, 30), device=device)[:, ::2].uniform_().clone())
case("row/99", lambda: torch.rand(10, device=device), lambda: torch.randn(1000, device=device), lambda: torch.randint(100, (5,), device=device),
     lambda: torch.rand(300000, device=device)[:0], lambda: empty(3, torch.float64).normal_(), lambda: torch.rand(1500000, device=device)[:0],
     lambda: torch.rand(3, device=device))
case("generator/99", lambda: seeded(4, lambda: torch.rand(10, device=device, generator=generator)), lambda: torch.randn(10, device=device, generator=generator),
     lambda: torch.rand(10, device=device), lambda: torch.randint(1000, (10,), device=device, generator=generator),
     lambda: torch.randperm(10, device=device, generator=generator), lambda: torch.multinomial(torch.ones(10, device=device), 3, generator=generator))
case("size/1234", lambda: int(torch.randint(1000, 100000, (1,), device=device)), lambda: torch.rand(10000, device=device).gt(0.9).nonzero().numel(),
     lambda: int((torch.randn(100000, device=device) > 1).sum()))
print(json.dumps(drawn))
