"""Small formulas in three variables, one for each way to order actions (Castronovo et al. 2012, 2016).

A formula of size k combines k variables and operators: |x|, ln x, √x, 1/x, −x, x − y, x / y, x + y, x · y, min and max.
One that cannot be computed at some of 1000 points in [−100, 100]³ is left out, and of those that order these points
alike, as `x` and `2x` or `|x|` and `ln|x|` do, one is kept, the first that is met. So there are 12 formulas of size 2
and less, 43 of 3, 221 of 4 and 1159 of 5. (The authors' script counts 12, 43, 226 and 1208; here, formulas that differ
by rounding alone are one.)

Formulas are codes in reverse Polish notation: 0, 1 and 2 are the variables.
"""

import math
from functools import cache

import numpy as np
from numba import njit

from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.options import EXACT

ABS, LN, SQRT, INV, OPP, SUB, DIV, ADD, MUL, MIN, MAX = range(3, 14)
STOP = -1  # after the last of a shorter formula
LONGEST = 5  # sizes that are made in seconds
_POINTS, _REACH = 1000, 100.0
_DIGITS, _ZERO = 9, 1e-9  # beyond which two numbers are one
_UNARY = {
    ABS: np.abs,
    LN: np.log,
    SQRT: np.sqrt,
    INV: np.reciprocal,
    OPP: np.negative,
}
_BINARY = {SUB: np.subtract, DIV: np.divide, ADD: np.add, MUL: np.multiply, MIN: np.minimum, MAX: np.maximum}
_NAMES = {ABS: "|{}|", LN: "ln {}", SQRT: "√{}", INV: "1/{}", OPP: "−{}"}
_SIGNS = {SUB: "({} − {})", DIV: "({} / {})", ADD: "({} + {})", MUL: "({} · {})"}
_SIGNS |= {MIN: "min({}, {})", MAX: "max({}, {})"}


def _rounded(values: FloatArray) -> FloatArray:
    size = np.where(np.abs(values) < _ZERO, 1.0, np.abs(values))
    digit = 10.0 ** (np.floor(np.log10(size)) - _DIGITS + 1)
    return np.where(np.abs(values) < _ZERO, 0.0, np.round(values / digit) * digit)


@cache
def formulas(size: int) -> IntArray:
    """`[formula,code]`: those of at most this size, shorter ones filled up with `STOP`.

    >>> len(formulas(2)), len(formulas(3))
    (12, 43)
    """
    points = np.random.default_rng(0).uniform(-_REACH, _REACH, (3, _POINTS))
    values: set[bytes] = set()
    orders: dict[bytes, tuple[int, ...]] = {}
    of_size: list[list[tuple[FloatArray, tuple[int, ...]]]] = [[] for _ in range(size + 1)]

    def meet(made: FloatArray, code: tuple[int, ...]) -> None:
        if not np.isfinite(made).all():
            return
        told = _rounded(made)
        if told.tobytes() not in values:
            values.add(told.tobytes())
            of_size[len(code)].append((made, code))
            orders.setdefault(np.unique(told, return_inverse=True)[1].tobytes(), code)

    for i in range(3):
        meet(points[i], (i,))
    with np.errstate(all="ignore"):
        for k in range(2, size + 1):
            for x, code in of_size[k - 1]:
                for operator, function in _UNARY.items():
                    meet(function(x), (*code, operator))
            for left in range(1, k - 1):
                for x, first in of_size[left]:
                    for y, second in of_size[k - 1 - left]:
                        for operator, combine in _BINARY.items():
                            meet(combine(x, y), (*first, *second, operator))
    kept = np.full((len(orders), size), STOP, np.int64)
    for i, code in enumerate(orders.values()):
        kept[i, : len(code)] = code
    return kept


def said(code: IntArray, names: tuple[str, str, str] = ("x", "y", "z")) -> str:
    """A formula for people.

    >>> said(np.array([0, 1, ABS, ADD, STOP]))
    '(x + |y|)'
    """
    stack: list[str] = []
    for token in code.tolist():
        if token in _SIGNS:
            second, first = stack.pop(), stack.pop()
            stack.append(_SIGNS[token].format(first, second))
        elif token != STOP:
            stack.append(names[token] if token < ABS else _NAMES[token].format(stack.pop()))
    return stack[0]


@njit(**EXACT)
def value_of(code, x, y, z, stack):
    """A formula's value; NaN where it cannot be computed. `stack` has room for half of it."""
    top = -1
    for token in code:
        if token == STOP:
            break
        if token < ABS:
            top += 1
            stack[top] = x if token == 0 else y if token == 1 else z
            continue
        v = stack[top]
        if token <= OPP:
            if (token == LN and v <= 0.0) or (token == SQRT and v < 0.0) or (token == INV and v == 0.0):
                return math.nan
            if token == ABS:
                v = abs(v)
            elif token == LN:
                v = math.log(v)
            elif token == SQRT:
                v = math.sqrt(v)
            else:
                v = 1.0 / v if token == INV else -v
        else:
            top -= 1
            u = stack[top]
            if token == DIV:
                if v == 0.0:
                    return math.nan
                v = u / v
            elif token in (MIN, MAX):
                v = min(u, v) if token == MIN else max(u, v)
            else:
                v = u - v if token == SUB else u + v if token == ADD else u * v
        stack[top] = v
    return stack[0]
