"""Blocks on a Ray cluster: the machines of an address, or a cluster of this machine alone.

Ray schedules: a block is a task of one core, on a worker process that runs one thread. A worker that dies takes only
its block with it, which Ray starts again elsewhere, and so does a node; results a dead node had not handed over are
computed again. The blocks themselves are written by the process that asked for them, so nodes need no shared folder,
only the same version of this library (which is checked).

Results are bit for bit those of threads on nodes whose processors have the same instructions and whose libraries are
the same: compiled code is made on each node for its processor.
"""

import os
import pickle
import re
import socket
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import islice
from threading import Event
from types import TracebackType
from typing import Any

from beliefbound.base.errors import ExecutorError, ParameterError
from beliefbound.base.executors.executor import B, R
from beliefbound.base.executors.threads import available_threads
from beliefbound.base.validation import check_count

RETRIES = 5  # starts of one block after the first: a block that kills its worker every time is an error in the end
_AHEAD = 2  # blocks in flight for each core, so that none waits for this process
_CONNECT = 10.0  # seconds for a host to answer
_POLL = 10.0  # seconds after which nodes that have joined are noticed
_ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # keep the future, and no warning about it
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # they arrive as exceptions
}
# Ray's own name for "this machine is the whole cluster": every port is opened on the loopback interface only.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


class RayExecutor:
    """Runs blocks on Ray, inside a `with` block.

    Args:
      address: of a running cluster, `host:port` or `auto`; without one, and where this process is not connected yet, a
        cluster is started here, reachable from this machine only, and ended at the end.
      workers: cores of the cluster that is started; default: those this process may use.
    """

    def __init__(self, *, address: str | None = None, workers: int | None = None) -> None:
        self._settings = {**_QUIET, **_ONE_THREAD, **(_LOOPBACK if address is None else {})}
        try:
            with _environment(self._settings):
                import ray
        except ImportError:
            raise ParameterError(
                "executor 'ray' needs Ray, which is not installed; add it with: pip install 'beliefbound[ray]'"
            ) from None
        if address is not None and workers is not None:
            raise ParameterError(f"threads is {workers}, but the cluster at {address} has its own; leave one out")
        self._ray: Any = ray
        self._address = address
        self._workers = available_threads() if workers is None else check_count(workers, "threads")
        self._mine = False

    def __enter__(self) -> "RayExecutor":
        if self._ray.is_initialized() and self._address is None:
            return self
        _check_reachable(self._address)
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "address": self._address}
        if self._address is None:
            settings |= {
                "address": "local",  # not a cluster that happens to run here
                "num_cpus": self._workers,
                "include_dashboard": False,
            }
        try:
            with _environment(self._settings):  # which the cluster's processes inherit
                self._ray.init(**settings)
        except (ConnectionError, RuntimeError, ValueError) as cause:
            raise _unreachable(self._address or "this machine", cause) from None
        self._mine = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._mine:
            self._ray.shutdown()

    def map(
        self, function: Callable[[B], R], blocks: Iterable[B], *, stop: Event | None = None
    ) -> Generator[tuple[B, R], None, None]:
        """`(block, function(block))` as they complete; see `Executor`. What was handed to Ray counts as begun."""
        ray, stopped, source = self._ray, stop or Event(), iter(blocks)
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_work)
        sent = ray.put(ray.cloudpickle.dumps(function))  # once, whatever the number of blocks
        pending: dict[Any, B] = {}
        try:
            while True:
                if not stopped.is_set():
                    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
                    for block in islice(source, max(0, _AHEAD * cores - len(pending))):
                        pending[task.remote(version("beliefbound"), sent, ray.cloudpickle.dumps(block))] = block
                if not pending:
                    return
                for done in ray.wait(list(pending), timeout=_POLL)[0]:
                    block = pending.pop(done)
                    yield block, self._result(done, block)
        finally:
            for left in pending:
                ray.cancel(left, force=True)

    def _result(self, done: Any, block: object) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(done)
        except errors.RayTaskError as failed:
            if "No module named 'beliefbound" in str(failed.cause):  # Ray says so where it unpacks a block
                maker = version("beliefbound")
                raise ExecutorError(
                    f"a worker has no beliefbound; on every node: pip install beliefbound=={maker}"
                ) from None
            raise failed.cause from None
        except errors.RayError as failed:
            reason = str(failed).strip().splitlines()[0]
            raise ExecutorError(
                f"block {block} was lost {RETRIES + 1} times or cannot be run: {reason}; what is done is kept"
            ) from None


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """These environment variables, for a while."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _check_reachable(address: str | None) -> None:
    """Ray would try for minutes to reach a host that is not there."""
    match = re.fullmatch(r"(?:ray://)?(.+):(\d{1,5})", address or "")
    if match is None:
        if address not in (None, "auto"):
            raise ParameterError(f"address is {address!r}; give host:port, or auto for a cluster on this machine")
        return
    try:
        socket.create_connection((match[1], int(match[2])), timeout=_CONNECT).close()
    except (OSError, OverflowError) as cause:
        raise _unreachable(match[0], cause) from None


def _unreachable(address: str, cause: Exception) -> ExecutorError:
    reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
    return ExecutorError(f"no Ray cluster at {address}: {reason}; start one with: ray start --head")


def _work(maker: str, function: bytes, block: bytes) -> object:
    """One block on a worker. What they need is imported here, after the number of threads is set."""
    if version("beliefbound") != maker:
        raise ExecutorError(f"a node has beliefbound {version('beliefbound')}, this process {maker}; install the same")
    os.environ.update(_ONE_THREAD)
    called: Any = pickle.loads(function)
    return called(pickle.loads(block))
