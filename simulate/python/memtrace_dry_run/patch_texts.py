"""What to paste into a program for each change. A dry run with --apply runs these texts, and prints them."""

# Around the outermost modules: a checkpointed module that calls another one would be recomputed twice.
CHECKPOINT = '''
import torch
from torch.utils.checkpoint import checkpoint

def checkpointed(cls, inside=[]):
    forward = cls.forward
    def run(*args, **kwargs):
        inside.append(cls)
        try:
            return forward(*args, **kwargs)
        finally:
            inside.pop()
    def call(self, *args, **kwargs):
        if inside or not (self.training and torch.is_grad_enabled()):
            return forward(self, *args, **kwargs)
        function = forward if torch.compiler.is_compiling() else run
        return checkpoint(function, self, *args, use_reentrant=False, **kwargs)
    cls.forward = call
'''

# Layers of transformers do it themselves, and leave out the cache of keys and values.
CHECKPOINT_SWITCH = '''
import functools
from torch.utils.checkpoint import checkpoint

def switched_on(cls):
    cls.gradient_checkpointing = True
    cls._gradient_checkpointing_func = staticmethod(functools.partial(checkpoint, use_reentrant=False))
'''

OFFLOAD = '''
import torch

def offloaded(cls):
    forward = cls.forward
    def call(self, *args, **kwargs):
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            return forward(self, *args, **kwargs)
    cls.forward = call
'''

SAVE_ON_CPU = '''
import torch
torch.autograd.graph.save_on_cpu(pin_memory=True).__enter__()
'''

OPTIMIZER = '''
import functools, torch
torch.optim.{name}.__init__ = functools.partialmethod(torch.optim.{name}.__init__, {option})
'''

EIGHT_BITS = '''
import bitsandbytes, torch
torch.optim.{name} = bitsandbytes.optim.{name}8bit
'''

# Forward keeps the logits only, and backward makes the gradient chunk by chunk in one tensor of their size.
CHUNKED_LOSS = '''
import torch
import torch.nn.functional as F

class ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def loss(logits, target, options):
        return plain_cross_entropy(logits.float(), target, reduction="sum", **options)
    @staticmethod
    def forward(ctx, logits, target, options):
        ctx.save_for_backward(logits, target)
        ctx.options = options
        return sum(ChunkedCrossEntropy.loss(*chunk, options) for chunk in zip(logits.chunk({chunks}), target.chunk({chunks})))
    @staticmethod
    def backward(ctx, of_loss):
        logits, target = ctx.saved_tensors
        gradient = torch.empty_like(logits)
        for part, logits, target in zip(gradient.chunk({chunks}), logits.chunk({chunks}), target.chunk({chunks})):
            with torch.enable_grad():
                logits = logits.detach().requires_grad_()
                loss = ChunkedCrossEntropy.loss(logits, target, ctx.options)
            part.copy_(torch.autograd.grad(loss, logits, of_loss)[0])
            del logits, loss
        return gradient, None, None

def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    is_plain = weight is None and size_average is None and reduce is None and reduction in ("mean", "sum")
    if not (is_plain and input.dim() == 2 and target.dim() == 1 and input.requires_grad and torch.is_grad_enabled()):
        return plain_cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
    options = dict(ignore_index=ignore_index, label_smoothing=label_smoothing)
    loss = ChunkedCrossEntropy.apply(input, target, options)
    return loss / (target != ignore_index).sum() if reduction == "mean" else loss

plain_cross_entropy, F.cross_entropy = F.cross_entropy, cross_entropy
'''

DTYPE = '''
import torch
torch.set_default_dtype(torch.{dtype})
'''
