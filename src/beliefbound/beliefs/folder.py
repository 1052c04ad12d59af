"""Models from files: `read_models`, `write_models`. Single files, in the formats of other fields, are those of
`beliefs.formats`. The files of a model folder are described in `base.io.model_folder`; this is what they mean.

* Duplicate rows of one transition are summed. The reward of `(model, state, action)` is the common value of its rows,
  or, where rows differ, their probability-weighted sum.
* A state without any row is absorbing, with reward 0 under every action, and must be declared (`beliefs.absorbing`): by
  `states.csv`, or by name. One that has rows in some models is absorbing in the others. `notes` say so.
* A state with rows for some actions but not for all is an error, unless `unavailable.csv` lists the others: they are
  not offered there. Every state offers an action.
* Probabilities must sum to one within 1e-6; sums off by more than 1e-9 are rescaled, and `notes` say so.
* States, actions and models are numbered from 0 without gaps over all files of the folder. They may have names
  (`base.io.names`), which beliefs carry on.

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

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from beliefbound.base.errors import FileError, ParameterError
from beliefbound.base.io.model_folder import PARAMETERS, FolderRows, ModelRows, read_folder, write_folder
from beliefbound.base.io.paths import as_path
from beliefbound.base.validation import (
    TOLERANCE,
    BoolArray,
    FloatArray,
    IntArray,
    check_discount,
    check_initial,
    check_kind,
    frozen,
    shown,
)
from beliefbound.beliefs.absorbing import check_absorbing
from beliefbound.beliefs.chosen import as_chosen, chosen_initial, chosen_weights
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.formats import FORMATS, is_format, part_of, read_format, write_format
from beliefbound.beliefs.rows import LOOSE, assemble, average_model, count_ids, signal_of_rows
from beliefbound.beliefs.signals import RewardSignal
from beliefbound.models import Csr, ModelSet
from beliefbound.models.mdp import MDP
from beliefbound.policy.naming import Names

_TOLD: tuple[RewardSignal, ...] = ("known", "deterministic", "bernoulli")  # signals that may depend on the arrival


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """What a model folder, or a single file of models, holds.

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
      absorbing: states that were declared in reading, as they are called.
    """

    training: FiniteBelief
    test: FiniteBelief | None
    true: MDP | None
    average: MDP
    initial: FloatArray
    discount: float
    notes: tuple[str, ...]
    absorbing: tuple[str, ...] = ()


def read_models(
    path: str | Path,
    *,
    reward_signal: RewardSignal | None = None,
    absorbing: Sequence[str | int] = (),
    weights: Any = None,
    initial: Any = None,
) -> ModelFolder:
    """Read models: a folder of CSV files, or one file of another field, which its ending tells.

    * a folder with `training.csv`, `initial.csv`, `parameters.csv` (`base.io.model_folder`, rules above);
    * `.pomdpx`, the format of SARSOP, and `.pomdp`, that of Cassandra's solvers: one or more observed variables, and
      hidden ones that never change (`base.io.formats`); anything else is refused with the reason;
    * `.npz`: arrays of parameter draws (`base.io.formats.draws` has the names).

    Args:
      path: the folder or file.
      reward_signal: what the agent sees of rewards; default: as `parameters.csv` says, else read off the files.
      absorbing: states of a folder, by name or id, that have no rows because nothing happens there any more; for a
        folder without `states.csv`.
      weights: of the training models, in place of `weights.csv`; relative: numbers, `{name: number}`, or a file.
      initial: the start, in place of `initial.csv`: a state, probabilities, `{name: probability}`, or a file
        (`beliefs.chosen` has the forms of both).

    Beliefs are dense, or sparse when a dense array would exceed 64 MB and be less than 30% full.

    >>> import tempfile
    >>> belief = FiniteBelief([[[[1.0]]], [[[1.0]]]], [[[0.0]], [[1.0]]], reward_signal="deterministic", initial=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_models(folder, belief, discount=0.9)
    ...     read_models(folder).training
    FiniteBelief(2 models, 1 states, 1 actions, rewards deterministic)
    """
    if reward_signal is not None and not (isinstance(reward_signal, str) and reward_signal in get_args(RewardSignal)):
        options = ", ".join(get_args(RewardSignal))
        raise ParameterError(f"reward_signal is {shown(reward_signal)}; choose one of {options}")
    folder = as_path(path)
    if is_format(folder):
        if len(absorbing):
            raise ParameterError(f"absorbing is {shown(absorbing)}, but {folder.name} lists what every state does")
        return _of_file(folder, reward_signal, weights, initial)
    if folder.is_file():
        raise FileError(
            f"{folder} is not a folder, and its ending is none of {', '.join(FORMATS)}; give models as such"
        )
    raw = as_chosen(read_folder(folder), weights, initial)
    unknown = sorted(set(raw.parameters) - set(PARAMETERS))
    notes = [f"parameters.csv: {name!r} is not used" for name in unknown]
    discount = _discount(raw, folder)
    n_states, n_actions = _sizes(raw, folder)
    available = _available(raw, n_states, n_actions, folder)
    declared = check_absorbing(raw, folder, absorbing)
    initial = _distribution(raw.initial, n_states, folder / "initial.csv", "state")
    parts = {
        rows.file: assemble(rows, available, folder, notes, _names(raw, rows))
        for rows in (raw.training, raw.test, raw.true)
        if rows is not None
    }
    beliefs = [parts[name] for name in ("training.csv", "test.csv") if name in parts]
    stated = reward_signal or _stated_signal(raw, folder)
    signal = stated or signal_of_rows(beliefs, notes)
    on_arrival = signal in _TOLD and all(part.arrival is not None for part in beliefs)
    if stated in _TOLD and not on_arrival and not all(part.fixed for part in beliefs):
        notes.append(f"rewards vary with the next state; their mean is taken as the reward of a {signal} signal")
    range_ = _reward_range(raw, folder) if signal == "bernoulli" else None

    def belief(name: str, pairs: tuple[IntArray, FloatArray] | None, weights_file: str) -> FiniteBelief:
        part = parts[name]
        named = raw.models if name == "training.csv" else None
        weights = None
        if pairs is not None:
            weights = _distribution(pairs, part.n_models, folder / weights_file, "model", named)
        rewards = part.arrival if on_arrival and not all(each.fixed for each in beliefs) else part.rewards
        return FiniteBelief(
            part.transitions,
            rewards,
            weights,
            reward_signal=signal,
            reward_range=range_,
            initial=initial,
            available=available,
            states=raw.states,
            actions=raw.actions,
            model_names=named,
        )

    true = None
    if "true.csv" in parts:
        part = parts["true.csv"]
        kept = part.transitions[0]
        true = MDP(kept, part.rewards[0], initial=initial, available=available, states=raw.states, actions=raw.actions)
    if raw.test is None and raw.test_weights is not None:
        notes.append("test_weights.csv is not used: there is no test.csv")
    training = belief("training.csv", raw.weights, "weights.csv")
    return ModelFolder(
        training=training,
        test=belief("test.csv", raw.test_weights, "test_weights.csv") if raw.test is not None else None,
        true=true,
        average=average_model(parts["training.csv"], training),
        initial=frozen(initial),
        discount=discount,
        notes=tuple(notes),
        absorbing=declared,
    )


def _names(raw: FolderRows, rows: ModelRows) -> Names:
    """What is called what in a file."""
    return Names(raw.states, raw.actions, raw.models if rows is raw.training else None)


def _of_file(path: Path, reward_signal: RewardSignal | None, weights: Any, initial: Any) -> ModelFolder:
    """What a single file holds."""
    belief, discount, notes = read_format(path, reward_signal)
    if weights is not None:
        pairs = chosen_weights(weights, belief.model_names, belief.n_models)
        belief = belief.reweight(_distribution(pairs, belief.n_models, Path("weights"), "model"))
    if initial is not None:
        pairs = chosen_initial(initial, belief.states, belief.n_states)
        belief = belief.starting(_distribution(pairs, belief.n_states, Path("initial"), "state"))
    assert belief.initial is not None
    average = average_model(part_of(belief), belief)
    return ModelFolder(belief, None, None, average, belief.initial, discount, notes)


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
    """Write models that `read_models` reads back exactly: every probability, reward and weight, bit by bit.

    A name that ends in `.pomdpx`, `.pomdp` or `.npz` gives one file of that format, any other a model folder. Formats
    of POMDP solvers take `known` and `unobserved` rewards only; `.pomdp` multiplies weights and start chances. Names
    that a format cannot hold are changed, with a warning.

    Args:
      path: the folder or file; it appears complete or not at all when it is new or empty.
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
    check_kind(training, FiniteBelief, "training", ParameterError, fix="give a FiniteBelief")
    if test is not None:
        check_kind(test, FiniteBelief, "test", ParameterError, fix="give a FiniteBelief, or leave it out")
    if true is not None:
        check_kind(true, MDP, "true", ParameterError, fix="give an MDP, or leave it out")
    start = (
        training.initial
        if initial is None
        else check_initial(initial, training.n_states, ParameterError, training.states)
    )
    if start is None:
        raise ParameterError("a model folder needs a start distribution; pass initial=...")
    if is_format(as_path(path)):
        return _to_file(as_path(path), training, start, discount, others=(test, true), overwrite=overwrite)
    sets = [("training", training.models), *([("test", test.models)] if test is not None else [])]
    sets += [("true", true.models)] if true is not None else []
    for name, models in sets:
        if models.rewards.shape[1:] != training.rewards.shape[1:]:
            raise ParameterError(
                f"{name} has {models.n_states} states and {models.n_actions} actions, training has "
                f"{training.n_states} and {training.n_actions}; one folder has one size"
            )
        if (models.available != training.available).any():
            s, a = (int(i) for i in np.argwhere(models.available != training.available)[0])
            raise ParameterError(f"{name} and training differ in whether state {s} offers action {a}; a folder has one")
    if training.reward_signal not in get_args(RewardSignal):
        raise ParameterError(
            f"training has a {training.reward_signal} reward signal, for which the folder format has no columns; "
            f"write one of {', '.join(get_args(RewardSignal))}"
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
    paid = {"training": training.signal.on_arrival, "test": None if test is None else test.signal.on_arrival}
    tables: dict[str, dict[str, Any]] = {f"{name}.csv": _columns(models, paid.get(name)) for name, models in sets}
    if true is not None:
        del tables["true.csv"]["idoutcome"]
    tables["initial.csv"] = {"idstate": np.arange(training.n_states), "probability": start}
    tables["parameters.csv"] = {"parameter": list(parameters), "value": list(parameters.values())}
    if not training.available.all():
        missing = np.argwhere(~training.available)
        tables["unavailable.csv"] = {"idstate": missing[:, 0], "idaction": missing[:, 1]}
    for name, belief in (("weights.csv", training), ("test_weights.csv", test)):
        if belief is not None and (belief.weights != 1.0 / belief.n_models).any():
            tables[name] = {"idoutcome": np.arange(belief.n_models), "weight": belief.weights}
    named = (("states", "idstate", training.states), ("actions", "idaction", training.actions))
    for file, key, names in (*named, ("models", "idoutcome", training.model_names)):
        if names is not None:
            tables[f"{file}.csv"] = {key: np.arange(len(names)), "name": list(names)}
    return write_folder(path, tables, overwrite=overwrite)


def _to_file(
    path: Path,
    training: FiniteBelief,
    start: FloatArray,
    discount: float,
    *,
    others: tuple[FiniteBelief | None, MDP | None],
    overwrite: bool,
) -> Path:
    """Write a single file; what cannot be in it is refused, what had to be changed is said in a warning."""
    if any(other is not None for other in others):
        raise ParameterError(f"{path}: a single file holds one set of models; write test and true models to a folder")
    if path.exists() and not overwrite:
        raise FileError(f"{path} exists; pass overwrite=True")
    changed = write_format(path, training, start, discount)
    if changed:
        warnings.warn(f"{path.name}: {'; '.join(changed)}", stacklevel=3)
    return path


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
    if arrival is None:
        reward = models.rewards[model, source, action]
    else:
        reward = arrival[model if len(arrival) > 1 else 0, source, action, target]
    return {
        "idstatefrom": source,
        "idaction": action,
        "idstateto": target,
        "idoutcome": model,
        "probability": probability,
        "reward": reward,
    }


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


def _available(raw: FolderRows, n_states: int, n_actions: int, folder: Path) -> BoolArray:
    """`[s,a]`: what each state offers."""
    offered = np.ones((n_states, n_actions), dtype=np.bool_)
    if raw.unavailable is None:
        return offered
    s, a = raw.unavailable
    if s.max() >= n_states or a.max() >= n_actions:
        raise FileError(f"{folder / 'unavailable.csv'}: there are {n_states} states and {n_actions} actions, from 0")
    offered[s, a] = False
    if not offered.any(axis=1).all():
        name = Names(raw.states).state(int(np.argmin(offered.any(axis=1))))
        raise FileError(f"{folder / 'unavailable.csv'}: {name} offers no action; leave it one")
    return offered


def _sizes(raw: FolderRows, folder: Path) -> tuple[int, int]:
    """Number of states and of actions over all files, every id in use or named."""
    files = [rows for rows in (raw.training, raw.test, raw.true) if rows is not None]
    states = np.concatenate([raw.initial[0], *(x for rows in files for x in (rows.source, rows.target))])
    actions = np.concatenate([rows.action for rows in files])
    named = [np.arange(len(names or ())) for names in (raw.states, raw.actions)]
    n_states = count_ids(np.concatenate([states, named[0]]), folder, "state ids", "state")
    return n_states, count_ids(np.concatenate([actions, named[1]]), folder, "idaction", "action")


def _distribution(
    pairs: tuple[IntArray, FloatArray], size: int, file: Path, kind: str, names: tuple[str, ...] | None = None
) -> FloatArray:
    ids, values = pairs
    if ids.max() >= size:
        raise FileError(f"{file}: {kind} {ids.max()} does not exist; there are {size}, numbered from 0")
    if kind == "model" and len(ids) != size:
        missing = Names(models=names).the_model(int(np.setdiff1d(np.arange(size), ids)[0]))
        raise FileError(f"{file} has no row for {missing}; give each of the {size} models a weight")
    dense = np.zeros(size)
    dense[ids] = values
    total = float(dense.sum())
    if abs(total - 1.0) > LOOSE:
        raise FileError(f"{file}: the column sums to {total:.12g}, expected 1")
    return dense / total if abs(total - 1.0) > 0.9 * TOLERANCE else dense
