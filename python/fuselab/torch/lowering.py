"""An AOTAutograd graph (FX, functional, on ATen operators) -> graph text, extern calls and what to do with the results.

Table operators become lines of the text; operators without a row become extern calls; results that alias inputs or each
other are rebuilt as views after the call (outputs.py), because only PyTorch can make two tensors share a storage.
"""
import collections
import dataclasses
import operator
import re

import torch

from . import externs, outputs, table
from .exprs import Unsupported, number_text, size_text, symbol_name, symbols
from .options import names_operator

RESERVED = {"return", "none", "true", "false", "inf", "nan", "extern", "graph", "size", "min", "max", "mod", "floordiv"}


KEPT = torch.preserve_format


class WholeGraph(Exception):
    """The graph as a whole cannot be compiled; the message is the reason."""


@dataclasses.dataclass
class Lowered:
    text: str                    # "" when no value has to be computed
    specs: list
    finish: outputs.Finish | None  # None: the core's results are the graph's results
    counts: dict                 # lowered, fallbacks, externs: text -> times
    lines: dict                  # line number of the text -> name of the FX node it came from
    values: dict                 # value name -> [(name of an FX node, result index or None)]: what the scripts of kernels need
    reads: dict                  # (name of an FX node, result or None) -> the nodes its lines read: fewer where a row needs fewer
    numbers: dict                # value name -> Python text of the number made of sizes that it holds


def lower(gm, name, options, skip):
    """`skip` names FX nodes (-> reason) that must stay in PyTorch. Throws WholeGraph."""
    return _Lowering(gm, name, options, skip).run()


class _Lowering:
    def __init__(self, gm, name, options, skip):
        self.gm, self.name, self.options, self.skip = gm, name, options, skip
        self.rows = table.table()
        self.skip_ops = options.get("skip_ops", ())
        self.skip_nodes = set(options.get("skip_nodes", ()))
        self.names, self.used = {}, set(RESERVED)
        self.body, self.specs, self.lines = [], [], {}
        self.inferred = set()    # nodes whose strides the table's rule decides
        self.reads = {}
        self.numbers = {}        # value name -> text of a number made of sizes
        self.results = {}        # multi-result node -> {result index: value name}
        self.counts = {k: collections.Counter() for k in ("lowered", "fallbacks", "externs")}

    def run(self):
        nodes = list(self.gm.graph.nodes)
        self.check(nodes)
        self.placeholders = [n for n in nodes if n.op == "placeholder"]
        out = next(n for n in reversed(nodes) if n.op == "output")
        finish = outputs.plan(self.placeholders, out.args[0])
        needed = self.needed(finish.core)
        self.bases = finish.bases
        params = self.parameters()
        for node in nodes:
            if node in needed and node.op in ("call_function", "get_attr"):
                before = len(self.body)
                self.emit(node)
                for i in range(before, len(self.body)):
                    self.lines[i + 2] = node.name
        text = ""
        if finish.core:
            finish.keep(self.used_parameters(params))
            head = f"graph {self.name}({', '.join(text for text, symbol in params if symbol is None or symbol in self.read)}) {{"
            text = "\n".join([head, *self.body, "  return " + ", ".join(self.value(n) for n in finish.core), "}", ""])
        return Lowered(text, self.specs, None if finish.trivial() else finish, {k: dict(v) for k, v in self.counts.items()},
                       self.lines, self.values(), dict(self.reads), dict(self.numbers))

    def values(self):
        out = {}
        for node, name in self.names.items():
            out.setdefault(name, []).append((node.name, None))
        for node, names in self.results.items():
            for k, name in names.items():
                out.setdefault(name, []).append((node.name, k))
        return out

    def check(self, nodes):
        """Reasons why nothing of this graph can be compiled."""
        for node in nodes:
            if node.op in ("call_module", "call_method"):
                raise WholeGraph(f"{node.op} {node.target}")
            if node.op == "call_function" and not isinstance(node.target, torch._ops.OpOverload):
                if isinstance(node.target, torch._ops.HigherOrderOperator):
                    raise WholeGraph(f"higher-order operator {node.target}")
            if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
                raise WholeGraph(f"{node.target} changes its arguments")
            if node.op == "call_function" and node.target in torch.fx.node._side_effectful_functions:
                raise WholeGraph(f"{node.target} has side effects")
            for val in _leaves(node.meta.get("val")):
                if isinstance(val, torch.Tensor):
                    if val.device.type != "cpu":
                        raise WholeGraph(f"a tensor on {val.device}")
                    if val.layout != torch.strided or val.dtype not in table.DTYPES:
                        raise WholeGraph(f"a tensor of type {val.dtype}" if val.layout == torch.strided else f"layout {val.layout}")
                elif isinstance(val, torch.SymInt):
                    try:
                        symbols(val)
                    except Unsupported as e:
                        raise WholeGraph(str(e)) from None

    def needed(self, roots):
        seen, todo = set(), list(roots)
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                if _is_value(node):
                    todo.extend(node.all_input_nodes)
        return seen

    # -------------------------------------------------------------- names and types

    def parameters(self):
        """[(text, symbol)] for every placeholder; the symbol is None for tensors."""
        params: list[tuple[str, str | None]] = []
        for node in self.placeholders:
            val = node.meta.get("val")
            if isinstance(val, torch.Tensor):
                params.append((f"{self.name_of(node)}: {self.type_text(val)}", None))
            elif isinstance(val, torch.SymInt) and val.node.expr.is_Symbol and symbol_name(val.node.expr) not in self.used:
                self.used.add(symbol_name(val.node.expr))
                params.append((f"{symbol_name(val.node.expr)}: size", symbol_name(val.node.expr)))
            elif isinstance(val, (int, torch.SymInt)) and not isinstance(val, bool):
                params.append(("", ""))  # its value is known by its expression
            else:
                raise WholeGraph(f"an input of type {type(val).__name__}")
        return params

    def used_parameters(self, params):
        """Indices of the parameters the graph reads: every tensor, and the sizes its text mentions."""
        text = "\n".join(self.body + [t for t, symbol in params if symbol is None])
        self.read = {symbol for _, symbol in params if symbol and re.search(rf"\b{symbol}\b", text)}
        for node in self.placeholders:
            val = node.meta.get("val")
            if isinstance(val, torch.SymInt) and val.node.expr.is_Symbol and str(val.node.expr) in self.read:
                bounds = val.node.shape_env.var_to_range.get(val.node.expr)
                if bounds is not None and bounds.lower < 0:
                    raise WholeGraph("an integer input that may be negative")
        return [i for i, (_, symbol) in enumerate(params) if symbol is None or symbol in self.read]

    def fresh(self, base):
        name, i = base, 1
        while name in self.used:
            name, i = f"{base}_{i}", i + 1
        self.used.add(name)
        return name

    def name_of(self, node):
        if node not in self.names:
            base = "".join(c if c.isalnum() or c == "_" else "_" for c in node.name)
            self.names[node] = self.fresh(base)
        return self.names[node]

    def value(self, node):
        """The text's name of a node that holds a tensor."""
        if node.target is operator.getitem:
            source, k = node.args
            return self.results[source][k]
        return self.names[node]

    def type_text(self, val):
        try:
            sizes = [size_text(s) for s in val.shape]
            text = f"{table.DTYPES[val.dtype]}[{', '.join(sizes)}]"
            strides = val.stride()
            if all(type(s) is int for s in val.shape) and all(type(s) is int for s in strides):
                if not val.is_contiguous():
                    text += "{" + ", ".join(map(str, strides)) + "}"
                return text
            if not _contiguous(val.shape, strides):
                text += "{" + ", ".join(size_text(s) for s in strides) + "}"
            return text
        except Unsupported as e:
            raise WholeGraph(str(e)) from None

    # -------------------------------------------------------------- nodes

    def emit(self, node):
        if node.op == "get_attr":
            tensor = getattr(self.gm, node.target)
            if not isinstance(tensor, torch.Tensor) or type(tensor) is not torch.Tensor and not isinstance(tensor, torch.nn.Parameter):
                raise WholeGraph(f"constant of type {type(tensor).__name__}")
            if tensor.dtype not in table.DTYPES or tensor.device.type != "cpu":
                raise WholeGraph(f"constant tensor of type {tensor.dtype} on {tensor.device}")
            self.specs.append(externs.constant_spec(tensor))
            self.body.append(f"  {self.name_of(node)}: {self.type_text(tensor)} = "
                             f'extern(target="constant", call={len(self.specs) - 1})')
            return
        if node.target is operator.getitem or not _is_value(node):
            return
        same = _identity_of(node)
        if same is not None:
            self.names[node] = self.value(same)
            return
        reason = self.skipped(node)
        lines = None
        mark = len(self.specs)
        if reason is None:
            try:
                lines = self.table_lines(node)
            except Unsupported as e:
                reason = str(e)
                del self.specs[mark:]
        if lines is None:
            lines = self.extern_lines(node, reason)
        else:
            self.counts["lowered"][self.signature(node)] += 1
        self.body.extend(lines)

    def skipped(self, node):
        if node.name in self.skip:
            return self.skip[node.name]
        if node.name in self.skip_nodes:
            return "skip_nodes"
        if self.skip_ops and names_operator(self.skip_ops, node.target, self.rows.get(table.spelling(node.target), ())):
            return "skip_ops"
        return None

    def used_results(self, node):
        return sorted({u.args[1] for u in node.users if u.target is operator.getitem})

    def table_lines(self, node):
        """The line(s) of a node whose overload has a row; throws Unsupported."""
        rows = self.rows.get(table.spelling(node.target), ())
        if not rows:
            raise Unsupported("no row in the op table")
        if all(r.kind in ("extern", "extern_") for r in rows):
            raise Unsupported("")
        val = node.meta["val"]
        if isinstance(val, torch.Tensor):
            return self.first_match(node, [r for r in rows if r.aten_result in (-1, 0)], [val], [self.name_of(node)])
        used = self.used_results(node)
        names = {k: self.fresh(f"{node.name}_{k}") for k in range(len(val))}
        self.results[node] = names
        singles = {k: [r for r in rows if r.aten_result == k] for k in used}
        whole = [r for r in rows if r.aten_result == -1]
        if len(used) == 1 and singles[used[0]] or not whole:
            lines = []
            for k in used:
                lines += self.first_match(node, singles[k], [val[k]], [names[k]])
            return lines
        return self.first_match(node, whole, list(val), list(names.values()))

    def first_match(self, node, rows, vals, names):
        error = None
        for row in rows:
            mark = len(self.specs)
            try:
                return self.row_lines(row, node, vals, names)
            except Unsupported as e:
                error = error or e
                del self.specs[mark:]
        raise error or Unsupported("no row for this result")

    def row_lines(self, row, node, vals, names):
        def result_type(what):
            if what == "dtype":
                return vals[0].dtype
            if what == "shape":
                return list(vals[0].shape)
            if what == "size" and vals[0].dim() == 1:
                return vals[0].shape[0]
            raise Unsupported(f"no value for {what}")

        if any(v is None for v in vals):
            raise Unsupported("a result that is None")
        values = table.schema_values(node.target, node.args, node.kwargs)
        operands, attrs, convert = row.match(values, result_type, table.spelling(node.target))
        for k in [k for k, n in self.results.get(node, {}).items() if n in names] or [None]:
            self.reads[node.name, k] = {v.name for v in operands if isinstance(v, torch.fx.Node)}
        before, words = [], []
        for operand in operands:
            word, extra = self.operand(operand, convert)
            if table.is_tensor(operand):
                convert = None
            before += extra
            words.append(word)
        words += [f"{k}={table.attr_text(kind, v)}" for k, (kind, v) in attrs.items()]
        typed, after = [], []
        for k, (name, val) in enumerate(zip(names, vals)):
            own = row.computed_type(k, operands) or val.dtype
            text = self.type_text(val)
            if own != val.dtype:  # PyTorch's shape function says another type than the table: the value is cast to it
                wide = self.fresh(f"{name}_{table.DTYPES[own]}")
                after.append(f"  {name}: {text} = cast({wide}, dtype={table.DTYPES[val.dtype]})")
                name, text = wide, table.DTYPES[own] + text[text.index("["):]
            typed.append(f"{name}: {text}")
        left = ", ".join(typed)
        if self.own_strides(row, node, operands):
            self.inferred.add(node)
            left = names[0]
        return before + [f"  {left} = {row.name}({', '.join(words)})", *after]

    def own_strides(self, row, node, operands):
        """Does the table's rule, which is eager's, decide the strides of the result?

        PyTorch's shape functions sometimes predict others (pow(0.5, x.t()); copysign of a transposed f16 and an f32). They
        are right where everything is contiguous, and are kept where a view is made of the result after the call.
        """
        if node in self.bases or row.kind not in ("pointwise", "view") or node.kwargs.get("memory_format", KEPT) != KEPT:
            return False
        tensors = [v for v in operands if table.is_tensor(v)]
        if any(v in self.inferred for v in tensors):
            return True
        return row.kind == "pointwise" and not all(_contiguous(v.meta["val"].shape, v.meta["val"].stride()) for v in tensors)

    def operand(self, value, convert):
        if value is None:
            return "none", []
        if table.is_tensor(value):
            name, val = self.value(value), value.meta["val"]
            if convert is not None and convert != val.dtype:
                if convert not in table.DTYPES:
                    raise Unsupported(f"dtype {convert}")
                cast = self.fresh(f"{name}_as_{table.DTYPES[convert]}")
                return cast, [f"  {cast} = cast({name}, dtype={table.DTYPES[convert]})"]
            return name, []
        if isinstance(value, torch.fx.Node):
            value = value.meta["val"]
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            spec, sizes = externs.number_spec(value)
            self.specs.append(spec)
            name = self.fresh("number")
            kind = "i64" if isinstance(value, torch.SymInt) else "f64"
            self.numbers[name] = size_text(value) if kind == "i64" else number_text(value)
            return name, [f'  {name}: {kind}[] = extern(target="size", call={len(self.specs) - 1}, sizes=[{", ".join(sizes)}])']
        return table.literal(value), []

    def extern_lines(self, node, reason):
        val = node.meta["val"]
        keep = None
        if not isinstance(val, torch.Tensor):
            keep = self.used_results(node)
            self.results[node] = {k: self.fresh(f"{node.name}_{k}") for k in keep}
            if not keep:
                return []
            if any(val[k] is None for k in keep):
                raise WholeGraph(f"{node.target} with a result that is None")
            pairs = [(self.results[node][k], val[k]) for k in keep]
        else:
            pairs = [(self.name_of(node), val)]
        if not isinstance(node.target, torch._ops.OpOverload):
            raise WholeGraph(f"call of {node.target}")
        try:
            spec, tensors, sizes = externs.call_spec(node, keep)
        except Unsupported as e:
            raise WholeGraph(f"{node.target}: {e}") from None
        self.specs.append(spec)
        words = [self.value(t) for t in tensors] + [f'target="{spec.target}"', f"call={len(self.specs) - 1}"]
        words += [f"sizes=[{', '.join(sizes)}]"] if sizes else []
        kind = "fallbacks" if reason and not by_design(node.target) else "externs"
        text = self.signature(node)
        self.counts[kind][f"{text}  # reason: {reason}" if kind == "fallbacks" else text] += 1
        return [f"  {', '.join(f'{n}: {self.type_text(v)}' for n, v in pairs)} = extern({', '.join(words)})"]

    def signature(self, node):
        """`aten.add.Tensor(f32[4], 2) -> f32[4]`, for the statistics."""
        def show(v):
            if isinstance(v, torch.fx.Node):
                v = v.meta.get("val")
            if isinstance(v, torch.Tensor):
                return self.type_text(v)
            if isinstance(v, (list, tuple)):
                return "[" + ", ".join(show(x) for x in v) + "]"
            return str(v)

        parts = [show(a) for a in node.args] + [f"{k}={show(v)}" for k, v in node.kwargs.items()]
        return f"{node.target}({', '.join(parts)}) -> {show(node.meta['val'])}"


# Operators that run in the host framework by design: they end a block and are no loss.
BY_DESIGN = (
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "vdot", "convolution", "attention", "lstm", "gru", "rnn",
    "sort", "topk", "rand", "bernoulli", "dropout", "normal", "multinomial", "linalg", "fft", "cholesky", "solve", "triangular",
    "pool", "mkldnn", "mkl")


def by_design(target):
    name = target._schema.name.partition("::")[2]
    return any(word in name for word in BY_DESIGN)


def _is_value(node):
    """Does the node hold a tensor (or several)? Sizes are carried by their expressions, not by nodes."""
    return node.op == "get_attr" or any(isinstance(v, torch.Tensor) for v in _leaves(node.meta.get("val")))


def _leaves(val):
    return val if isinstance(val, (list, tuple)) and not isinstance(val, torch.Size) else [val]


def _expr(size):
    return size.node.expr if isinstance(size, torch.SymInt) else size


def _contiguous(sizes, strides):
    step = 1
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if type(size) is int and size in (0, 1):
            continue
        if _expr(stride) != step:
            return False
        step = step * _expr(size)
    return True


def _identity_of(node):
    """The input of a view that changes nothing (alias, detach), or None."""
    if not isinstance(node.target, torch._ops.OpOverload) or len(node.all_input_nodes) != 1:
        return None
    source, val = node.all_input_nodes[0], node.meta["val"]
    old = source.meta.get("val")
    if not isinstance(val, torch.Tensor) or not isinstance(old, torch.Tensor) or not outputs.is_view(node):
        return None
    same = (val.dtype == old.dtype and len(val.shape) == len(old.shape) and all(
        _expr(a) == _expr(b) for a, b in zip((*val.shape, *val.stride(), val.storage_offset()),
                                             (*old.shape, *old.stride(), old.storage_offset()))))
    return source if same else None
