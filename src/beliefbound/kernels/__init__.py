"""Numba loops on plain arrays. They trust their input: constructors and public functions validate."""

from beliefbound.kernels.compiling import pause_while_compiling

pause_while_compiling()
