"""`borrowed(x)`: the arrays of a tuple, nested ones included, without their reference counts.

Compiled code counts references to every array it touches, with atomic operations that cost more than a small agent's
step. A loop whose caller holds the arrays while it runs can do without: a borrowed array has no counter, so there is
nothing to count. Never return a borrowed array or keep it longer than the call.
"""

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def borrowed(typing_context, x):
    """A tuple or NamedTuple with its arrays borrowed; everything else in it is unchanged."""

    def generate(context, builder, signature, arguments):
        return _borrow(context, builder, signature.args[0], arguments[0])

    return x(x), generate


def _borrow(context, builder, kind, value):
    """`value` of numba's type `kind`, its arrays without their counters."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for k, inner in enumerate(kind):
            part = _borrow(context, builder, inner, builder.extract_value(value, k))
            value = builder.insert_value(value, part, k)
    return value
