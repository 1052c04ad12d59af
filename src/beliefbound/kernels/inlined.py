"""What is put into its callers is compiled for them alone.

numba makes machine code of every function, with an entrance for Python, and keeps it on disk: also of those that stand
in their callers (`forceinline`) and that nobody else calls. Here a compiled caller gets such a function from a twin
that ends where the caller needs it, as LLVM's intermediate code, which is a tenth of the time of compiling an agent.
Called from Python, or listed to be compiled, the function is what it would be otherwise.

This takes parts of numba that are not public. Where one of them is missing, everything is compiled in full.
"""

import functools
from typing import Any

from numba.core import dispatcher
from numba.core.base import BaseContext
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import Flags
from numba.core.dispatcher import Dispatcher


def supported() -> bool:
    """Whether numba has the parts that it takes."""
    parts: dict[Any, str] = {
        getattr(dispatcher, "_FunctionCompiler", None): "_customize_flags",
        Dispatcher: "get_call_template get_overload add_overload",
        Flags: "no_compile no_cpython_wrapper",
        CPUCodeLibrary: "_finalize_final_module _finalize_dynamic_globals",
        BaseContext: "insert_user_function",
    }
    return all(hasattr(whole, name) for whole, names in parts.items() for name in names.split())


def inline_without_code() -> None:
    """From here on, of all functions with the options of `kernels.options`."""
    if supported():
        for name in ("get_call_template", "get_overload"):  # what a caller asks for: of which types, and which code
            method = getattr(Dispatcher, name)
            if not hasattr(method, "__wrapped__"):
                setattr(Dispatcher, name, _of_twin(method))


def _of_twin(method: Any) -> Any:
    @functools.wraps(method)
    def asked(self: Any, *arguments: Any) -> Any:
        return method(_for_callers(self), *arguments)

    return asked


def _for_callers(function: Any) -> Any:
    """What compiled code calls in place of a function: its twin, if it is inlined and ours."""
    options, known = function.targetoptions, vars(function)
    if not (options.get("forceinline") and options.get("no_cfunc_wrapper")) or "add_overload" in known:
        return function
    if "twin" not in known:
        known["twin"] = _twin_of(function)
    return known["twin"]


def _twin_of(function: Any) -> Any:
    """The same function, whose code is there to be linked and cannot be run."""
    twin = type(function)(function.py_func, function.locals, function.targetoptions)

    def without_code(flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = True
        return flags

    def add_overload(result: Any) -> None:
        library, place = result.library, object()

        def finalize_final_module() -> None:
            library._finalize_dynamic_globals()
            library._finalized = True

        library._finalize_final_module = finalize_final_module
        twin.overloads[tuple(result.signature.args)] = result._replace(entry_point=place)
        twin.targetctx.insert_user_function(place, result.fndesc, [library])

    vars(twin._compiler).update(_customize_flags=without_code)
    vars(twin).update(add_overload=add_overload)
    return twin
