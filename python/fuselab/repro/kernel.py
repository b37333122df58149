"""The artifact in a script as a callable, and its inputs."""
import ast

import torch

from .. import Error, _core
from .runner import CannotRun, Wrong

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i8": torch.int8, "u8": torch.uint8,
          "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}


class Kernel:
    """Inputs by name, and the artifact (or with --e2e what KERNEL_IR gives)."""

    def __init__(self, script, args):
        self.script, self.e2e, self.seed = script, args.e2e, args.seed
        self.sizes = script["SIZE_HINTS"]
        given = read_tensors(args.inputs) if args.inputs else {}
        known = [b["name"] for b in script["PROFILE_BUFFERS"]]
        for name in given:
            if name not in known:
                raise Wrong(f"{args.inputs} holds {name}, which is no input of the kernel; there are {', '.join(known)}")
        self.tensors = {b["name"]: self.make(b, i, given.get(b["name"])) for i, b in enumerate(script["PROFILE_BUFFERS"])}
        self._source, self._fx = None, None
        self._given: set[str] = set(given)
        self._kept: dict[str, torch.Tensor] = {}  # memory of inputs as they were before refill

    def make(self, buffer, stream, given=None, seed=None):
        """One input: its layout, filled by what is given, the size that it holds, or at random."""
        dtype, shape, stride = DTYPES[buffer["dtype"]], buffer["shape"], buffer["stride"]
        if given is not None:
            if given.dtype != dtype or tuple(given.shape) != tuple(shape):
                raise Wrong(f"input {buffer['name']} is {given.dtype}{list(given.shape)} in the file, and {dtype}{list(shape)} in the kernel")
            return rand_strided(shape, stride, dtype).copy_(given) if 0 not in stride else given.as_strided(shape, given.stride())
        tensor = rand_strided(shape, stride, dtype)
        if "value" in buffer:
            return tensor.fill_(_evaluate(buffer["value"], self.sizes))
        _core.fill_random(tensor, self.seed if seed is None else seed, stream, buffer.get("low", 0), buffer.get("high", 9))
        return tensor

    def source(self):
        if self._source is None:
            artifact = self.script["ARTIFACTS"]
            edited = self.e2e and _core.generate_from_ir(self.script["KERNEL_IR"], "KERNEL_IR", self.script["FRAGMENT"])
            self._source = edited or artifact
        return self._source

    def compile(self, **options):
        """A callable without arguments: one run of the artifact on the inputs, a tuple of tensors."""
        options["exchange_api"] = torch.Tensor.__dlpack_c_exchange_api__
        call = _core.compile_artifact(self.script["FRAGMENT"], self.source(), options, "FRAGMENT")
        values = [self.sizes[name] if kind == "size" else self.tensors[name] for kind, name in self.script["CALL_ARGUMENTS"]]
        return lambda: call(*values)

    def fx_inputs(self):
        """The parameters of eager_fn, in order: the kernel's inputs under the front end's names."""
        taken = [self.tensors[b["name"]] for b in self.script["PROFILE_BUFFERS"] if "value" not in b]
        extra = self.script["_fx_inputs"][len(taken):]  # named by eager's calls, but without influence on the results
        if len(taken) + len(extra) != len(self.script["_fx_inputs"]):
            raise CannotRun("the script's _fx_inputs and PROFILE_BUFFERS do not belong together")
        if self._fx is None:
            self._fx = [self.make(b, len(self.tensors) + i) for i, b in enumerate(extra)]
        return taken + self._fx

    def refill(self, step):
        """Other values in the same memory, so that no earlier step's answer is this one's; the same number gives the same values. Few
        random ones are drawn anew, others and what came from a file move on in memory. Sizes that enter as data stay."""
        for i, buffer in enumerate(self.script["PROFILE_BUFFERS"]):
            tensor = self.tensors[buffer["name"]]
            if "value" in buffer or not tensor.numel():
                continue
            memory = _memory(tensor)
            if buffer["name"] not in self._kept:
                self._kept[buffer["name"]] = memory.clone()
            if buffer["name"] not in self._given and memory.numel() < 4096:
                _core.fill_random(tensor, (self.seed + 1 + step) % 2**64, i, buffer.get("low", 0), buffer.get("high", 9))
                continue
            kept = self._kept[buffer["name"]]
            shift = (step + 1) * 977 % memory.numel()
            memory[shift:].copy_(kept[:memory.numel() - shift])
            memory[:shift].copy_(kept[memory.numel() - shift:])

    def restore(self):
        """The inputs as they were before refill."""
        for name, memory in self._kept.items():
            _memory(self.tensors[name]).copy_(memory)


def rand_strided(shape, stride, dtype):
    """Memory of this layout; the values are not set."""
    extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride))
    return torch.zeros(max(extent, 0), dtype=dtype).as_strided(shape, stride)


def _memory(tensor):
    """Every element from the first to the last in memory, each once."""
    extent = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
    return tensor.as_strided((extent,), (1,))


def _evaluate(text, sizes):
    """A number made of sizes; `text` is from the script, which runs as code anyway."""
    if isinstance(text, (int, float)):
        return text
    ast.parse(text, mode="eval")
    return eval(text, {"min": min, "max": max, "float": float, "int": int}, dict(sizes))


def read_tensors(path):
    """name -> tensor, of a .safetensors, .npz, .npy or .pt file."""
    try:
        found = _core.read_tensors(str(path))
    except Error as e:
        raise Wrong(str(e)) from None
    out = {}
    for name, dtype, sizes, data in found:
        flat = torch.frombuffer(bytearray(data), dtype=DTYPES[dtype]) if data else torch.empty(0, dtype=DTYPES[dtype])
        out[name] = flat.reshape(sizes)
    return out
