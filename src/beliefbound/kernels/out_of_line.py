"""`@out_of_line`: a compiled function that is compiled once, and called by those that use it.

numba links the code of a function into every caller, and optimises and generates it there once more: along a chain of
calls the work is quadratic in its length. The code of an out-of-line function stands in one place. Its callers hold a
symbol; where they are read from the disk, what they call is read before. Nothing of it is inlined, which costs a hot
inner loop some per cent: for functions that do much, not for those that are called in the innermost loop. And it is
compiled for whole numbers, not once more for each that a caller writes out.

    @out_of_line
    @njit(**FAST)
    def make_child(problem, graph, parent, row): ...

This takes parts of numba that are not public. Where one of them is missing, the decorator changes nothing:
everything works, and takes longer to compile.
"""

import functools
import hashlib
import importlib
import inspect
from typing import Any, NamedTuple

import llvmlite.binding
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.codegen import CodeLibrary
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.imputils import fix_returning_optional, impl_ret_new_ref


def supported() -> bool:
    """Whether numba has the parts that it takes."""
    return (
        hasattr(Dispatcher, "add_overload")
        and hasattr(Dispatcher, "get_call_template")
        and "_defns" in BaseContext.__init__.__code__.co_names
        and "_reload_init" in CodeLibrary.__init__.__code__.co_names
        and "reload_init" in inspect.signature(CompileResult._rebuild).parameters
    )


class Callee(NamedTuple):
    """A function and the types of its arguments. numba calls it before it reads a caller from the disk."""

    module: str
    name: str
    arguments: tuple[Any, ...]

    def __call__(self) -> None:
        getattr(importlib.import_module(self.module), self.name).compile(self.arguments)

    @property
    def symbol(self) -> str:
        """The same in every process."""
        digest = hashlib.sha256(str(self.arguments).encode()).hexdigest()[:24]
        return f"{self.module}.{self.name}.{digest}"


def remember_callees() -> None:
    """What was read from the disk still knows what it calls, so that who calls it, and is compiled now, will have that
    read before itself: numba hands it on from what it compiles, and loses it of what it reads."""
    rebuild = CompileResult._rebuild.__func__

    @functools.wraps(rebuild)  # `supported` looks at its signature
    def remembering(cls, target_context, *payload):
        result = rebuild(cls, target_context, *payload)
        result.library._reload_init.update(result.reload_init)
        return result

    CompileResult._rebuild = classmethod(remembering)


if supported():
    remember_callees()


def out_of_line(dispatcher: Any) -> Any:
    """Make a compiled function one that callers call by its symbol."""
    if not isinstance(dispatcher, Dispatcher) or not supported():
        return dispatcher
    function, context = dispatcher.py_func, dispatcher.targetctx
    add, template = dispatcher.add_overload, dispatcher.get_call_template

    def add_overload(result: Any) -> None:
        add(result)
        callee = Callee(function.__module__, function.__name__, tuple(result.signature.args))
        address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        llvmlite.binding.add_symbol(callee.symbol, address)
        call = _call_of(result.fndesc, callee)
        context.remove_user_function(result.entry_point)
        context._defns[result.entry_point].append(call, call.signature)

    def get_call_template(args: Any, kws: Any) -> Any:
        return template([types.unliteral(each) for each in args], kws)

    vars(dispatcher).update(add_overload=add_overload, get_call_template=get_call_template)
    return dispatcher


def _call_of(fndesc: Any, callee: Callee) -> Any:
    """How a call is lowered: as by numba's `user_function`, with a symbol in place of a library to link."""

    def call(context, builder, signature, arguments):
        convention = context.call_conv
        kind = convention.get_function_type(fndesc.restype, fndesc.argtypes)
        function = cgutils.get_or_insert_function(builder.module, kind, callee.symbol)
        convention.decorate_function(function, fndesc.args, fndesc.argtypes, noalias=fndesc.noalias)
        context.active_code_library._reload_init.add(callee)
        status, value = convention.call_function(builder, function, fndesc.restype, fndesc.argtypes, arguments)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        value = fix_returning_optional(context, builder, signature, status, value)
        return impl_ret_new_ref(context, builder, fndesc.restype, value)

    vars(call).update(signature=fndesc.argtypes, libs=())
    return call
