"""`torch.compile(..., options={...})`: what exists, and the error that lists it."""
import difflib
import os

KNOWN = {
    "precision": "block or eager (spec/precision.md: R1-R10)",
    "fuse": "fusion classes, as --autofuse_enable_pass", "no_fuse": "classes turned off, as --autofuse_disable_pass",
    "enable_autofuse": "False: every operator is a kernel of its own",
    "max_fusion_size": "nodes per block", "recomputation_threshold": "consumers that may recompute a value",
    "keep_dtype": "operators left unpromoted (R9)",
    "opt_level": "0: no simplification", "skip_passes": "passes turned off, by name",
    "skip_ops": "operators left to PyTorch, by table or ATen name", "skip_nodes": "graph nodes left to PyTorch, by name",
    "decompose": "True: composite operators are taken apart; a list: all but these (default: False)",
    "partition": "min-cut or no-recompute", "debug_dir": "where the debug folder goes",
    "check_kernels": "True: each kernel's first call is checked against eager and float64 on the model's data; stop: a failure raises",
    "capture_inputs": "save the inputs of the first N calls of each kernel in its debug folder",
    "poison": "a byte: results and work space hold it before kernels run, so that a check sees what was not written"}
# What the front end reads itself; everything else goes to the compiler.
OWN = {"skip_ops", "skip_nodes", "decompose", "partition", "debug_dir", "check_kernels", "capture_inputs"}


def parse(options):
    """The options with defaults filled in; throws on anything unknown, listing what exists."""
    from .. import Error

    options = dict(options or {})
    for name in options:
        if name not in KNOWN:
            listed = ", ".join(f"{k} ({v})" for k, v in KNOWN.items())
            raise Error("options.unknown", f"unknown option '{name}' for the fuselab backend; there are: {listed}")
    if "precision" not in options and os.environ.get("TORCHINDUCTOR_EMULATE_PRECISION_CASTS") == "1":
        options["precision"] = "eager"
    if "check_kernels" not in options and os.environ.get("FUSELAB_CHECK_KERNELS", "0") not in ("", "0"):
        options["check_kernels"] = "stop" if os.environ["FUSELAB_CHECK_KERNELS"] == "stop" else True
    _one_of(Error, options, "check_kernels", (True, False, "stop"))
    calls = options.get("capture_inputs", 0)
    if isinstance(calls, bool) or not isinstance(calls, int) or calls < 0:
        raise Error("options.bad_value", f"option capture_inputs is {calls!r}; it must be a number of calls")
    _one_of(Error, options, "precision", ("block", "eager"))
    _one_of(Error, options, "partition", ("min-cut", "no-recompute"))
    for name in ("skip_ops", "skip_nodes", "skip_passes", "keep_dtype"):
        if name in options:
            options[name] = _names(Error, name, options[name])
    if not isinstance(options.get("decompose", False), bool):
        options["decompose"] = _names(Error, "decompose", options["decompose"])
        _operators(Error, "decompose", options["decompose"])
    _operators(Error, "skip_ops", options.get("skip_ops", ()))
    if options.get("debug_dir", "") is None:
        del options["debug_dir"]  # as if not given
    if not isinstance(options.get("debug_dir", ""), (str, os.PathLike)):
        raise Error("options.bad_value", f"option debug_dir is {options['debug_dir']!r}; it must be a path")
    if "debug_dir" in options:
        options["debug_dir"] = os.fspath(options["debug_dir"])
    if options.get("precision") == "eager":
        options.setdefault("decompose", False)  # R10
    return options


def _names(error, option, value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(n, str) for n in value):
        return sorted(value) if isinstance(value, (set, frozenset)) else list(value)
    raise error("options.bad_value", f"option {option} is {value!r}; it must be a name or a list of names")


def packet_name(name):
    """`tanh` of tanh, aten.tanh, aten.tanh.default, torch.ops.aten.tanh.default: how operators are named in options."""
    return _short(name).split(".")[0]


def _short(name):
    return name.lower().removeprefix("torch.ops.").removeprefix("torch.").removeprefix("aten.")


def names_operator(wanted, target, rows):
    """Is `target` (its table rows: `rows`) one of these operators? A name without an overload means all of them."""
    full = _short(str(target))
    return bool({_short(n) for n in wanted} & ({full, full.split(".")[0]} | {r.name.lower() for r in rows}))


def _operators(error, option, names):
    """Every name is an operator's: of the table, or of PyTorch."""
    import torch

    from . import table

    rows = {row.name.lower() for found in table.table().values() for row in found}
    for name in names:
        short = _short(name)
        space, _, rest = short.rpartition("::")  # a library of its own: mylib::op
        packet = getattr(getattr(torch.ops, space or "aten"), rest.split(".")[0], None) if rest.split(".")[0].isidentifier() else None
        overload = rest.partition(".")[2]
        known = packet is not None and (not overload or overload in (o.lower() for o in packet.overloads()))
        if short in rows or known:
            continue
        close = difflib.get_close_matches(packet_name(name), rows, 3)
        hint = f"; close to it: {', '.join(close)}" if close else ""
        raise error("options.unknown_operator", f"option {option}: there is no operator '{name}' in the op table or in PyTorch{hint}")


def _one_of(error, options, name, values):
    if name in options and options[name] not in values:
        raise error("options.bad_value", f"option {name} is {options[name]!r}; it must be one of {', '.join(map(str, values))}")


def for_core(options):
    """The options `_core.compile_graph` takes."""
    import torch

    made = {k: v for k, v in options.items() if k not in OWN}
    made["exchange_api"] = torch.Tensor.__dlpack_c_exchange_api__  # results are torch tensors, also without a tensor argument
    return made
