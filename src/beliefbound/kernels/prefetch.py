"""Asking for memory before it is needed, where the next place to look at is known, and what lies there is not."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_LINE = 64  # bytes of a cache line
_READ, _KEEP, _DATA = 0, 3, 1  # what LLVM calls it: to be read, to be kept in all caches, not code


def prefetch(lines: int):
    """A function of `(array, i)`, for compiled code: ask for so many cache lines from `array[i]` on. It changes nothing
    but time."""

    @intrinsic
    def ask(typing_context, array, i):
        def generate(context, builder, signature, arguments):
            word, byte = ir.IntType(64), ir.IntType(8).as_pointer()
            whole = [ir.Constant(ir.IntType(32), x) for x in (_READ, _KEEP, _DATA)]
            kind = ir.FunctionType(ir.VoidType(), [byte, *(x.type for x in whole)])
            asked = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
            held = context.make_array(signature.args[0])(context, builder, arguments[0])
            begin = builder.mul(builder.extract_value(held.strides, 0), arguments[1])
            begin = builder.add(builder.ptrtoint(held.data, word), begin)
            for line in range(lines):
                place = builder.add(begin, ir.Constant(word, line * _LINE))
                builder.call(asked, [builder.inttoptr(place, byte), *whole])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

    return ask
