"""What is measured: (class, name, a function that makes (fn, inputs)). Training cases include the gradients of their parameters."""
import torch
from torch.nn import functional

KI, MI = 1 << 10, 1 << 20


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


def chain(x, y):
    a = x * y + 0.5
    b = torch.sigmoid(a) * a
    return torch.tanh(b - y) * 2 + torch.abs(x - b)


def rotary(x, cos, sin):
    left, right = x.chunk(2, -1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), -1)


class Mlp(torch.nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class Attention(torch.nn.Module):
    def __init__(self, width=256, heads=4):
        super().__init__()
        self.norm, self.heads = torch.nn.LayerNorm(width), heads
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (t.view(batch, tokens, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        scores = (q @ k.transpose(2, 3) * (width // self.heads) ** -0.5).softmax(-1)
        return x + self.out((scores @ v).transpose(1, 2).reshape(batch, tokens, width))


def rms(x, w):
    return functional.rms_norm(x, x.shape[-1:], w, 1e-6)


def layer(x, w, b):
    return functional.layer_norm(x, x.shape[-1:], w, b)


BF16, F16 = torch.bfloat16, torch.float16
CASES = [
    ("pointwise", "(x + y).abs() f32 64 Ki", lambda: (lambda x, y: (x + y).abs(), (randn(64 * KI), randn(64 * KI)))),
    ("pointwise", "ten operators f32 64 Ki", lambda: (chain, (randn(64 * KI), randn(64 * KI)))),
    ("pointwise", "ten operators bf16 64 Ki", lambda: (chain, (randn(64 * KI, dtype=BF16), randn(64 * KI, dtype=BF16)))),
    ("pointwise", "gelu f32 256 Ki", lambda: (functional.gelu, (randn(256 * KI),))),
    ("pointwise", "gelu f16 256 Ki", lambda: (functional.gelu, (randn(256 * KI, dtype=F16),))),
    ("pointwise", "silu(x) * y bf16 256 Ki",
     lambda: (lambda x, y: functional.silu(x) * y, (randn(256 * KI, dtype=BF16), randn(256 * KI, dtype=BF16)))),
    ("pointwise", "tanh(x + row) f32 512 x 512", lambda: (lambda x, r: torch.tanh(x + r), (randn(512, 512), randn(512)))),
    ("pointwise", "mish of a transposed f32 512 x 512", lambda: (functional.mish, (randn(512, 512).t(),))),
    ("pointwise", "(x + y).abs() f32 16 Mi, from memory", lambda: (lambda x, y: (x + y).abs(), (randn(16 * MI), randn(16 * MI)))),
    ("reduce", "softmax f32 256 x 1024", lambda: (lambda x: x.softmax(-1), (randn(256, 1024),))),
    ("reduce", "softmax bf16 256 x 1024", lambda: (lambda x: x.softmax(-1), (randn(256, 1024, dtype=BF16),))),
    ("reduce", "layer_norm f32 256 x 768", lambda: (layer, (randn(256, 768), randn(768), randn(768)))),
    ("reduce", "add, layer_norm, gelu f32 256 x 768", lambda: (lambda x, r, w, b: functional.gelu(layer(x + r, w, b)),
                                                               (randn(256, 768), randn(256, 768), randn(768), randn(768)))),
    ("reduce", "rms_norm bf16 256 x 1024", lambda: (rms, (randn(256, 1024, dtype=BF16), randn(1024, dtype=BF16)))),
    ("reduce", "sum of rows f32 512 x 1024", lambda: (lambda x: x.sum(1), (randn(512, 1024),))),
    ("reduce", "sum over the first dim f32 512 x 1024", lambda: (lambda x: x.sum(0), (randn(512, 1024),))),
    ("reduce", "var_mean f32 256 x 1024", lambda: (lambda x: torch.var_mean(x, 1), (randn(256, 1024),))),
    ("reduce", "argmax f32 256 x 1024", lambda: (lambda x: x.argmax(1), (randn(256, 1024),))),
    ("reduce", "mean |x| of rows f32 4 Ki x 4 Ki, from memory", lambda: (lambda x: x.abs().mean(1), (randn(4 * KI, 4 * KI),))),
    ("blocks", "MLP f32 4 x 64 x 256", lambda: (Mlp().eval(), (randn(4, 64, 256),))),
    ("blocks", "attention f32 4 x 64 x 256", lambda: (Attention().eval(), (randn(4, 64, 256),))),
    ("training", "MLP f32 4 x 64 x 256, forward and backward", lambda: (Mlp(), (randn(4, 64, 256),))),
    ("training", "attention f32 4 x 64 x 256, forward and backward", lambda: (Attention(), (randn(4, 64, 256),))),
]
# precision="block" against "eager": what f32 inside a kernel costs or saves.
PRECISION = ["ten operators bf16 64 Ki", "gelu f16 256 Ki", "silu(x) * y bf16 256 Ki", "softmax bf16 256 x 1024", "rms_norm bf16 256 x 1024"]
