"""A language model of GPT-2-small's shape (12 layers, 768 wide, 12 heads, 50257 words), random weights, attention written out."""
import math

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("causal", torch.ones(context, context, dtype=torch.bool).tril(), persistent=False)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(~self.causal[:tokens, :tokens], float("-inf"))
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, context)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class LanguageModel(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, words=50257, context=1024):
        super().__init__()
        self.word, self.position = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, context) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.word.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.word(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
