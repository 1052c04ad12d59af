"""Numba loops on plain arrays. They trust their input: constructors and public functions validate."""
