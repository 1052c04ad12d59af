"""Model folders: `read_models`, `write_models`. The files are described in `io.model_folder`; this is what they mean.

* Duplicate rows of one transition are summed. The reward of `(model, state, action)` is the common value of its rows,
  or, where rows differ, their probability-weighted sum.
* A state without any row in a model is absorbing there, with reward 0 under every action; `notes` say so.
* A state with rows for some actions but not for all is an error: the format has no unavailable actions.
* Probabilities must sum to one within 1e-6; sums off by more than 1e-9 are rescaled, and `notes` say so.
* States, actions and models are numbered from 0 without gaps over all files of the folder.

What an agent learns from rewards (`reward_signal`) decides which upper bounds are true. It is taken from the
argument, else from the row `reward_signal` in `parameters.csv`, else read off the files, for training and test models
together:

* `known`: every model pays the same for every (state, action) and next state;
* `unobserved`: the reward is the same function of (state, action, next state) in every model, so that seeing it adds
  nothing to seeing the next state, though expected rewards differ;
* `deterministic`: each model pays one fixed amount per (state, action), or per (state, action, next state), and models
  differ: a reward rules models out;
* `continuous`: a transition is listed with several rewards, or the models are too large for a table of rewards on
  arrival. Then only bounds that hold whatever rewards reveal are offered (any policy's value, `E max`, QMDP).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp

from beliefbound.beliefs.finite import FiniteBelief, RewardSignal
from beliefbound.errors import FileError, ParameterError
from beliefbound.io.model_folder import PARAMETERS, FolderRows, ModelRows, read_folder, write_folder
from beliefbound.mdp import MDP
from beliefbound.models import Csr, ModelSet
from beliefbound.validation import TOLERANCE, BoolArray, FloatArray, IntArray, check_discount, check_initial, frozen

_LOOSE = 1e-6
SPARSE_BYTES = 64 << 20  # a dense array above this, less than 30% full, is kept in compressed rows
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """What a model folder holds.

    Attributes:
      training: the models to plan with, and their weights.
      test: models to evaluate on, or `None`.
      true: the MDP both were drawn around, or `None`.
      average: the "mean model" of the multi-model literature: mean probabilities, and mean rewards of each (state,
        action, next state). Its expected rewards are `E[P]·E[R]`; those of `training.mean()` are the belief's own
        `E[P·R]`. The two differ where rewards vary with the next state and go together with the probabilities.
      initial: start distribution `[s]`; also that of the beliefs.
      discount: of the problem.
      notes: what was assumed in reading; empty when nothing was.
    """

    training: FiniteBelief
    test: FiniteBelief | None
    true: MDP | None
    average: MDP
    initial: FloatArray
    discount: float
    notes: tuple[str, ...]


def read_models(path: str | Path, *, reward_signal: RewardSignal | None = None) -> ModelFolder:
    """Read a model folder; see the module's text for the rules.

    Args:
      path: the folder.
      reward_signal: what the agent sees of rewards; default: as `parameters.csv` says, else read off the files.

    Beliefs are dense, or sparse when a dense array would exceed 64 MB and be less than 30% full.

    >>> import tempfile
    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[0.0]], [[1.0]]], reward_signal="deterministic", initial=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_models(folder, belief, discount=0.9)
    ...     read_models(folder).training
    FiniteBelief(2 models, 1 states, 1 actions, rewards deterministic)
    """
    raw = read_folder(path)
    folder = Path(path)
    unknown = sorted(set(raw.parameters) - set(PARAMETERS))
    notes = [f"parameters.csv: {name!r} is not used" for name in unknown]
    discount = _discount(raw, folder)
    n_states, n_actions = _sizes(raw, folder)
    initial = _distribution(raw.initial, n_states, folder / "initial.csv", "state")
    parts = {
        rows.file: _assemble(rows, n_states, n_actions, folder, notes)
        for rows in (raw.training, raw.test, raw.true)
        if rows is not None
    }
    beliefs = [parts[name] for name in ("training.csv", "test.csv") if name in parts]
    stated = reward_signal or _stated_signal(raw, folder)
    signal = stated or _signal(beliefs, notes)
    on_arrival = signal == "deterministic" and all(part.arrival is not None for part in beliefs)
    if stated in ("known", "deterministic") and not on_arrival and not all(part.fixed for part in beliefs):
        notes.append(f"rewards vary with the next state; their mean is taken as the reward of a {signal} signal")
    range_ = _reward_range(raw, folder) if signal == "bernoulli" else None

    def belief(name: str, pairs: tuple[IntArray, FloatArray] | None, weights_file: str) -> FiniteBelief:
        part = parts[name]
        weights = None if pairs is None else _distribution(pairs, part.n_models, folder / weights_file, "model")
        rewards = part.arrival if on_arrival and not all(each.fixed for each in beliefs) else part.rewards
        return FiniteBelief(
            part.transitions, rewards, weights, reward_signal=signal, reward_range=range_, initial=initial
        )

    true = None
    if "true.csv" in parts:
        part = parts["true.csv"]
        kept = part.transitions[0]
        true = MDP(kept, part.rewards[0], initial=initial)
    if raw.test is None and raw.test_weights is not None:
        notes.append("test_weights.csv is not used: there is no test.csv")
    training = belief("training.csv", raw.weights, "weights.csv")
    return ModelFolder(
        training=training,
        test=belief("test.csv", raw.test_weights, "test_weights.csv") if raw.test is not None else None,
        true=true,
        average=_average(parts["training.csv"], training),
        initial=frozen(initial),
        discount=discount,
        notes=tuple(notes),
    )


def write_models(
    path: str | Path,
    training: FiniteBelief,
    *,
    discount: float,
    initial: Any = None,
    test: FiniteBelief | None = None,
    true: MDP | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a model folder that `read_models` reads back exactly: every probability, reward and weight, bit by bit.

    Args:
      path: the folder; it appears complete or not at all when it is new or empty.
      training, test: beliefs with the same reward signal; `true`: one MDP. Same states and actions.
      discount: of the problem.
      initial: start distribution or state; default: `training.initial`.
      overwrite: replace the files of a folder that is not empty; files that are no part of the format stay.

    >>> import tempfile
    >>> belief = FiniteBelief([[[[1.0]]]], [[[1.0]]], initial=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(file.name for file in write_models(folder, belief, discount=0.9).iterdir())
    ['initial.csv', 'parameters.csv', 'training.csv']
    """
    discount = check_discount(discount, 1)
    start = training.initial if initial is None else check_initial(initial, training.n_states, ParameterError)
    if start is None:
        raise ParameterError("a model folder needs a start distribution; pass initial=...")
    sets = [("training", training.models), *([("test", test.models)] if test is not None else [])]
    sets += [("true", true.models)] if true is not None else []
    for name, models in sets:
        if models.rewards.shape[1:] != training.rewards.shape[1:]:
            raise ParameterError(
                f"{name} has {models.n_states} states and {models.n_actions} actions, training has "
                f"{training.n_states} and {training.n_actions}; one folder has one size"
            )
        if not models.available.all():
            s, a = (int(i) for i in np.argwhere(~models.available)[0])
            raise ParameterError(
                f"{name} does not offer action {a} in state {s}; the folder format has no unavailable actions"
            )
    parameters = {"discount": repr(discount), "reward_signal": training.reward_signal}
    if test is not None and test.reward_signal != training.reward_signal:
        raise ParameterError(
            f"training has the reward signal {training.reward_signal!r}, test has {test.reward_signal!r}; "
            f"a folder has one"
        )
    if training.reward_signal == "bernoulli":
        if test is not None and test.reward_range != training.reward_range:
            raise ParameterError(f"training and test have reward ranges {training.reward_range}, {test.reward_range}")
        low, high = training.reward_range
        parameters |= {"reward_low": repr(low), "reward_high": repr(high)}
    paid = {"training": training.arrival_rewards, "test": None if test is None else test.arrival_rewards}
    tables: dict[str, dict[str, Any]] = {f"{name}.csv": _columns(models, paid.get(name)) for name, models in sets}
    if true is not None:
        del tables["true.csv"]["idoutcome"]
    tables["initial.csv"] = {"idstate": np.arange(training.n_states), "probability": start}
    tables["parameters.csv"] = {"parameter": list(parameters), "value": list(parameters.values())}
    for name, belief in (("weights.csv", training), ("test_weights.csv", test)):
        if belief is not None and (belief.weights != 1.0 / belief.n_models).any():
            tables[name] = {"idoutcome": np.arange(belief.n_models), "weight": belief.weights}
    return write_folder(path, tables, overwrite=overwrite)


def _columns(models: ModelSet, arrival: FloatArray | None) -> dict[str, Any]:
    """One row per positive probability, in order of model, state, action, next state."""
    kept = models.transitions
    if isinstance(kept, Csr):
        entries = kept.matrix.tocoo()
        rows, target, probability = entries.coords[0], entries.coords[1], entries.data
        rows, target, probability = (x[probability > 0.0] for x in (rows, target, probability))
        model, source, action = np.unravel_index(rows, kept.shape)
    else:
        model, source, action, target = np.nonzero(kept.array)
        probability = kept.array[model, source, action, target]
    return {
        "idstatefrom": source,
        "idaction": action,
        "idstateto": target,
        "idoutcome": model,
        "probability": probability,
        "reward": models.rewards[model, source, action] if arrival is None else arrival[model, source, action, target],
    }


@dataclass(frozen=True, eq=False)
class _Part:
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


def _assemble(rows: ModelRows, n_states: int, n_actions: int, folder: Path, notes: list[str]) -> _Part:
    file = folder / rows.file
    n_models = _no_gaps(rows.model, file, "idoutcome", "model")
    shape = (n_models, n_states, n_actions)
    pair = (rows.model * n_states + rows.source) * n_actions + rows.action
    present = np.bincount(pair, minlength=int(np.prod(shape))).reshape(shape) > 0
    absorbing: BoolArray = np.logical_not(present.any(axis=2))
    _check_actions(present, absorbing, file)
    _note_absorbing(absorbing, rows.file, notes)
    m, s = np.nonzero(absorbing)
    extra = ((m * n_states + s)[:, None] * n_actions + np.arange(n_actions)).ravel()
    pair = np.concatenate([pair, extra])
    target = np.concatenate([rows.target, np.repeat(s, n_actions)])
    probability = np.concatenate([rows.probability, np.ones(len(extra))])
    reward = np.concatenate([rows.reward, np.zeros(len(extra))])

    sums = np.bincount(pair, weights=probability, minlength=present.size)
    off = np.abs(sums - 1.0)
    if (off > _LOOSE).any():
        worst = np.unravel_index(int(np.argmax(off > _LOOSE)), shape)
        raise FileError(
            f"{file}: probabilities of {_named(worst)} sum to {sums.reshape(shape)[worst]:.12g}, expected 1; "
            f"complete or rescale these rows"
        )
    rescale = off > 0.9 * TOLERANCE
    if rescale.any():
        first = np.unravel_index(int(np.argmax(rescale)), shape)
        notes.append(
            f"{rows.file}: {int(rescale.sum())} of {present.size} rows of probabilities were rescaled to sum to 1 "
            f"(the first is {_named(first)}, off by {off.reshape(shape)[first]:.2g})"
        )
        probability = np.where(rescale[pair], probability / sums[pair], probability)

    happens = probability > 0.0
    pair, target = pair[happens], target[happens]
    probability, reward = probability[happens], reward[happens]
    least, most = _extremes(pair, reward, present.size)
    mixed = np.bincount(pair, weights=probability * reward, minlength=present.size)
    expected: FloatArray = np.where(least == most, least, mixed).astype(np.float64)
    n_rows = n_states * n_actions
    if 8 * present.size * n_states > SPARSE_BYTES and len(pair) < 0.3 * present.size * n_states:
        matrix = sp.csr_array((probability, (pair, target)), shape=(present.size, n_states))
        transitions: Any = [matrix[i * n_rows : (i + 1) * n_rows] for i in range(n_models)]
        arrival = None
    else:
        cell = pair * n_states + target
        dense = np.bincount(cell, weights=probability, minlength=present.size * n_states)
        transitions = dense.reshape(*shape, n_states)
        arrival = _on_arrival(cell, reward, (*shape, n_states))
    return _Part(
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


def _on_arrival(cell: IntArray, reward: FloatArray, shape: tuple[int, ...]) -> FloatArray | None:
    """Rewards `[m,s,a,t]`, zero where a transition cannot happen; `None` where one is listed with several rewards."""
    paid = np.zeros(int(np.prod(shape)))
    paid[cell] = reward
    return paid.reshape(shape) if (paid[cell] == reward).all() else None


def _average(part: _Part, training: FiniteBelief) -> MDP:
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
    return MDP(mean.transitions, rewards.reshape(n_states, n_actions), initial=training.initial)


def _extremes(keys: IntArray, values: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Least and largest value of each key; every key in `[0, size)` occurs."""
    order = np.argsort(keys, kind="stable")
    begin = np.searchsorted(keys[order], np.arange(size))
    return np.minimum.reduceat(values[order], begin), np.maximum.reduceat(values[order], begin)


def _signal(parts: list[_Part], notes: list[str]) -> RewardSignal:
    """What the rows say about the information in rewards; see the module's text."""
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


def _stated_signal(raw: FolderRows, folder: Path) -> RewardSignal | None:
    stated = raw.parameters.get("reward_signal")
    for option in get_args(RewardSignal):
        if stated == option:
            signal: RewardSignal = option
            return signal
    if stated is not None:
        options = ", ".join(get_args(RewardSignal))
        raise FileError(f"{folder / 'parameters.csv'}: reward_signal is {stated!r}; choose one of {options}")
    return None


def _number(raw: FolderRows, folder: Path, name: str) -> float | None:
    text = raw.parameters.get(name)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise FileError(f"{folder / 'parameters.csv'}: {name} is {text!r}; expected a number") from None


def _discount(raw: FolderRows, folder: Path) -> float:
    value = _number(raw, folder, "discount")
    if value is None:
        raise FileError(f"{folder / 'parameters.csv'} has no row 'discount'; add one such as discount,0.9")
    if not 0.0 <= value <= 1.0:
        raise FileError(f"{folder / 'parameters.csv'}: discount is {value}; it must lie between 0 and 1")
    return value


def _reward_range(raw: FolderRows, folder: Path) -> tuple[float, float] | None:
    low, high = _number(raw, folder, "reward_low"), _number(raw, folder, "reward_high")
    if low is None and high is None:
        return None
    if low is None or high is None or not low < high:
        raise FileError(
            f"{folder / 'parameters.csv'}: reward_low is {low} and reward_high is {high}; give both, low below high"
        )
    return low, high


def _sizes(raw: FolderRows, folder: Path) -> tuple[int, int]:
    """Number of states and of actions over all files, every id in use."""
    files = [rows for rows in (raw.training, raw.test, raw.true) if rows is not None]
    states = np.concatenate([raw.initial[0], *(x for rows in files for x in (rows.source, rows.target))])
    n_states = _no_gaps(states, folder, "state ids", "state")
    return n_states, _no_gaps(np.concatenate([rows.action for rows in files]), folder, "idaction", "action")


def _no_gaps(ids: IntArray, file: Path, column: str, kind: str) -> int:
    used = np.unique(ids)
    if len(used) != used[-1] + 1:
        missing = int(np.argmax(used != np.arange(len(used))))
        raise FileError(
            f"{file}: {column} run to {used[-1]} but {kind} {missing} appears nowhere; "
            f"number the {kind}s from 0 without gaps"
        )
    return len(used)


def _distribution(pairs: tuple[IntArray, FloatArray], size: int, file: Path, kind: str) -> FloatArray:
    ids, values = pairs
    if ids.max() >= size:
        raise FileError(f"{file}: {kind} {ids.max()} does not exist; there are {size}, numbered from 0")
    if kind == "model" and len(ids) != size:
        missing = int(np.setdiff1d(np.arange(size), ids)[0])
        raise FileError(f"{file} has no row for model {missing}; give each of the {size} models a weight")
    dense = np.zeros(size)
    dense[ids] = values
    total = float(dense.sum())
    if abs(total - 1.0) > _LOOSE:
        raise FileError(f"{file}: the column sums to {total:.12g}, expected 1")
    return dense / total if abs(total - 1.0) > 0.9 * TOLERANCE else dense


def _check_actions(present: BoolArray, absorbing: BoolArray, file: Path) -> None:
    missing = ~present & ~absorbing[:, :, None]
    if missing.any():
        m, s, a = (int(i) for i in np.argwhere(missing)[0])
        everywhere = " in any model" if missing[:, s, a].all() else ""
        raise FileError(
            f"{file}: state {s} has no rows for action {a}{everywhere or f' in model {m}'} though it has rows for "
            f"other actions; add rows for model {m}, state {s}, action {a} (where it is not offered, repeat another)"
        )


def _note_absorbing(absorbing: BoolArray, name: str, notes: list[str]) -> None:
    n_models = len(absorbing)
    for s in np.flatnonzero(absorbing.any(axis=0))[:_SHOWN]:
        count = int(absorbing[:, s].sum())
        where = "in any model" if count == n_models else f"in {count} of {n_models} models"
        notes.append(f"{name}: state {s} has no rows {where}; it is absorbing there, with reward 0")
    more = int(absorbing.any(axis=0).sum()) - _SHOWN
    if more > 0:
        notes.append(f"{name}: {more} more states without rows are absorbing, with reward 0")


def _named(index: tuple[Any, ...]) -> str:
    return f"model {int(index[0])}, state {int(index[1])}, action {int(index[2])}"
