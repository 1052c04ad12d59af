"""`borrowed(x)`: the arrays of a tuple without their reference counts.

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
        result = arguments[0]
        for k, kind in enumerate(signature.args[0]):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, builder.extract_value(result, k))
                array.meminfo = cgutils.get_null_value(array.meminfo.type)
                array.parent = cgutils.get_null_value(array.parent.type)
                result = builder.insert_value(result, array._getvalue(), k)
        return result

    return x(x), generate
