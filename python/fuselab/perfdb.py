"""Latencies of measured kernels, looked up by operator and tensors.

    from fuselab.perfdb import Database

    db = Database("NVIDIA_H200/sglang0.5.14")
    answer = db.query("aten.mm.default", [(16, 4096), (4096, 4096)], "bf16")
    answer["latency_us"], answer["source"]        # 13.023, 'MEASURED'

    frame = db.batch(ops, inputs=shapes, dtypes=dtypes)   # columns in (lists, numpy, pandas), numpy columns out

Shapes are tuples or text: `136,7168;7168,3584` is two slots; an empty slot is an absent input. docs/db.md has the
rules by which a row counts as the same kernel.
"""
import os

from . import _core

SOURCES = tuple(_core.database_sources)

_DTYPES = {"bf16": "DT_BF16", "bfloat16": "DT_BF16", "f16": "DT_FLOAT16", "float16": "DT_FLOAT16", "f32": "FLOAT", "float32": "FLOAT",
           "f64": "DOUBLE", "float64": "DOUBLE", "i8": "INT8", "int8": "INT8", "u8": "UINT8", "uint8": "UINT8", "i32": "INT32", "int32": "INT32",
           "i64": "INT64", "int64": "INT64", "bool": "BOOL"}


class Database:
    """A directory of the database. Kernel files are read when they are first asked for.

    Raises an Error with code `db.no_database`, `db.bad_mapping` or, at a lookup, that of a damaged file."""

    def __init__(self, directory):
        self._core = _core.Database(os.fspath(directory))

    @property
    def directory(self):
        return self._core.directory

    @property
    def kernels(self):
        """Types that have a CSV."""
        return self._core.kernels

    @property
    def warnings(self):
        """What the mapping says that is not acted on, with its line."""
        return self._core.warnings

    def query(self, op, inputs=(), dtypes=None, *, formats="", outputs=(), output_dtypes=None, output_formats="", **context):
        """One lookup: a dict with latency_us (microseconds; None for a MISS), source, interval (90 %), method, anchors, reason, accepted.

        `inputs` is text, or a list of shapes (None: an empty slot) or of tensors; `dtypes` text, one dtype for all, or a list. `context`:
        tp, ep, ranks, tier, message_bytes, dtype, or the name of a Runtime column."""
        shapes, given = _slots(inputs)
        out_shapes, out_given = _slots(outputs)
        return self._core.query_text(
            op, shapes, _dtype_text(dtypes, shapes, given), formats, out_shapes, _dtype_text(output_dtypes, out_shapes, out_given),
            output_formats, {k: str(v) for k, v in context.items()})

    def batch(self, ops, inputs=None, dtypes=None, formats=None, outputs=None, output_dtypes=None, output_formats=None, **context):
        """Many lookups at once, without the interpreter lock: columns of text (one text stands for all) in; a dict of numpy columns
        latency_us, lo, hi (NaN for a MISS) and source (numbers of SOURCES), and lists method and reason, out."""
        return self._core.batch_text([str(op) for op in ops], inputs, dtypes, formats, outputs, output_dtypes, output_formats, context)


def _slots(given):
    """Shapes as text, and the dtypes that tensors among them have."""
    if isinstance(given, str):
        return given, None
    texts, dtypes = [], []
    for item in given:
        shape = getattr(item, "shape", item)
        texts.append("" if item is None else ",".join(str(int(d)) for d in shape))
        dtypes.append("DT_UNDEFINED" if item is None else _word(str(getattr(item, "dtype", ""))))
    return ";".join(texts), dtypes if any(d not in ("", "DT_UNDEFINED") for d in dtypes) else None


def _word(dtype):
    name = dtype.removeprefix("torch.")
    return _DTYPES.get(name, name)


def _dtype_text(given, shapes, of_tensors):
    if given is None:
        return ";".join(of_tensors) if of_tensors else ""
    if not isinstance(given, str):
        return ";".join(_word(str(d)) for d in given)
    if ";" in given or not shapes:
        return given
    return ";".join(_word(given) if s else "DT_UNDEFINED" for s in shapes.split(";"))
