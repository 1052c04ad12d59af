"""What most agents draw models by, listed so that another process can compile it (`kernels.beside`) while this one
compiles the loop of the first agent that it plays: a third of the work, and as long as the rest of that agent.

Types are those of the smallest problem there is: all problems have the same.
"""

from collections.abc import Iterator

import numpy as np
from numba import typeof

from beliefbound.kernels.beside import Job
from beliefbound.kernels.draws import draw_lanes
from beliefbound.kernels.planning.held_models import PlainModels, held_models, renew_plain
from beliefbound.kernels.posterior import draw_success, smallest


def jobs() -> Iterator[Job]:
    """Last what calls the others; first what an agent that draws models itself comes to last."""
    posterior, stream = smallest(), np.ones(4, np.uint64)
    models = PlainModels(*held_models(1, np.ones((1, 1), np.bool_), 0.5))
    line = models.row
    yield draw_success, tuple(map(typeof, (posterior, stream, models.r)))
    yield draw_lanes, tuple(map(typeof, (stream, posterior.alpha, line, line)))
    yield renew_plain, tuple(map(typeof, (posterior, stream, models)))
