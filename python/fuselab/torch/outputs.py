"""What becomes of a graph's results: computed by the core, an input handed back, or a view of either.

A view of an input, and two results that share a storage, must be made by PyTorch: AOTAutograd reads their storage offsets
and in-place changes have to be seen through all of them.
"""
import dataclasses

import torch

from .exprs import size_text, symbol_name


@dataclasses.dataclass
class Finish:
    core: list          # nodes whose values the core returns (dropped before it is kept in the cache)
    source: str         # def finish(core, a0, a1, ...): runs the core and makes the results
    plain: bool         # the results are the core's, in order
    bases: set          # nodes the core computes of which views are made afterwards
    arguments: int = 0

    def trivial(self):
        return self.plain

    def keep(self, indices):
        """The core takes only these of the arguments."""
        if len(indices) < self.arguments:
            before = ", ".join(f"a{i}" for i in range(self.arguments))
            self.source = self.source.replace(f"r = core({before})", f"r = core({', '.join(f'a{i}' for i in indices)})")
            if self.plain:
                self.plain = False


def is_view(node):
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


def plan(placeholders, results):
    """The Finish of a graph: which node values the core computes, and the function that makes the results of them."""
    core, parts, bases = [], [], set()
    storages = {}            # storage of an input -> its index
    for i, node in enumerate(placeholders):
        val = node.meta.get("val")
        if isinstance(val, torch.Tensor):
            storages.setdefault(_storage(val), i)
    shared = _shared(results)
    index = {n: i for i, n in enumerate(placeholders)}
    env = _symbol_sources(placeholders)
    used = set()

    def core_result(node):
        if node not in core:
            core.append(node)
        return f"r[{core.index(node)}]"

    def size(value):
        text = size_text(value)
        used.update(symbol_name(s) for s in getattr(getattr(value, "node", None), "expr", _NO_SYMBOLS).free_symbols)
        return text

    def view_of(base, base_val, val):
        shift = _difference(val.storage_offset(), base_val.storage_offset())
        sizes = ", ".join(size(s) for s in val.shape)
        strides = ", ".join(size(s) for s in val.stride())
        offset = f"{base}.storage_offset()" + (f" + {shift[0]}" if shift[0] != "0" else "")
        used.update(shift[1])
        made = f"{base}.as_strided([{sizes}], [{strides}], {offset})"
        return made if val.dtype == base_val.dtype else None

    for node in results:
        val = node.meta.get("val") if isinstance(node, torch.fx.Node) else node
        if not isinstance(val, torch.Tensor):
            parts.append(size(val) if isinstance(val, torch.SymInt) else repr(val))
            continue
        if node in index:
            parts.append(f"a{index[node]}")
            continue
        at = storages.get(_storage(val))
        if at is not None:
            view = view_of(f"a{at}", placeholders[at].meta["val"], val)
            parts.append(view if view is not None else core_result(node))
            continue
        base = _base(node)
        if base is not node and _storage(val) in shared and not (isinstance(base, torch.fx.Node) and base in index):
            base_val = base.meta.get("val")
            bases.add(base)
            view = view_of(core_result(base), base_val, val) if isinstance(base_val, torch.Tensor) else None
            parts.append(view if view is not None else core_result(node))
            continue
        parts.append(core_result(node))
    plain = bool(core) and parts == [f"r[{i}]" for i in range(len(core))] and len(core) == len(results)  # nothing: () all the same
    args = ", ".join(f"a{i}" for i in range(len(placeholders)))
    lines = [f"def finish(core, {args}):" if args else "def finish(core):"]
    if core:
        lines.append(f"    r = core({args})")
    lines += [f"    {name} = {env[name]}" for name in sorted(used) if name in env]
    lines.append(f"    return ({', '.join(parts)}{',' if len(parts) == 1 else ''})")
    return Finish(core, "\n".join(lines) + "\n", plain, bases, len(placeholders))


class _NoSymbols:
    free_symbols = ()


_NO_SYMBOLS = _NoSymbols()


def _storage(val):
    return val.untyped_storage()._cdata


def _shared(results):
    """Storages that two or more different results have."""
    seen, twice = {}, set()
    for node in results:
        val = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
        if isinstance(val, torch.Tensor):
            key = _storage(val)
            if key in seen and seen[key] is not node:
                twice.add(key)
            seen[key] = node
    return twice


def _base(node):
    """The node at the start of a chain of views."""
    while is_view(node) and isinstance(node.meta.get("val"), torch.Tensor) and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return node


def _difference(a, b):
    """Text and symbols of a - b."""
    ea, eb = (x.node.expr if isinstance(x, torch.SymInt) else x for x in (a, b))
    diff = ea - eb
    if isinstance(diff, int):
        return str(diff), ()
    return size_text(diff), [symbol_name(s) for s in diff.free_symbols]


def _symbol_sources(placeholders):
    """Symbol -> Python text that reads it from the arguments."""
    env = {}
    for i, node in enumerate(placeholders):
        val = node.meta.get("val")
        if isinstance(val, torch.SymInt) and val.node.expr.is_Symbol:
            env[str(val.node.expr)] = f"a{i}"
    for i, node in enumerate(placeholders):
        val = node.meta.get("val")
        if isinstance(val, torch.Tensor):
            for d, s in enumerate(val.shape):
                if isinstance(s, torch.SymInt) and s.node.expr.is_Symbol:
                    env.setdefault(str(s.node.expr), f"a{i}.shape[{d}]")
    return env
