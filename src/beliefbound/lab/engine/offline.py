"""Plans made before the first step, kept: agents that plan once, from their prior, plan once in a process.

An experiment makes its agents anew for every block of runs, in many threads; a plan that depends on the prior and the
parameters alone is the same each time.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

import numpy as np

Plan = TypeVar("Plan")

MOST_PLANNING = 3e11  # operations of a plan: some minutes, in which nothing can be said to whoever waits
MOST_A_STEP = 1e10  # operations of a plan that is made at every step: some ten seconds
KEPT = 32  # plans; those used longest ago are dropped

_guard = Lock()
_plans: OrderedDict[bytes, tuple[Lock, list[Any]]] = OrderedDict()


def planned_once(make: Callable[..., Plan], *given: Any) -> Plan:
    """`make(*given)`, or what it made of equal arguments before; nobody may write into it.

    Arguments are compared by value: numbers, texts, arrays, and tuples of them.

    >>> planned_once(sorted, (3, 1, 2)) is planned_once(sorted, (3, 1, 2))
    True
    """
    key = _digest((make.__module__, make.__qualname__, *given))
    with _guard:
        lock, made = _plans.setdefault(key, (Lock(), []))
        _plans.move_to_end(key)
        while len(_plans) > KEPT:
            _plans.popitem(last=False)
    with lock:  # others who want the same plan wait for it
        if not made:
            made.append(make(*given))
    plan: Plan = made[0]
    return plan


def _digest(thing: Any) -> bytes:
    found = hashlib.sha256()
    if isinstance(thing, np.ndarray):
        found.update(f"{thing.dtype}{thing.shape}".encode())
        found.update(np.ascontiguousarray(thing).tobytes())
    elif isinstance(thing, tuple):
        for part in thing:
            found.update(_digest(part))
    else:
        found.update(f"{type(thing).__name__}{thing!r}".encode())
    return found.digest()
