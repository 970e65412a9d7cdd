"""A small GPT, trained for three steps: what users write, and what check_real_wheel.py knows the peaks of.

    python3 small_gpt.py COUNTERS

Writes what PyTorch's allocator counted to the file COUNTERS, as JSON."""
import json
import platform
import sys

import torch
from torch import nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, WORDS, CONTEXT = 4, 256, 4, 8192, 256
COUNTERS = ("requested_bytes.all.peak", "allocated_bytes.all.peak", "reserved_bytes.all.peak", "allocation.all.allocated",
            "segment.all.allocated")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        heads = self.qkv(self.before_attention(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words):
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def train(model, optimizer, scheduler):
    for step, batch in enumerate((8, 12, 4)):
        words = torch.randint(0, WORDS, (batch, CONTEXT), device="cuda")
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(words)
        loss = functional.cross_entropy(logits[:, :-1].reshape(-1, WORDS).float(), words[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        print(f"step {step}: loss {loss.item():.3f}")


@torch.no_grad()
def complete(model):
    """Sampling steers the program with what the device computed."""
    words = torch.randint(0, WORDS, (2, 16), device="cuda")
    while words.shape[1] < 32:
        best, which = model(words)[:, -1].topk(50)
        chosen = torch.multinomial(best.softmax(-1), 1)
        words = torch.cat([words, which.gather(1, chosen)], 1)
    print(f"completed: {words[0, 16:].tolist()}")


def main():
    torch.manual_seed(1)
    model = GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train(model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3))
    complete(model)
    counted = torch.cuda.memory_stats()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "python": platform.python_version(), "device": torch.cuda.get_device_name(),
                   "counters": {name: counted[name] for name in COUNTERS}}, file, indent=1)


main()
