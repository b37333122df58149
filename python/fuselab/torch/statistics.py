"""The statistics that a norm saves for its gradient keep the dtype eager saves them in.

PyTorch's shape functions say that mean and 1/std of an f16 or bf16 input have the input's dtype. With f32 parameters (mixed
types, as under autocast) eager saves them in f32; rounding them would make the gradient less accurate than eager's.
"""
import operator

import torch

from . import table

LOW = (torch.float16, torch.bfloat16)
SAME = (torch.ops.aten.detach.default, torch.ops.aten.alias.default)


def keep_statistics(graph):
    """Gives such results, and what takes them out of their tuple, the dtype that the op table computes them in."""
    for node in graph.nodes:
        if node.op == "call_function" and isinstance(node.meta.get("val"), (tuple, list)):
            for k in _kept_in_f32(node):
                holders = [u for u in node.users if u.target is operator.getitem and u.args[1] == k]
                for holder in holders:  # grows: what only hands the value on holds it too
                    holders += [u for u in holder.users if u.target in SAME]
                if all(_takes_any_dtype(u) for h in holders for u in h.users if u not in holders):
                    _retype(node, k, holders)


def _kept_in_f32(node):
    rows = table.table().get(table.spelling(node.target), ())
    inputs = [n.meta["val"].dtype for n in node.all_input_nodes if table.is_tensor(n)]
    if not rows or not inputs or inputs[0] not in LOW or torch.float32 not in inputs[1:]:
        return []
    return [k for k, val in enumerate(node.meta["val"]) if isinstance(val, torch.Tensor) and val.dtype in LOW
            and any(row.aten_result == -1 and row.type_rules[k:k + 1] == ["compute"] for row in rows)]


def _takes_any_dtype(node):
    """Is it a gradient in the op table, or the end of the graph?"""
    spelled = table.spelling(node.target) if node.op == "call_function" else None
    return node.op == "output" or spelled is not None and "backward" in spelled and spelled in table.table()


def _retype(node, k, holders):
    vals = list(node.meta["val"])
    with vals[k].fake_mode:
        vals[k] = torch.empty_strided(vals[k].shape, vals[k].stride(), dtype=torch.float32)
    node.meta["val"] = tuple(vals)
    for holder in holders:
        holder.meta["val"] = vals[k]
        holder.meta.pop("tensor_meta", None)
