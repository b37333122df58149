"""A small GPT-2-shaped language model and the text it learns, which is made here: nothing is fetched."""
import math
import random

import torch
from torch import nn
from torch.nn import functional

CONTEXT = 64
_SUBJECTS = ("the kernel", "a tensor", "the graph", "one thread", "the cache", "a small loop", "the compiler", "every block")
_VERBS = ("reads", "writes", "rounds", "adds", "keeps", "splits", "moves", "checks")
_OBJECTS = ("the rows", "two columns", "its own result", "a sum of products", "the last bit", "all values", "nothing at all", "the mask")
_ENDS = ("again", "at once", "in order", "before the store", "after the load", "without a copy", "and then stops", "as before")


def text(sentences, seed):
    r = random.Random(seed)
    parts = []
    for _ in range(sentences):
        s = f"{r.choice(_SUBJECTS)} {r.choice(_VERBS)} {r.choice(_OBJECTS)}"
        if r.random() < 0.5:
            s += f" {r.choice(_ENDS)}"
        if r.random() < 0.2:
            a, b = r.randrange(50), r.randrange(50)
            s += f", and {a} plus {b} is {a + b}"
        parts.append(s[0].upper() + s[1:] + ".")
    return " ".join(parts)


class Characters:
    """Text as numbers."""

    def __init__(self, of):
        self.alphabet = sorted(set(of))
        self.number = {c: i for i, c in enumerate(self.alphabet)}

    def __len__(self):
        return len(self.alphabet)

    def encode(self, words):
        return torch.tensor([self.number[c] for c in words if c in self.number])


def batch(data, size, generator):
    """`size` pieces of the text, one token longer than the context."""
    starts = torch.randint(len(data) - CONTEXT - 1, (size,), generator=generator)
    return torch.stack([data[s:s + CONTEXT + 1] for s in starts.tolist()])


class Block(nn.Module):
    hidden: torch.Tensor   # what a token may not look at

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("hidden", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        count, tokens, width = x.shape
        parts = self.qkv(self.norm1(x)).view(count, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(width // self.heads))
        weights = scores.masked_fill(self.hidden[:tokens, :tokens], float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(count, tokens, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, symbols, layers, width, heads=4):
        super().__init__()
        self.symbol, self.place = nn.Embedding(symbols, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        """The mean cross-entropy of the next symbol."""
        given, wanted = ids[:, :-1], ids[:, 1:]
        x = self.symbol(given) + self.place(torch.arange(given.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.symbol.weight.t()
        return functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
