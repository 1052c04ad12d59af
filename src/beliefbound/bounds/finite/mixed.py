"""A mixture of finite-state controllers: one of them is drawn at the start and followed for ever.

All of them are parts of one `Controller`, which has a root for each part and start state. The file of a mixture is an
archive of the kind `mixed` (`policy.files`): the arrays of a committed policy (`bounds.finite.adaptive_file`), its
`roots` being those of the parts in turn, and `chances [part]`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from beliefbound.base.errors import PolicyError
from beliefbound.base.io.arrays import Array, Shapes
from beliefbound.base.validation import FloatArray, check_seed
from beliefbound.bounds.finite.adaptive import AdaptivePolicy
from beliefbound.bounds.finite.adaptive_file import arrays_of, read_controller
from beliefbound.bounds.finite.controller import Controller
from beliefbound.kernels.graph.controller import COMMIT
from beliefbound.kernels.play import agent_stream
from beliefbound.kernels.random import categorical
from beliefbound.planning.task import FiniteTask
from beliefbound.policy.files import ArchivedPolicy

KIND = "mixed"


class MixedPolicy(ArchivedPolicy):
    """Draws one of its parts at `reset(seed)` and follows it.

    Attributes:
      parts: `(chance, controller)` of each.
      n_states, n_actions: sizes.
      horizon: decisions; `None`: for ever.
    """

    _archive = KIND

    def __init__(self, joined: Controller, chances: FloatArray) -> None:
        """`joined` holds all parts (`join_controllers`): its roots are those of the parts in turn."""
        roots = joined.roots.reshape(len(chances), -1)
        self.parts = tuple((float(p), joined._replace(roots=own)) for p, own in zip(chances, roots, strict=True))
        self._joined, self._chances = joined, np.array(chances)
        self.n_states, self.n_actions = joined.available.shape
        self.horizon = joined.horizon
        self._walk: AdaptivePolicy | None = None

    def __repr__(self) -> str:
        chances = ", ".join(f"{100 * chance:.3g}%" for chance, _ in self.parts)
        return f"MixedPolicy({self.n_states} states, {self.n_actions} actions, parts with {chances})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixedPolicy):
            return NotImplemented
        mine, theirs = self._arrays(), other._arrays()
        return all(np.array_equal(mine[name], theirs[name], equal_nan=mine[name].dtype.kind == "f") for name in mine)

    def __hash__(self) -> int:
        return hash((self._chances.tobytes(), self.n_states, self.horizon))

    def reset(self, seed: int = 0) -> None:
        """Begin again: a part is drawn, the same for equal seeds."""
        part = int(categorical(agent_stream(check_seed(seed), 0, 0), self._chances))
        self._walk = AdaptivePolicy.of(self.parts[part][1], None)

    def _drawn(self) -> AdaptivePolicy:
        if self._walk is None:
            raise PolicyError("this policy draws which of its parts it follows; call reset(seed) first")
        return self._walk

    def act(self, state: int) -> int:
        """The action of the part that was drawn."""
        return self._drawn().act(state)

    def observe(self, state: int, action: int, reward: float | None, next_state: int) -> None:
        """Carry its walk over one transition."""
        self._drawn().observe(state, action, reward, next_state)

    def as_mixture(self, task: FiniteTask) -> tuple[tuple[float, Controller], ...]:
        """Its parts."""
        return self.parts

    def fresh(self) -> Self:
        """The same policy at its start, nothing drawn."""
        return type(self)(self._joined, self._chances)

    def _arrays(self) -> dict[str, Array]:
        return {**arrays_of(self._joined, None), "chances": self._chances}


def join_controllers(controllers: Sequence[Controller]) -> Controller:
    """One controller that has the nodes, pools and roots of all, one after the other."""
    nodes, policies, lines = 0, 0, 0
    after, roots, edges = [], [], [np.zeros(1, dtype=np.int64)]
    for part in controllers:
        moved = np.where(part.after >= 0, part.after + nodes, part.after)
        after.append(np.where(part.after <= COMMIT, part.after - policies, moved))
        roots.append(part.roots + nodes)
        edges.append(part.pool_first[1:] + lines)
        nodes += len(part.state)
        policies += len(part.pool_first) - 1
        lines += len(part.pool)
    return controllers[0]._replace(
        state=np.concatenate([part.state for part in controllers]),
        action=np.concatenate([part.action for part in controllers]),
        after=np.concatenate(after).astype(np.int32),
        roots=np.concatenate(roots),
        pool=np.concatenate([part.pool for part in controllers]),
        pool_first=np.concatenate(edges),
    )


def read_mixed(path: Path, arrays: dict[str, Array]) -> MixedPolicy:
    """The mixture of an archive that `save` wrote, checked array by array."""
    file = Shapes(path, arrays)
    chances: Any = file.take("chances", "f8", "part")
    if not len(chances) or chances.min() < 0.0 or abs(chances.sum() - 1.0) > 1e-9:
        raise file.wrong("chances", "is no distribution")
    joined = read_controller(file, parts=len(chances))
    file.done()
    return MixedPolicy(joined, chances)
