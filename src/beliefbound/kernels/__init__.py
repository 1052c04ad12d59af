"""Numba loops on plain arrays. They trust their input: constructors and public functions validate."""

from beliefbound.kernels.compiling import compile_quickly

compile_quickly()
