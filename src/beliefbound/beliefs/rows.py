"""What the rows of one model file mean: models as arrays, and what their rewards reveal, by the rules of `folder`.

Rows are `(model, state, action, next state, probability, reward)` in any order. `assemble` sums, completes and rescales
them into transitions `[m,s,a,t]` and expected rewards `[m,s,a]`, and keeps the rows that can happen beside them:
`signal_of_rows` and `average_model` need the reward of each next state, which the arrays no longer tell.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import FileError
from beliefbound.base.io.model_folder import ModelRows
from beliefbound.base.limits import SPARSE_BYTES
from beliefbound.base.validation import TOLERANCE, BoolArray, FloatArray, IntArray
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.signals import RewardSignal
from beliefbound.models.mdp import MDP
from beliefbound.policy.naming import Names, printable

_SPARSE_SHARE = 0.3  # of entries that are not zero, below which large models are sparse
LOOSE = 1e-6  # sums off by more are an error, by more than TOLERANCE rescaled
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class FileRows:
    """One file, assembled. `pair` (keys of `(m,s,a)`), `target`, `probability`, `paid` are its rows that can happen."""

    transitions: Any  # [m,s,a,t], or a list of CSR matrices with rows over (s,a)
    rewards: FloatArray
    n_models: int
    fixed: bool  # whether each (m,s,a) pays one amount
    pair: IntArray
    target: IntArray
    probability: FloatArray
    paid: FloatArray
    arrival: FloatArray | None  # [m,s,a,t], where every transition pays one amount and the models are dense

    @property
    def arrivals(self) -> IntArray:
        """Keys of `(s,a,t)`, one per row."""
        _, n_states, n_actions = self.rewards.shape
        keys: IntArray = (self.pair % (n_states * n_actions)) * n_states + self.target
        return keys


def assemble(rows: ModelRows, available: BoolArray, folder: Path, notes: list[str], names: Names) -> FileRows:
    """The models of one file; `notes` gains what was assumed. Raises where rows are missing or do not sum to one. Pairs
    that are not `available` `[s,a]` stay where they are, at no reward."""
    n_states, n_actions = available.shape
    file = folder / rows.file
    n_models = count_ids(rows.model, file, "idoutcome", "model")
    shape = (n_models, n_states, n_actions)
    pair = (rows.model * n_states + rows.source) * n_actions + rows.action
    present = np.bincount(pair, minlength=int(np.prod(shape))).reshape(shape) > 0
    absorbing: BoolArray = np.logical_not(present.any(axis=2))
    _check_actions(present, absorbing, available, file, names)
    _note_absorbing(absorbing, rows.file, notes, names)
    m, s, a = np.nonzero(absorbing[:, :, None] | ~available)
    extra = (m * n_states + s) * n_actions + a
    pair = np.concatenate([pair, extra])
    target = np.concatenate([rows.target, s])
    probability = np.concatenate([rows.probability, np.ones(len(extra))])
    reward = np.concatenate([rows.reward, np.zeros(len(extra))])

    sums = np.bincount(pair, weights=probability, minlength=present.size)
    off = np.abs(sums - 1.0)
    if (off > LOOSE).any():
        worst = np.unravel_index(int(np.argmax(off > LOOSE)), shape)
        raise FileError(
            f"{file}: probabilities of {_named(worst, names)} sum to {sums.reshape(shape)[worst]:.12g}, expected 1; "
            f"complete or rescale these rows"
        )
    rescale = off > 0.9 * TOLERANCE
    if rescale.any():
        first = np.unravel_index(int(np.argmax(rescale)), shape)
        notes.append(
            f"{rows.file}: {int(rescale.sum())} of {present.size} rows of probabilities were rescaled to sum to 1 "
            f"(the first is {_named(first, names)}, off by {off.reshape(shape)[first]:.2g})"
        )
        probability = np.where(rescale[pair], probability / sums[pair], probability)

    happens = probability > 0.0
    pair, target = pair[happens], target[happens]
    probability, reward = probability[happens], reward[happens]
    least, most = _extremes(pair, reward, present.size)
    mixed = np.bincount(pair, weights=probability * reward, minlength=present.size)
    expected: FloatArray = np.where(least == most, least, mixed).astype(np.float64)
    n_rows = n_states * n_actions
    if 8 * present.size * n_states > SPARSE_BYTES and len(pair) < _SPARSE_SHARE * present.size * n_states:
        import scipy.sparse as sp

        matrix = sp.csr_array((probability, (pair, target)), shape=(present.size, n_states))
        transitions: Any = [matrix[i * n_rows : (i + 1) * n_rows] for i in range(n_models)]
        arrival = None
    else:
        cell = pair * n_states + target
        dense = np.bincount(cell, weights=probability, minlength=present.size * n_states)
        transitions = dense.reshape(*shape, n_states)
        arrival = _on_arrival(cell, reward, (*shape, n_states))
    return FileRows(
        transitions=transitions,
        rewards=expected.reshape(shape),
        n_models=n_models,
        fixed=bool((least == most).all()),
        pair=pair,
        target=target,
        probability=probability,
        paid=reward,
        arrival=arrival,
    )


def signal_of_rows(parts: list[FileRows], notes: list[str]) -> RewardSignal:
    """What the rows say about the information in rewards; see the text of `beliefs.folder`."""
    keys, index = np.unique(np.concatenate([part.arrivals for part in parts]), return_inverse=True)
    least, most = _extremes(index, np.concatenate([part.paid for part in parts]), len(keys))
    if (least == most).all():
        means = np.concatenate([part.rewards for part in parts])
        if (means == means[0]).all():
            return "known"
        notes.append(
            "rewards are the same function of state, action and next state in every model, so seeing them adds nothing "
            "to seeing the next state: the reward signal is taken as 'unobserved'"
        )
        return "unobserved"
    if all(part.fixed or part.arrival is not None for part in parts):
        notes.append("models pay different rewards, so a reward seen tells: the signal is taken as 'deterministic'")
        return "deterministic"
    notes.append(
        "rewards vary with the model and within a transition: the reward signal is taken as 'continuous', which allows "
        "only bounds that hold whatever rewards reveal; state reward_signal in parameters.csv if you know it"
    )
    return "continuous"


def average_model(part: FileRows, training: FiniteBelief) -> MDP:
    """Mean probabilities and, per (s,a,t), the mean reward over the models where it can happen."""
    _, n_states, n_actions = part.rewards.shape
    mean = training.mean()
    _, index = np.unique(part.pair * n_states + part.target, return_inverse=True)
    shared = np.bincount(index, weights=part.probability)[index]
    weight = training.weights[part.pair // (n_states * n_actions)] * part.probability / shared
    keys, place = np.unique(part.arrivals, return_inverse=True)
    total = np.bincount(place, weights=weight)
    paid = np.bincount(place, weights=weight * part.paid)
    paid = np.divide(paid, total, out=np.zeros_like(paid), where=total > 0.0)
    chance = np.bincount(place, weights=training.weights[part.pair // (n_states * n_actions)] * part.probability)
    rewards = np.bincount(keys // n_states, weights=chance * paid, minlength=n_states * n_actions)
    return MDP(
        mean.transitions,
        rewards.reshape(n_states, n_actions),
        initial=training.initial,
        states=training.states,
        actions=training.actions,
        available=training.available,
    )


def count_ids(ids: IntArray, file: Path, column: str, kind: str) -> int:
    """How many there are; raises where one of them is not in use."""
    used = np.unique(ids)
    if len(used) != used[-1] + 1:
        missing = int(np.argmax(used != np.arange(len(used))))
        raise FileError(
            f"{file}: {column} run to {used[-1]} but {kind} {missing} appears nowhere; "
            f"number the {kind}s from 0 without gaps"
        )
    return len(used)


def _on_arrival(cell: IntArray, reward: FloatArray, shape: tuple[int, ...]) -> FloatArray | None:
    """Rewards `[m,s,a,t]`, zero where a transition cannot happen; `None` where one is listed with several rewards."""
    paid = np.zeros(int(np.prod(shape)))
    paid[cell] = reward
    return paid.reshape(shape) if (paid[cell] == reward).all() else None


def _extremes(keys: IntArray, values: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Least and largest value of each key; every key in `[0, size)` occurs."""
    order = np.argsort(keys, kind="stable")
    begin = np.searchsorted(keys[order], np.arange(size))
    return np.minimum.reduceat(values[order], begin), np.maximum.reduceat(values[order], begin)


def _check_actions(present: BoolArray, absorbing: BoolArray, available: BoolArray, file: Path, names: Names) -> None:
    surplus = present & ~available
    if surplus.any():
        m, s, a = (int(i) for i in np.argwhere(surplus)[0])
        raise FileError(
            f"{file}: {_named((m, s, a), names)} has rows, though unavailable.csv says that this action is not offered "
            f"there; leave out one of them"
        )
    missing = ~present & ~absorbing[:, :, None] & available
    if missing.any():
        m, s, a = (int(i) for i in np.argwhere(missing)[0])
        where = "in any model" if missing[:, s, a].all() else f"in {names.the_model(m)}"
        raise FileError(
            f"{file}: {_the('state', s, names.states)} has no rows for {_the('action', a, names.actions)} {where} "
            f"though it has rows for other actions; add rows for {_named((m, s, a), names)}, or list the pair in "
            f"unavailable.csv where it is not offered"
        )


def _note_absorbing(absorbing: BoolArray, name: str, notes: list[str], names: Names) -> None:
    n_models = len(absorbing)
    for s in np.flatnonzero(absorbing.any(axis=0))[:_SHOWN]:
        count = int(absorbing[:, s].sum())
        where = "in any model" if count == n_models else f"in {count} of {n_models} models"
        called = _the("state", s, names.states)
        notes.append(f"{name}: {called} has no rows {where}; it is absorbing there, with reward 0")
    more = int(absorbing.any(axis=0).sum()) - _SHOWN
    if more > 0:
        notes.append(f"{name}: {more} more states without rows are absorbing, with reward 0")


def _named(index: tuple[Any, ...], names: Names) -> str:
    m, s, a = (int(i) for i in index)
    parts = (("model", m, names.models), ("state", s, names.states), ("action", a, names.actions))
    return ", ".join(_the(*part) for part in parts)


def _the(kind: str, i: int, names: tuple[str, ...] | None) -> str:
    """`state low`, `state 3`."""
    return f"{kind} {i if names is None else printable(names[i])}"
