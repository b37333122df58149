"""Symbolic sizes: PyTorch's sympy expressions to the text that graphs use.

The text is valid Python too (`//`, `%`, `min`, `max`), so that the same string serves the graph and the lambdas which
run beside it.
"""


class Unsupported(Exception):
    """A value, size or operator that has no graph form; the message is the reason that the statistics show."""


def size_text(value):
    """The text of a size: an int, a SymInt or a sympy integer expression."""
    if isinstance(value, int):  # bool is not expected here and would be an int anyway
        return str(int(value))
    expr = value.node.expr if hasattr(value, "node") else value
    return _text(expr, number=False)


def number_text(value):
    """Python text of a SymFloat (or SymInt) over its symbols: what a scalar operand made of sizes is computed by."""
    expr = value.node.expr if hasattr(value, "node") else value
    return _text(expr, number=True)


def symbols(value):
    """The names of the free symbols, sorted; unbacked ones (known only after running) are refused."""
    if isinstance(value, (int, float)):
        return []
    expr = value.node.expr if hasattr(value, "node") else value
    return sorted(symbol_name(s) for s in expr.free_symbols)


def symbol_name(symbol):
    from torch.utils._sympy.symbol import SymT, symbol_is_type

    if symbol_is_type(symbol, (SymT.UNBACKED_INT, SymT.UNBACKED_FLOAT)):
        raise Unsupported(f"data-dependent size {symbol}")
    return str(symbol)


def _text(e, number):
    import sympy

    if e.is_Integer:
        return str(int(e))
    if e.is_Symbol:
        return symbol_name(e)
    if number and e.is_Float:
        return repr(float(e))
    if e.is_Rational and number:
        return f"({int(e.p)}/{int(e.q)})"
    if e.is_Add:
        return "(" + " + ".join(_text(a, number) for a in e.args) + ")"
    if e.is_Mul:
        numer, denom = e.as_numer_denom()
        if denom != 1:
            op = "/" if number else "//"
            return f"({_text(numer, number)} {op} {_text(denom, number)})"
        return "*".join(_text(a, number) for a in e.args)
    if e.is_Pow:
        base, power = e.args
        if power.is_Integer and int(power) > 0:
            return "*".join([_text(base, number)] * int(power))
        if number:
            return f"({_text(base, number)})**({_text(power, number)})"
    name = type(e).__name__
    args = [_text(a, number) for a in e.args]
    if name in ("FloorDiv", "CleanDiv"):
        return f"({args[0]} // {args[1]})"
    if name in ("Mod", "PythonMod"):
        return f"({args[0]} % {args[1]})"
    if name == "ModularIndexing":
        return f"(({args[0]} // {args[1]}) % {args[2]})"
    if name in ("Max", "Min"):
        text = args[0]
        for other in args[1:]:
            text = f"{name.lower()}({text}, {other})"
        return text
    if name == "Identity":
        return args[0]
    if number:
        if name in ("IntTrueDiv", "FloatTrueDiv"):
            return f"({args[0]} / {args[1]})"
        if name == "ToFloat":
            return f"float({args[0]})"
        if name in ("TruncToInt",):
            return f"int({args[0]})"
        if name in ("FloatPow", "PowByNatural"):
            return f"({args[0]})**({args[1]})"
        if name == "OpaqueUnaryFn_sqrt" or isinstance(e, sympy.Function) and name == "sqrt":
            return f"({args[0]})**0.5"
    raise Unsupported(f"size expression {e}")
