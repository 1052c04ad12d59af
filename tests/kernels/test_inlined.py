"""What is put into its callers does there what it does alone, and has no code of its own that nobody calls."""

import math

import numpy as np
import pytest
from numba import njit
from numba.core.dispatcher import Dispatcher

from beliefbound.kernels import inlined as module
from beliefbound.kernels.inlined import inline_without_code, supported
from beliefbound.kernels.options import EXACT, EXACT_INLINE
from beliefbound.kernels.out_of_line import out_of_line

INLINE = {**EXACT_INLINE, "cache": False}


@out_of_line
@njit(**{**EXACT, "cache": False})
def root(x):
    return math.sqrt(x)


@njit(**INLINE)
def checked(x):
    if x < 0.0:
        raise ValueError("below 0")
    return root(x)


@njit(**INLINE)
def roots(x):
    """Allocates, and calls what is inlined, and what is not."""
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = checked(x[i])
    return out


@njit(**{**EXACT, "cache": False})
def total(x):
    return roots(x).sum() + checked(x[0])


def test_it_is_supported_here():
    """Where numba has changed so that it is not, compiling takes longer, and kernels/inlined.py is to be mended."""
    assert supported()
    assert hasattr(Dispatcher.get_call_template, "__wrapped__")


def test_callers_compute_the_same():
    x = np.array([4.0, 9.0])
    assert total(x) == 7.0
    with pytest.raises(ValueError, match="below 0"):
        total(-x)


def test_it_has_code_when_python_calls_it():
    x = np.array([4.0, 9.0])
    total(x)
    fresh = njit(**INLINE)(roots.py_func)
    assert njit(lambda x: fresh(x).sum())(x) == 5.0
    assert not fresh.overloads
    assert fresh(x).tolist() == [2.0, 3.0]
    assert len(fresh.overloads) == 1


def test_functions_of_other_people_are_left_alone():
    other = njit(forceinline=True)(lambda x: x + 1)
    assert njit(lambda x: other(x))(1) == 2
    assert len(other.overloads) == 1


def test_a_numba_without_the_parts_is_left_as_it_is(monkeypatch):
    plain = Dispatcher.get_call_template.__wrapped__
    monkeypatch.setattr(Dispatcher, "get_call_template", plain)
    monkeypatch.setattr(module, "supported", lambda: False)
    inline_without_code()
    assert Dispatcher.get_call_template is plain


def test_it_is_installed_once():
    before = Dispatcher.get_call_template, Dispatcher.get_overload
    inline_without_code()
    assert (Dispatcher.get_call_template, Dispatcher.get_overload) == before
