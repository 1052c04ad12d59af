"""Numba loops on plain arrays. They trust their input: constructors and public functions validate."""

from pathlib import Path

from beliefbound.kernels.cache import name_by_sources, save_one_at_a_time

save_one_at_a_time()
_HERE = Path(__file__).parent
name_by_sources(_HERE)
name_by_sources(_HERE.parent / "engine", _HERE)
name_by_sources(_HERE.parent / "agents", _HERE, users_of="beliefbound")  # agents, here and in other people's files
