"""Where blocks of work run: threads of this process, or a Ray cluster. Results never depend on it.

>>> with opened("threads", threads=2) as executor:
...     sorted(executor.map(abs, [-1, -2, -3]))
[(-3, 3), (-2, 2), (-1, 1)]
"""

from collections.abc import Iterator
from contextlib import contextmanager

from beliefbound.base.errors import ParameterError
from beliefbound.base.executors.executor import Executor
from beliefbound.base.executors.threads import ThreadExecutor, available_threads

__all__ = ["EXECUTORS", "Executor", "ThreadExecutor", "available_threads", "opened"]

EXECUTORS = ("threads", "ray")


@contextmanager
def opened(name: str = "threads", *, threads: int | None = None, address: str | None = None) -> Iterator[Executor]:
    """An executor by name, for the length of a `with` block.

    Args:
      name: `threads` or `ray`.
      threads: workers; default: the cores this process may use. A cluster with an address has its own number.
      address: of a running Ray cluster, `host:port` or `auto`; without one a cluster of this machine is started, and
        ended with the block.
    """
    if name not in EXECUTORS:
        raise ParameterError(f"executor is {name!r}; give one of: {', '.join(EXECUTORS)}")
    if name == "threads":
        if address is not None:
            raise ParameterError(f"address is {address!r}, but threads have none; add: --executor ray")
        yield ThreadExecutor(threads)
        return
    from beliefbound.base.executors.cluster import RayExecutor

    with RayExecutor(address=address, workers=threads) as executor:
        yield executor
