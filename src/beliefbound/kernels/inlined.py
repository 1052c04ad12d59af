"""What is put into its callers is compiled for them alone.

numba makes machine code of every function, with an entrance for Python, and keeps it on disk: also of those that stand
in their callers (`forceinline`) and that nobody else calls. Here a compiled caller gets such a function from a twin
that ends where the caller needs it, as LLVM's intermediate code, which is a tenth of the time of compiling an agent.
Called from Python, or listed to be compiled, the function is what it would be otherwise.

This takes parts of numba that are not public. Where one of them is missing, everything is compiled in full.
"""

from typing import Any

from numba.core.base import BaseContext
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import Flags
from numba.core.dispatcher import Dispatcher, _FunctionCompiler


def supported() -> bool:
    """Whether numba has the parts that it takes."""
    parts: dict[Any, str] = {
        Dispatcher: "get_call_template get_overload add_overload",
        Flags: "no_compile no_cpython_wrapper",
        _FunctionCompiler: "_customize_flags",
        CPUCodeLibrary: "_finalize_final_module _finalize_dynamic_globals",
        BaseContext: "insert_user_function",
    }
    return all(hasattr(whole, name) for whole, names in parts.items() for name in names.split())


def inline_without_code() -> None:
    """From here on, of all functions with the options of `kernels.options`."""
    template, overload = Dispatcher.get_call_template, Dispatcher.get_overload
    if not supported() or hasattr(template, "__wrapped__"):
        return

    def get_call_template(self, args, kws):
        return template(_for_callers(self), args, kws)

    def get_overload(self, sig):
        return overload(_for_callers(self), sig)

    get_call_template.__wrapped__, get_overload.__wrapped__ = template, overload  # type: ignore[attr-defined]
    Dispatcher.get_call_template, Dispatcher.get_overload = get_call_template, get_overload


def _for_callers(dispatcher: Any) -> Any:
    """What compiled code calls in place of a function: its twin, if it is inlined and ours."""
    options, known = dispatcher.targetoptions, vars(dispatcher)
    if not (options.get("forceinline") and options.get("no_cfunc_wrapper")) or "add_overload" in known:
        return dispatcher
    if "twin" not in known:
        known["twin"] = _twin_of(dispatcher)
    return known["twin"]


def _twin_of(dispatcher: Any) -> Any:
    """The same function, whose code is there to be linked and cannot be run."""
    twin = type(dispatcher)(dispatcher.py_func, dispatcher.locals, dispatcher.targetoptions)

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
