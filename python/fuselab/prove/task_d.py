"""D: chains of moves have eager's bits, NaN payloads and signed zeros included."""
import torch

TITLE = "moves copy bits"
SIZES = {"small": ((64, 48), 3), "default": ((1024, 768), 20), "full": ((4096, 4096), 20)}   # of an input; inputs per chain and dtype
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
PATTERNS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32}
# NaNs with payloads, signed zeros, infinities, subnormals: at the first places of every input.
SPECIAL = {"f16": [0x7E01, 0x7C01, 0xFE55, 0x8000, 0x0000, 0x7C00, 0xFC00, 0x0001, 0x83FF],
           "bf16": [0x7FC1, 0x7F81, 0xFFD5, 0x8000, 0x0000, 0x7F80, 0xFF80, 0x0001, 0x807F],
           "f32": [0x7FC00001, 0x7F800001, 0xFFC12345, 0x80000000, 0, 0x7F800000, 0xFF800000, 1, 0x807FFFFF]}


def _split(x, y):
    a, b = x.split(x.shape[1] // 2, 1)
    return torch.cat([a.transpose(0, 1), b.transpose(0, 1), y.transpose(0, 1)], 0)


CHAINS = {
    "transpose, concat": lambda x, y: torch.cat([x.transpose(0, 1), y.transpose(0, 1)], 1),
    "slice, broadcast, concat": lambda x, y: torch.cat([x[1:2, ::3].expand(8, -1), y[2:10, ::3]], 0),
    "split, transpose, concat": _split,
    "reshape of a non-contiguous input, concat": lambda x, y: torch.cat([x.transpose(0, 1).reshape(-1), y.reshape(-1)], 0),
    # The same moves into memory without a concat.
    "transpose": lambda x, y: x.transpose(0, 1).contiguous(),
    "slice, broadcast": lambda x, y: x[1:2, ::3].expand(8, -1).contiguous(),
    "split, transpose": lambda x, y: [p.transpose(0, 1).contiguous() for p in x.split(x.shape[1] // 2, 1)],
    "reshape of a non-contiguous input": lambda x, y: x.transpose(0, 1).reshape(-1),
}


def inputs(dtype, shape, seed):
    """Two tensors of any bits at all."""
    integer, size = PATTERNS[DTYPES[dtype]], 16 if dtype != "f32" else 32
    g = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(2):
        bits = torch.randint(-(1 << (size - 1)), 1 << (size - 1), shape, generator=g, dtype=torch.int64)
        special = torch.tensor(SPECIAL[dtype], dtype=torch.int64)
        bits[0, : len(special)] = torch.where(special >= 1 << (size - 1), special - (1 << size), special)
        bits[1, ::3][: len(special)] = bits[0, : len(special)]
        out.append(bits.to(integer).view(DTYPES[dtype]))
    return out


def bits_of(results):
    results = results if isinstance(results, (list, tuple)) else [results]
    return [r.contiguous().view(PATTERNS[r.dtype]) for r in results]


def run(size, report, progress):
    import fuselab

    shape, count = SIZES[size]
    report.about = (f"Inputs {list(shape)} of random bit patterns, so NaNs with all kinds of payloads, infinities and subnormals are among them; "
                    f"{count} inputs per chain and dtype, compared with eager bit by bit.")
    rows = []
    for i, (chain, function) in enumerate(CHAINS.items()):
        progress.step(i, len(CHAINS), "chains")
        for dtype in DTYPES:
            torch._dynamo.reset()
            compiled = torch.compile(function, backend="fuselab")
            differ = elements = 0
            for seed in range(count):
                given = inputs(dtype, shape, seed)
                with torch.no_grad():
                    pairs = zip(bits_of(function(*given)), bits_of(compiled(*given)), strict=True)
                for a, b in pairs:
                    elements += a.numel()
                    differ += int((a != b).sum()) if a.shape == b.shape else a.numel()
            rows.append([chain, dtype, elements, differ, *_who(fuselab.graphs()[-1])])
            report.claim(f"{chain}, {dtype}: bit-equal", differ == 0, f"{differ} of {elements} elements differ")
    report.table("moves", "Move chains against eager", ["chain", "dtype", "elements", "elements that differ", "fused by fuselab", "left to PyTorch"],
                 rows)
    if any(r[5] for r in rows):
        report.notes.append("What is left to PyTorch is no evidence about fuselab; where the column is empty, fuselab's kernels made every element.")


def _who(graph):
    """(operators in fuselab's kernels, operators PyTorch ran)."""
    ours, theirs = [], []
    for step in graph.explain()["steps"]:
        names = [n["op"] for n in step["nodes"]] or [step["name"]]
        if step["kind"] == "kernel":
            ours += names
        elif step["kind"] == "extern":
            theirs += names
    return ", ".join(dict.fromkeys(ours)), ", ".join(dict.fromkeys(theirs))
