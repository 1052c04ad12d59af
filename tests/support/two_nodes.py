"""An experiment on a Ray cluster of two nodes: one worker is killed during its block, then one node during another.

`python -m support.two_nodes OUT NOTES` with the spec on standard input; in a process of its own, since Ray leaves
threads and sockets behind. Every start of a block is noted as `NOTES/<block>@<node>`, the rest in `NOTES/seen.json`.
"""

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from threading import Event, Thread

import msgspec

from beliefbound.base.errors import BeliefboundError, ParameterError
from beliefbound.base.executors.cluster import RayExecutor
from beliefbound.lab.experiments.run import run
from beliefbound.lab.experiments.spec import Spec


def noted(notes, victim, function, block):
    """Play a block; but the first on the other node kills its worker, and none on the victim ends."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    cell, runs = block
    with (notes / f"{cell.folder}-{runs.start}@{node}").open("a") as note:
        note.write("begun\n")
    if node == victim:
        time.sleep(3600)
    wait_for(victim, notes)  # so that it has a block, however slowly its worker starts
    try:
        (notes / "killed").touch(exist_ok=False)
    except FileExistsError:
        return function(block)
    return os.kill(os.getpid(), signal.SIGKILL)


def wait_for(victim, notes):
    """Until a block has begun on the victim."""
    deadline = time.monotonic() + 300
    while not list(notes.glob(f"*@{victim}")):
        if time.monotonic() > deadline:
            raise TimeoutError("no block began on the victim")
        time.sleep(0.02)


class Noting:
    """An executor whose blocks leave notes."""

    def __init__(self, executor, notes, victim):
        self.executor, self.notes, self.victim = executor, notes, victim

    def map(self, function, blocks, *, stop=None):
        return self.executor.map(partial(noted, self.notes, self.victim, function), blocks, stop=stop)


def threads_of(block):
    """How many threads a worker would use."""
    import numba

    return numba.config.NUMBA_NUM_THREADS, os.environ["OMP_NUM_THREADS"]


def refuse(block):
    """A block whose own error must arrive as it is."""
    raise ParameterError(f"block {block} is refused")


def facts(executor):
    """What else holds of the executor, on a cluster of one core."""
    error = None
    try:
        list(executor.map(refuse, [7]))
    except BeliefboundError as refused:
        error = f"{type(refused).__name__}: {refused}"
    stop, kept = Event(), []
    for block, _ in executor.map(threads_of, range(100), stop=stop):
        kept.append(block)
        stop.set()
    return {"threads": next(executor.map(threads_of, [0]))[1], "error": error, "kept": kept}


def main(out, notes):
    """Run the experiment, and note what was seen."""
    from ray.cluster_utils import Cluster

    notice = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_failure_threshold": 3}
    local = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**local, "_system_config": notice})
    try:
        node = cluster.add_node(**local)
        cluster.wait_for_nodes()

        def kill():
            wait_for(node.node_id, notes)
            cluster.remove_node(node, allow_graceful=False)

        killer = Thread(target=kill)
        killer.start()
        with RayExecutor(address=cluster.address) as executor:
            spec = msgspec.json.decode(sys.stdin.buffer.read(), type=Spec)
            run(spec, out, block=5, executor=Noting(executor, notes, node.node_id))
            killer.join()
            seen = {"victim": node.node_id, **facts(executor)}
        (notes / "seen.json").write_text(json.dumps(seen))
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
