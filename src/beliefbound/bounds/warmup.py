"""A second core compiles from the start what a bracket will need, where nothing is compiled yet (`kernels.beside`).

Kernels are compiled when they are first called, seconds once per installation, and no clock counts them
(`kernels.compiling`). So there is nothing to warm up but the other core.
"""

from beliefbound.bounds.dirichlet.arrays import posterior_of
from beliefbound.kernels.beside import compile_beside
from beliefbound.kernels.graph.growth import grow
from beliefbound.planning.task import Task, finite_task


def warm_up(task: Task) -> None:
    """Begin to compile what a bracket of this kind of task needs, in a process of its own; returns at once."""
    if finite_task(task) is not None:
        compile_beside("beliefbound.kernels.graph.jobs", needed=grow)
    elif posterior_of(task) is not None:
        from beliefbound.kernels.particles.look import walk

        compile_beside("beliefbound.kernels.particles.jobs", needed=walk)
