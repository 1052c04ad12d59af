"""Numba loops on plain arrays. They trust their input: constructors and public functions validate."""

from beliefbound.kernels.compiling import compile_quickly
from beliefbound.kernels.inlined import inline_without_code
from beliefbound.kernels.starting import start_without_blas

start_without_blas()
compile_quickly()
inline_without_code()
