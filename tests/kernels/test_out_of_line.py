"""Out-of-line functions do what they do otherwise, are compiled once, and are read before who calls them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core import event
from numba.core.dispatcher import Dispatcher

from beliefbound.kernels import out_of_line as module
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.out_of_line import Callee, out_of_line, supported

OPTIONS = {**EXACT, "cache": False}


@out_of_line
@njit(**OPTIONS)
def divided(x, k):
    """Allocates, returns an array and a number, and may fail."""
    if k == 0:
        raise ZeroDivisionError("k is 0")
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = x[i] / k
    return out, x.size


@out_of_line
@njit(**OPTIONS)
def twice_divided(x, k):
    out, n = divided(x, k)
    return divided(out, 2)[0], n


@njit(**OPTIONS)
def caller(x, k):
    total, n = 0.0, 0
    for _ in range(3):
        out, n = twice_divided(x, k)
        total += out.sum()
    return total, n


def test_it_is_supported_here():
    """Where numba has changed so that it is not, compiling takes longer, and kernels/out_of_line.py is to be mended."""
    assert supported()


def test_values_come_back():
    x = np.arange(4.0)
    assert caller(x, 4) == (3 * 6.0 / 8.0, 4)
    out, n = divided(x, 2)  # from Python, as ever
    assert out.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert n == 4


def test_errors_come_through_any_number_of_calls():
    x = np.arange(4.0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="k is 0"):
            caller(x, 0)
        assert caller(x, 4) == (3 * 6.0 / 8.0, 4)


def test_callers_do_not_hold_its_code():
    caller(np.arange(4.0), 4)
    (code,) = caller.inspect_llvm().values()
    symbol = next(line for line in code.splitlines() if "twice_divided" in line and line.startswith("declare"))
    assert f"{__name__}.twice_divided." in symbol
    assert not any(line.startswith("define") and "divided" in line for line in code.splitlines())


def test_numbers_that_are_written_out_are_no_kinds_of_their_own():
    caller(np.arange(4.0), 4)
    assert len(divided.overloads) == 1  # though it was called with 2, and with whole numbers


def test_other_types_are_other_symbols():
    a, b = Callee("m", "f", ("int64",)), Callee("m", "f", ("float64",))
    assert a.symbol != b.symbol
    assert a.symbol == Callee("m", "f", ("int64",)).symbol
    assert caller(np.arange(4), 4.0) == (3 * 6.0 / 8.0, 4)


MISSING = {
    "add_overload": ("Dispatcher", {"get_call_template": Dispatcher.get_call_template}),
    "get_call_template": ("Dispatcher", {"add_overload": Dispatcher.add_overload}),
    "_defns": ("BaseContext", {"__init__": lambda self: None}),
    "_reload_init": ("CodeLibrary", {"__init__": lambda self: None}),
    "reload_init": ("CompileResult", {"_rebuild": lambda self, libdata: None}),
}


@pytest.mark.parametrize("missing", MISSING)
def test_without_one_of_numbas_parts_functions_are_as_numba_makes_them(monkeypatch, missing):
    name, parts = MISSING[missing]
    monkeypatch.setattr(module, name, type(name, (), parts))
    assert not supported()
    function = njit(**OPTIONS)(lambda x: x + 1)
    before = dict(vars(function))
    assert out_of_line(function) is function
    assert vars(function) == before
    assert function(1) == 2


def test_what_is_not_compiled_stays_as_it_is():
    """As with NUMBA_DISABLE_JIT."""
    assert out_of_line(len) is len


KERNELS = """
from numba import njit
from beliefbound.kernels.options import EXACT
from beliefbound.kernels.{where} import {what} as out_of_line

@out_of_line
@njit(**EXACT)
def inner(x):
    if x < 0:
        raise ValueError("below 0")
    return x + 1.0

@out_of_line
@njit(**EXACT)
def middle(x):
    return inner(x) * 2.0

@njit(**EXACT)
def outer(x):
    return middle(x) + inner(x)

@njit(**EXACT)
def linked(x):
    return inner(x) * 3.0

@njit(**EXACT)
def far(x):
    return linked(x) - 1.0
"""
ASK = """
import sys
import chain_of_kernels as kernels
try:
    kernels.outer(-1.0)
except ValueError as error:
    print(error, end=" ")
print(kernels.outer(1.0), *(len(f.stats.cache_hits) for f in (kernels.outer, kernels.middle, kernels.inner)))
"""


def ask(folder, code=ASK):
    paths = ":".join([str(folder), *filter(None, sys.path)])
    environment = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.full
def test_callers_that_are_read_from_disk_bring_what_they_call(tmp_path):
    """Nothing else has loaded it, or, where its file is gone, it is compiled again."""
    (tmp_path / "chain_of_kernels.py").write_text(KERNELS.format(where="out_of_line", what="out_of_line"))
    assert ask(tmp_path) == "below 0 6.0 0 0 0"
    assert ask(tmp_path) == "below 0 6.0 1 1 1"
    for file in (tmp_path / "cache").rglob("*.inner*"):
        file.unlink()
    assert ask(tmp_path) == "below 0 6.0 1 1 0"


@pytest.mark.full
def test_callers_of_callers_that_were_read_from_disk_bring_it_too(tmp_path):
    """`far` holds the code of `linked`, which another process compiled, and with it a call of `inner`."""
    (tmp_path / "chain_of_kernels.py").write_text(KERNELS.format(where="out_of_line", what="out_of_line"))
    for name, value in (("linked", 6.0), ("far", 5.0), ("far", 5.0)):
        assert ask(tmp_path, f"import chain_of_kernels as kernels; print(kernels.{name}(1.0))") == str(value)


@pytest.mark.full
def test_without_it_the_same_comes_out(tmp_path):
    (tmp_path / "chain_of_kernels.py").write_text(KERNELS.format(where="options", what="as_it_is"))
    source = (
        (tmp_path / "chain_of_kernels.py")
        .read_text()
        .replace(
            "from beliefbound.kernels.options import as_it_is as out_of_line", "out_of_line = lambda function: function"
        )
    )
    (tmp_path / "chain_of_kernels.py").write_text(source)
    assert ask(tmp_path).startswith("below 0 6.0 0")


def test_its_own_code_is_compiled_once():
    """However many call it."""
    compiled = []

    class Listener(event.Listener):
        def on_start(self, event):
            compiled.append(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event):
            pass

    first, second = (njit(**OPTIONS)(lambda x, k=k: scaled(x, k)) for k in (1, 2))
    with event.install_listener("numba:compile", Listener()):
        assert first(2.0) + second(2.0) == 6.0
    assert compiled.count("scaled") == 1


@out_of_line
@njit(**OPTIONS)
def scaled(x, k):
    return x * k


def test_every_kernel_that_is_out_of_line_can_be_found_by_its_name():
    """As numba looks for it when it reads a caller from the disk."""
    for name, found in list(sys.modules.items()):
        if name.startswith("beliefbound."):
            for thing in list(vars(found).values()):
                if isinstance(thing, Dispatcher) and "add_overload" in vars(thing):
                    home = sys.modules[thing.py_func.__module__]
                    assert getattr(home, thing.py_func.__name__) is thing
                    assert Path(home.__file__).is_file()
