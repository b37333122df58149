"""Which operators are taken apart before they are lowered, and how.

Only what becomes table operators, and only where the parts are as accurate as the whole; everything else stays one call of
PyTorch's own kernel, which is eager by construction. An operator with a row of its own is never taken apart (the
composites among them unless `decompose` says so).
"""
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

from . import loss, table
from .options import names_operator

aten = torch.ops.aten

# Overload packets whose PyTorch decomposition keeps eager's accuracy and strides.
TAKEN_APART = """
    _prelu_kernel _prelu_kernel_backward aminmax binary_cross_entropy binary_cross_entropy_backward
    binary_cross_entropy_with_logits celu clamp_max clamp_min count_nonzero deg2rad elu_backward fill floor_divide frac
    full_like glu glu_backward hardshrink hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh_backward
    heaviside huber_loss huber_loss_backward isneginf isposinf leaky_relu_backward lerp log_sigmoid_backward
    log_sigmoid_forward logit_backward masked_fill mish mish_backward mse_loss mse_loss_backward native_dropout_backward
    native_layer_norm_backward native_group_norm_backward new_empty new_full new_ones new_zeros ones ones_like rad2deg rsub
    selu sigmoid_backward silu silu_backward smooth_l1_loss smooth_l1_loss_backward soft_margin_loss
    soft_margin_loss_backward softplus_backward softshrink square squeeze std std_mean t tanh_backward threshold
    threshold_backward transpose tril triu unsafe_split unsafe_split_with_sizes var var_mean zeros zeros_like
    _softmax_backward_data _log_softmax_backward_data nansum arange eye logit nan_to_num sinc special_entr
    special_xlog1py""".split()


@functools.cache
def base_table():
    """Every decomposition we use, for operators without a row."""
    rows, made = table.table(), {}
    for name in TAKEN_APART:
        packet = getattr(aten, name)
        for overload in packet.overloads():
            op = getattr(packet, overload)
            if op in decomposition_table and table.spelling(op) not in rows:
                made[op] = decomposition_table[op]
    for op, fn in OWN.items():
        if table.spelling(op) not in rows:
            made[op] = fn
    return made


# Composites without a reduction; those with one are the rows that reduce over something else than given dimensions.
ACTIVATIONS = {"gelu", "mish", "silu", "softplus"}


def table_for(options):
    """The table for given options: `decompose=True` takes composites apart that have a row, a list keeps those it names."""
    decompose = options.get("decompose", False)
    if decompose is False:
        return base_table()
    keep = decompose if isinstance(decompose, list) else []
    made = dict(base_table())
    rows, core = table.table(), torch._decomp.core_aten_decompositions()
    for op, fn in decomposition_table.items():
        found = rows.get(table.spelling(op), ()) if isinstance(op, torch._ops.OpOverload) else ()
        composite = any(r.kind == "reduce" and (r.reduce != "dims" or op in core) or r.name in ACTIVATIONS for r in found)
        if composite and not names_operator(keep, op, found):
            made[op] = fn
    return made


def _split_with_sizes(x, sizes, dim=0):
    parts, at = [], 0
    for size in sizes:
        parts.append(aten.slice.Tensor(x, dim, at, at + size))
        at = at + size
    return parts


def _split(x, size, dim=0):
    n = x.shape[dim]
    if size == 0:
        return [aten.slice.Tensor(x, dim, 0, 0)]
    count = max((n + size - 1) // size, 1)
    return [aten.slice.Tensor(x, dim, i * size, min((i + 1) * size, n)) for i in range(int(count))]


def _unbind(x, dim=0):
    return [aten.select.int(x, dim, i) for i in range(int(x.shape[dim]))]


def _round_decimals(x, decimals=0):
    """Eager's own steps: the scaled value rounded, in f32 and f64 with each step rounded as eager rounds it."""
    if x.dtype not in (torch.float32, torch.float64):
        return NotImplemented
    if decimals == 0:
        return aten.round.default(x)
    scale = float(10 ** abs(decimals))
    if decimals > 0:
        return aten.div.Scalar(aten.round.default(aten.mul.Scalar(x, scale)), scale)
    return aten.mul.Scalar(aten.round.default(aten.div.Scalar(x, scale)), scale)


def _copy(x, source, non_blocking=False):
    """The values of `source` in the type and shape of `x`, which is only read for its strides."""
    if not x.is_contiguous():
        return NotImplemented
    if source.dtype != x.dtype:
        source = aten._to_copy.default(source, dtype=x.dtype)
    return aten.clone.default(source.expand(x.shape), memory_format=torch.contiguous_format)


def _repeat(x, repeats):
    """A dimension of its own for every count, expanded, then joined with the dimension that it repeats."""
    for _ in range(len(repeats) - x.dim()):
        x = aten.unsqueeze.default(x, 0)
    sizes, wide, at = [n * r for n, r in zip(x.shape, repeats)], [], 0
    for n, r in zip(list(x.shape), repeats):
        if not (isinstance(r, int) and r == 1):
            x = aten.unsqueeze.default(x, at)
            wide.append(r)
            at += 1
        wide.append(n)
        at += 1
    return aten.view.default(aten.clone.default(aten.expand.default(x, wide), memory_format=torch.contiguous_format), sizes)


OWN: dict[Any, Callable[..., Any]] = {
    aten.repeat.default: _repeat,
    aten.nll_loss_backward.default: loss.nll_loss_backward, aten.nll_loss2d_backward.default: loss.nll_loss_backward,
    aten.copy.default: _copy,
    aten.round.decimals: _round_decimals,
    aten.split_with_sizes.default: _split_with_sizes, aten.split.Tensor: _split, aten.unbind.int: _unbind}
