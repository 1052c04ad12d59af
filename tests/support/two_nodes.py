"""An experiment on a Ray cluster of two nodes: one worker is killed during its block, then one node during another.

`python -m support.two_nodes OUT NOTES` with the spec on standard input; in a process of its own, since Ray leaves
threads and sockets behind. Every start of a block is noted as `NOTES/<block>@<node>`.
"""

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import msgspec

from beliefbound.executors.cluster import RayExecutor
from beliefbound.experiments.run import run
from beliefbound.experiments.spec import Spec


def noted(notes, victim, function, block):
    """Play a block; but the first on the other node kills its worker, and every one on the victim never ends."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    cell, runs = block
    with (notes / f"{cell.folder}-{runs.start}@{node}").open("a") as note:
        note.write("begun\n")
    if node == victim:
        time.sleep(3600)
    try:
        (notes / "killed").touch(exist_ok=False)
    except FileExistsError:
        return function(block)
    os.kill(os.getpid(), signal.SIGKILL)


class Noting:
    """An executor whose blocks leave notes."""

    def __init__(self, executor, notes, victim):
        self.executor, self.notes, self.victim = executor, notes, victim

    def map(self, function, blocks, *, stop=None):
        return self.executor.map(partial(noted, self.notes, self.victim, function), blocks, stop=stop)


def main(out, notes):
    from ray.cluster_utils import Cluster

    notice = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_failure_threshold": 3}
    local = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**local, "_system_config": notice})
    try:
        node = cluster.add_node(**local)
        cluster.wait_for_nodes()

        def after_a_block(cell, runs):
            begun = [path for path in notes.glob(f"*@{node.node_id}")]
            if begun and node in cluster.worker_nodes:
                cluster.remove_node(node, allow_graceful=False)

        with RayExecutor(address=cluster.address) as executor:
            spec = msgspec.json.decode(sys.stdin.buffer.read(), type=Spec)
            run(spec, out, block=5, executor=Noting(executor, notes, node.node_id), progress=after_a_block)
        print(node.node_id)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
