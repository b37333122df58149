"""ULP errors against values of higher precision, gathered over many inputs in fixed memory."""
import functools
import math

import torch

# Bits of the significand with the hidden one; binary exponent of the smallest normal number as frexp gives it.
_FORMATS = {torch.float16: (11, -13), torch.bfloat16: (8, -125), torch.float32: (24, -125), torch.float64: (53, -1021)}
_BINS_PER_OCTAVE_BITS = 10   # the share of the f32 pattern that counts: 1024 bins per octave, 0.1 %
_WAITING = 1 << 19   # numbers that are counted at a time


def ulp(exact, dtype):
    """The distance of neighbouring numbers of `dtype` at |exact| (f64), as f64. At a power of two: of the larger side."""
    bits, least = _FORMATS[dtype]
    exponent = torch.frexp(exact).exponent
    exponent = torch.where(exact == 0, torch.full_like(exponent, least), exponent.clamp(min=least))
    return torch.ldexp(torch.ones_like(exact), exponent - bits)


class Truth:
    """Exact values (f64) and the ulp of `dtype` at them, to compare results of that dtype with."""

    def __init__(self, exact, dtype):
        self.exact, self.dtype = exact, dtype
        self.rounded = exact.to(dtype)
        self.unit = ulp(exact, dtype)
        self.finite = torch.isfinite(exact) & torch.isfinite(self.rounded)

    @functools.cached_property
    def row_unit(self):
        rms = self.exact.square().mean(-1, keepdim=True).sqrt()
        return ulp(torch.maximum(self.exact.abs(), rms), self.dtype)

    def errors(self, actual):
        """|actual - exact| in ulp at exact, for the elements where both are finite; and how many of the others differ.

        Others agree when both are NaN, or both are the same infinity (an exact value that rounds to infinity counts as one).
        """
        wide = actual.double()
        both = self.finite & torch.isfinite(wide)
        errors = (wide - self.exact).abs() / self.unit
        if bool(both.all()):
            return errors.flatten(), 0
        same = (torch.isnan(wide) & torch.isnan(self.exact)) | (actual == self.rounded)
        return errors[both], int((~both & ~same).sum())

    def largest_scaled(self, actual):
        """The largest error in ulp at the larger of |exact| and the rms of its row: where terms cancel, what is left has no digits of its own."""
        errors = (actual.double() - self.exact).abs() / self.row_unit
        errors = errors[self.finite & torch.isfinite(errors)]
        return float(errors.max()) if errors.numel() else 0.0


def ulp_errors(actual, exact):
    """Truth.errors for one result."""
    return Truth(exact, actual.dtype).errors(actual)


def ulp_distance(a, b):
    """Representable numbers between a and b, element by element; NaN is 0 from NaN."""
    from .. import numerics

    return torch.from_dlpack(numerics.ulp_diff(a.contiguous(), b.contiguous()))


class Tally:
    """Counts non-negative numbers: exact maximum and mean, percentiles within 0.1 % (and 0 exactly)."""

    def __init__(self):
        self.shift = 23 - _BINS_PER_OCTAVE_BITS
        self.bins = torch.zeros(1 << (31 - self.shift), dtype=torch.int64)
        self.count, self.sum, self.max, self.where = 0, 0.0, 0.0, None
        self.waiting: list = []   # patterns to be counted
        self.waits = 0

    def add(self, values, where=None):
        """`where`: what the maximum is remembered with, e.g. the seed of this input. Returns the maximum of these values."""
        if values.numel() == 0:
            return 0.0
        largest = float(values.max())
        if largest > self.max or self.count == 0:
            self.max, self.where = largest, where
        self.count += values.numel()
        self.sum += float(values.sum())
        self.waiting.append((values.float().view(torch.int32) >> self.shift).flatten())
        self.waits += values.numel()
        if self.waits >= _WAITING:
            self._count()
        return largest

    def _count(self):
        if self.waiting:
            self.bins += torch.bincount(torch.cat(self.waiting), minlength=len(self.bins))
            self.waiting, self.waits = [], 0

    @property
    def mean(self):
        return self.sum / self.count if self.count else 0.0

    def percentile(self, share):
        """By nearest rank: the lower edge of the bin of the value that this share of all does not exceed; never above the maximum."""
        if not self.count:
            return 0.0
        self._count()
        rank = max(1, math.ceil(share * self.count))
        index = int(torch.searchsorted(self.bins.cumsum(0), rank))
        return min(self.max, float(torch.tensor(index << self.shift, dtype=torch.int32).view(torch.float32)))


def shares(distances):
    """Shares of 0, 1 and 2 or more."""
    n = max(1, distances.numel())
    zero, one = int((distances == 0).sum()), int((distances == 1).sum())
    return zero / n, one / n, (distances.numel() - zero - one) / n
