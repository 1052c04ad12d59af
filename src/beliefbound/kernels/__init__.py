"""Numba loops on plain arrays. They trust their input: constructors and public functions validate."""

from pathlib import Path

from beliefbound.kernels.cache import name_by_sources

name_by_sources(Path(__file__).parent)
