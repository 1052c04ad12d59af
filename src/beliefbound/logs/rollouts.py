"""Logs from arrays, from gymnasium environments that are played, and from Minari datasets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefboundError, ObservationError, ParameterError
from beliefbound.base.tables import pl
from beliefbound.base.validation import Rng, as_rng, check_count, shown
from beliefbound.lab.envs.adapter import DiscreteEnv
from beliefbound.logs.assembling import assemble
from beliefbound.logs.columns import Columns, Size
from beliefbound.logs.counting import Counter
from beliefbound.logs.log import Log

_BLOCK = 1 << 18


def log_of(
    states: Any,
    actions: Any,
    rewards: Any,
    next_states: Any,
    *,
    terminated: Any = None,
    truncated: Any = None,
    episodes: Any = None,
    propensities: Any = None,
    n_states: Size = None,
    n_actions: Size = None,
    source: str = "arrays",
) -> Log:
    """The log of transitions given as arrays of equal length.

    >>> log_of([0, 1, 0], [0, 0, 1], [0.0, 1.0, 0.0], [1, 0, 0]).visits.tolist()
    [[1, 1], [1, 0]]
    """
    given = {"state": states, "action": actions, "reward": rewards, "next_state": next_states}
    given |= {"terminated": terminated, "truncated": truncated, "episode": episodes}
    given["propensity"] = propensities
    try:
        frame = pl.DataFrame({name: np.asarray(x) for name, x in given.items() if x is not None})
    except (pl.exceptions.PolarsError, TypeError, ValueError) as fault:
        raise ObservationError(f"these are no columns of one length: {str(fault).splitlines()[0]}") from None
    counter = Counter(Columns(Path(source), states=n_states, actions=n_actions))
    counter.add(frame, 1)
    return assemble(counter, source)


def roll_out(
    env: Any,
    policy: Callable[[int], int] | None = None,
    *,
    steps: int,
    seed: int = 0,
    rng: Rng = None,
    save: Path | str | None = None,
) -> Log:
    """Play a gymnasium environment with discrete spaces and log what happens.

    Args:
      env: the environment, or a `DiscreteEnv`; episodes follow each other until `steps` are made.
      policy: from a state to an action; default: every action alike.
      steps: how many.
      seed: of the environment; `rng`: of the default policy, else the seed's.
      save: also write the rows to this file, `.csv` or `.parquet`.

    >>> import gymnasium
    >>> roll_out(gymnasium.make("FrozenLake-v1"), steps=50, seed=1).n_states
    16
    """
    world = env if isinstance(env, DiscreteEnv) else DiscreteEnv(env)
    steps, source = check_count(steps, "steps", least=2), as_rng(seed if rng is None else rng)
    rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    episode, t, state = 0, 0, world.reset(seed=seed)
    for k in range(steps):
        action = int(source.integers(world.n_actions)) if policy is None else int(policy(state))
        reward, after, terminated, truncated = world.step(action)
        last = truncated or (k == steps - 1 and not terminated)
        step = (episode, t, state, action, reward, after, terminated, last)
        for name, value in zip(_COLUMNS, step, strict=True):
            rows[name].append(value)
        state, t = after, t + 1
        if terminated or last:
            episode, t = episode + 1, 0
            state = world.reset() if k < steps - 1 else state
    frame = pl.DataFrame(rows)
    if save is not None:
        _write(frame, Path(save))
    counter = Counter(Columns(Path(str(world.env)), states=world.n_states, actions=world.n_actions))
    for first in range(0, len(frame), _BLOCK):
        counter.add(frame.slice(first, _BLOCK), first + 1)
    return assemble(counter, str(world.env))


_COLUMNS = ("episode", "t", "state", "action", "reward", "next_state", "terminated", "truncated")


def _write(frame: pl.DataFrame, file: Path) -> None:
    from beliefbound.base.io.atomic import as_parquet, write_aside, write_bytes

    if file.suffix == ".parquet":
        write_bytes(file, as_parquet(frame))
    elif file.suffix == ".csv":
        write_aside(file, frame.write_csv)
    else:
        raise ParameterError(f"save is {file.name!r}; give a name that ends in .csv or .parquet")


def read_minari(name: str) -> Log:
    """A Minari dataset with discrete spaces that is on this machine (`minari download NAME`); needs the extra `data`.

    Raises:
      ParameterError: Minari is not installed.
      BeliefboundError: there is no such dataset, or its spaces are not discrete.
    """
    if not isinstance(name, str) or not name:
        raise ParameterError(f"the dataset is {shown(name)}; give a name, such as minari:toy/walk-v0")
    try:
        import minari
    except ImportError:
        raise ParameterError("Minari is not installed; pip install 'beliefbound[data]'") from None
    try:
        dataset = minari.load_dataset(name)
    except (FileNotFoundError, ValueError, KeyError) as fault:
        reason = str(fault).split(". ")[0]
        raise ParameterError(f"there is no Minari dataset {name!r} here: {reason}; minari download {name}") from None
    except ImportError as fault:  # of what stores the dataset, such as h5py
        raise ParameterError(f"{fault}; pip install 'beliefbound[data]' has all of it") from None
    return log_of_minari(dataset)


def log_of_minari(dataset: Any) -> Log:
    """The log of a Minari dataset: episodes one after the other, an observation more than actions in each."""
    sizes = [_discrete(dataset, kind) for kind in ("observation", "action")]
    source = f"minari {dataset.spec.dataset_id}"
    counter = Counter(Columns(Path(source), states=sizes[0][0], actions=sizes[1][0]))
    first = 1
    for episode in dataset.iterate_episodes():
        seen, done = np.asarray(episode.observations), np.asarray(episode.actions)
        if seen.ndim != 1 or len(seen) != len(done) + 1:
            raise ObservationError(f"episode {episode.id} has {len(seen)} observations for {len(done)} actions")
        frame = pl.DataFrame(
            {
                "episode": np.full(len(done), int(episode.id)),
                "t": np.arange(len(done)),
                "state": seen[:-1].astype(np.int64) - sizes[0][1],
                "action": done.astype(np.int64) - sizes[1][1],
                "reward": np.asarray(episode.rewards, dtype=np.float64),
                "next_state": seen[1:].astype(np.int64) - sizes[0][1],
                "terminated": np.asarray(episode.terminations, dtype=np.bool_),
                "truncated": np.asarray(episode.truncations, dtype=np.bool_),
            }
        )
        counter.add(frame, first)
        first += len(frame)
    return assemble(counter, source)


def _discrete(dataset: Any, kind: str) -> tuple[int, int]:
    space = getattr(dataset, f"{kind}_space")
    if not (hasattr(space, "n") and hasattr(space, "start")):
        raise BeliefboundError(f"the {kind}s of this dataset are {space}; only Discrete spaces are read")
    return int(space.n), int(space.start)
