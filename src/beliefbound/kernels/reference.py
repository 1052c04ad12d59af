"""`@by_reference`: a NamedTuple that compiled code gets as one pointer, Python as it is.

numba passes a NamedTuple by value: every array in it is seven or more arguments of every function, each with a
reference count, and compiling that took most of the time of a first call. Here the fields of a tuple are laid out in
memory when Python calls, and compiled functions hand on the address. A field may itself be such a tuple.

*Arrays are borrowed.* Python's caller holds them while the call lasts, and nothing counts references to them: that is
also faster than counting. So a compiled function never returns an array that it read from a field, nor a view of one.

*Fields are constant.* They cannot be set (what is in an array can), so a load of one may be moved past any store:
`invariant.load`. The fields are written before compiled code begins; a barrier keeps the optimiser, which sees both
sides where it puts the function into its wrapper, from moving a load above that.

Compiled code reads fields by name or takes the tuple apart. What it makes itself, by calling the class, is passed by
value, as numba does.

Layout: words of 64 bits. An array is `numba_adapt_ndarray`'s description of it, `5 + 2 · ndim` words: owner, parent,
number and size of items, data, shape, strides. Anything else fills as many words as its type takes.
"""

import functools
import hashlib
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import (
    NativeValue,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.numpy_support import as_dtype

_CLASSES = set[type]()  # of NamedTuples that are passed by reference
_WORD, _STATUS, _BYTES = ir.IntType(64), ir.IntType(32), 8
_OWNER_PARENT, _ITEMS, _DATA, _SHAPE = 2, 2, 4, 5  # places among the words of an array; strides follow the shape


class Reference(types.NamedTuple):  # type: ignore[misc]
    """numba's type of an address where the fields of a NamedTuple are."""

    def __init__(self, kinds: tuple[types.Type, ...], cls: type[NamedTuple]) -> None:
        super().__init__(kinds, cls)
        digest = hashlib.sha256(f"{cls.__module__} {vars(self)['name']}".encode()).hexdigest()[:12]
        self.name = f"reference_{cls.__name__}_{digest}"


@register_model(Reference)
class _ReferenceModel(models.OpaqueModel):  # type: ignore[misc]
    """A pointer."""


@functools.cache
def _offsets(context, reference) -> list[int]:
    """The word where each field begins, and how many there are."""
    places = [0]
    for kind in reference:
        if isinstance(kind, types.Array):
            words = _SHAPE + 2 * kind.ndim
        else:
            words = -(-context.get_abi_sizeof(context.get_data_type(kind)) // _BYTES)
        places.append(places[-1] + words)
    return places


@lower_getattr_generic(Reference)
def _named(context, builder, reference, value, name):
    return _field(context, builder, reference, value, reference.fields.index(name))


@lower_builtin("static_getitem", Reference, types.IntegerLiteral)
def _numbered(context, builder, signature, arguments):
    reference, index = signature.args
    return _field(context, builder, reference, arguments[0], index.literal_value % len(reference))


def _field(context, builder, reference, value, k):
    """Field k, read from memory; an array without an owner."""
    kind, begin = reference[k], _offsets(context, reference)[k]
    _promise(context, builder, reference, value)

    def at(word, data_type):
        place = builder.gep(value, [_WORD(_BYTES * (begin + word))], inbounds=True)
        return builder.bitcast(place, data_type.as_pointer())

    def load(word, data_type=_WORD):
        loaded = builder.load(at(word, data_type))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if not isinstance(kind, types.Array):
        model, data_type = context.data_model_manager[kind], context.get_data_type(kind)
        if isinstance(model, models.CompositeModel):
            return impl_ret_borrowed(context, builder, kind, context.unpack_value(builder, kind, at(0, data_type)))
        loaded = load(0, data_type)
        if isinstance(kind, Reference):
            for name, number in (("dereferenceable", _size(context, kind)), ("align", _BYTES)):
                loaded.set_metadata(name, builder.module.add_metadata([_WORD(number)]))
        return model.from_data(builder, loaded)
    size, shape = _WORD(as_dtype(kind.dtype).itemsize), [load(_SHAPE + i) for i in range(kind.ndim)]
    strides = [load(_SHAPE + kind.ndim + i) for i in range(kind.ndim)] if kind.layout != "C" else [size]
    if kind.layout == "C":
        for n in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], n, flags=("nsw",)))
    array = context.make_array(kind)(context, builder)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    array.nitems, array.itemsize = load(_ITEMS), size
    array.data = load(_DATA, context.get_data_type(kind.dtype).as_pointer())
    array.shape = cgutils.pack_array(builder, shape, _WORD)
    array.strides = cgutils.pack_array(builder, strides[: kind.ndim], _WORD)
    return array._getvalue()


def _size(context, reference) -> int:
    return _BYTES * _offsets(context, reference)[-1]


def _promise(context, builder, reference, value) -> None:
    """Tell the optimiser that there is memory at the address, where it comes from an argument of the function: it may
    then read fields before it knows whether it needs them, once for a whole loop."""
    for argument in _origins(builder.function, value):
        argument.attributes.dereferenceable = _size(context, reference)
        argument.attributes.align = _BYTES


def _origins(function, value) -> Any:
    """The arguments that a value is, directly or by way of variables; they have its type."""
    if isinstance(value, ir.Argument):
        return [value]
    if not isinstance(value, ir.LoadInstr) or not isinstance(value.operands[0], ir.AllocaInstr):
        return []
    variable, known = value.operands[0], vars(function).setdefault("origins", {})
    if variable not in known:
        known[variable] = []
        stores = (each for block in function.blocks for each in block.instructions if isinstance(each, ir.StoreInstr))
        for store in [each for each in stores if each.operands[1] is variable]:
            known[variable] += _origins(function, store.operands[0])
    return known[variable]


@unbox(Reference)
def _unbox(reference, obj, c):
    """Fields to the stack of the wrapper that Python enters by; arrays are described where they lie."""
    builder, context = c.builder, c.context
    offsets = _offsets(context, reference)
    space = cgutils.alloca_once(builder, ir.ArrayType(_WORD, offsets[-1]))
    begin = builder.bitcast(space, cgutils.voidptr_t)
    arrays = [(k, _BYTES * offsets[k]) for k, kind in enumerate(reference) if isinstance(kind, types.Array)]
    failed = cgutils.alloca_once_value(builder, cgutils.false_bit)
    if arrays:  # in a loop: one after another would be most of the wrapper
        pair = ir.ArrayType(_WORD, 2)
        table = ir.Constant(
            ir.ArrayType(pair, len(arrays)), [ir.Constant(pair, [_WORD(x) for x in each]) for each in arrays]
        )
        table = cgutils.global_constant(builder, f"{reference.name}.arrays", table)
        item_of, describe = _python(builder)
        with cgutils.for_range(builder, _WORD(len(arrays))) as loop:
            k, offset = (builder.load(builder.gep(table, [_WORD(0), loop.index, _WORD(i)])) for i in range(2))
            status = builder.call(describe, [builder.call(item_of, [obj, k]), builder.gep(begin, [offset])])
            builder.store(builder.or_(builder.load(failed), cgutils.is_not_null(builder, status)), failed)
    cleanups = []
    for k, kind in enumerate(reference):
        if not isinstance(kind, types.Array):
            native = c.unbox(kind, c.pyapi.tuple_getitem(obj, k))
            place = builder.gep(begin, [_WORD(_BYTES * offsets[k])])
            context.pack_value(
                builder, kind, native.value, builder.bitcast(place, context.get_data_type(kind).as_pointer())
            )
            builder.store(builder.or_(builder.load(failed), native.is_error), failed)
            if native.cleanup is not None:
                cleanups.append(native.cleanup)
    barrier = ir.InlineAsm(ir.FunctionType(cgutils.voidptr_t, [cgutils.voidptr_t]), "", "=r,0,~{memory}", True)

    def cleanup():
        for each in cleanups:
            each()

    return NativeValue(builder.call(barrier, [begin]), builder.load(failed), cleanup if cleanups else None)


def _python(builder):
    """`PyTuple_GetItem(tuple, k)`, and `numba_adapt_ndarray(array, words)`, which describes an array."""
    pointer = cgutils.voidptr_t
    item_of = ir.FunctionType(pointer, [pointer, _WORD])
    describe = ir.FunctionType(_STATUS, [pointer, pointer])
    return (
        cgutils.get_or_insert_function(builder.module, item_of, "PyTuple_GetItem"),
        cgutils.get_or_insert_function(builder.module, describe, "numba_adapt_ndarray"),
    )


def by_reference(cls: Any) -> Any:
    """Make a NamedTuple one that compiled code gets by reference."""
    if cls in _CLASSES:
        return cls
    _CLASSES.add(cls)
    known: dict[tuple[types.Type, ...], Reference] = {}

    @typeof_impl.register(cls)
    def _typeof(value, c):
        kinds = tuple(typeof_impl(each, c) for each in value)
        if None in kinds:
            return None
        if kinds not in known:
            known[kinds] = Reference(kinds, cls)
        return known[kinds]

    return cls


def pass_by_reference(value: Any) -> None:
    """`by_reference` of the class of a NamedTuple, and of those that are nested in it."""
    if isinstance(value, tuple) and type(value) not in _CLASSES:
        for each in value:
            pass_by_reference(each)
        if hasattr(value, "_fields"):
            by_reference(type(value))


def by_class(functions: dict[type, Any], place: int) -> Any:
    """Of compiled functions with the same arguments, one for each class of NamedTuple at a `place` among them: which
    one compiled code calls is decided as it is compiled. For a class whose function is `None` nothing is called, and
    nothing compiled. `.functions` has them all.

    >>> from numba import njit
    >>> square = by_reference(NamedTuple("Square", [("side", float)]))
    >>> circle = by_reference(NamedTuple("Circle", [("radius", float)]))
    >>> @by_class({square: njit(lambda x: x.side**2), circle: njit(lambda x: 3.0 * x.radius**2)}, 0)
    ... def area(x):
    ...     pass
    >>> area(square(2.0)), njit(lambda x: area(x))(circle(1.0))
    (4.0, 3.0)
    """

    def decorate(named: Any) -> Any:
        @functools.wraps(named)
        def call(*arguments: Any) -> Any:
            chosen = functions[type(arguments[place])]
            return None if chosen is None else chosen(*arguments)

        class Chosen(AbstractTemplate):  # type: ignore[misc]
            key = call

            def of(self, kinds):
                chosen = functions[kinds[place].instance_class]
                return None if chosen is None else types.Dispatcher(chosen)

            def generic(self, kinds, keywords):
                chosen = self.of(kinds)
                if chosen is None:
                    return types.none(*kinds)
                return chosen.get_call_type(self.context, kinds, keywords)

            def get_impl_key(self, signature):
                chosen = self.of(signature.args)
                return call if chosen is None else chosen.get_impl_key(signature)

        infer_global(call, types.Function(Chosen))
        vars(call)["functions"] = functions
        if None in functions.values():

            @lower_builtin(call, types.VarArg(types.Any))
            def nothing(context, builder, signature, arguments):
                return context.get_dummy_value()

        return call

    return decorate
