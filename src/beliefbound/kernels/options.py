"""How kernels are compiled: cached on disk, without the interpreter's lock, divisions as NumPy does them.

`EXACT` keeps every operation as written: what draws random numbers or is compared bit by bit. `FAST` lets sums be
reordered and multiply-adds fused: the loops over models. `_INLINE` puts a function into each of its callers, and there
alone (`kernels.inlined`): what is called in a hot loop. All is said outright, because numba hands the `fastmath` and
`forceinline` of a caller down to callees that do not say: their last bits and their speed would depend on which caller
was compiled first.
"""

from beliefbound.kernels.cache import keep_compiled

EXACT = {
    "cache": keep_compiled(),
    "nogil": True,
    "error_model": "numpy",
    "fastmath": False,
    "forceinline": False,
    "no_cfunc_wrapper": True,  # nothing passes kernels as C callbacks
}
FAST = {**EXACT, "fastmath": {"contract", "reassoc", "nsz"}}
EXACT_INLINE = {**EXACT, "forceinline": True}
FAST_INLINE = {**FAST, "forceinline": True}
