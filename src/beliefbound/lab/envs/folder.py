"""`folder:PATH,model=3`: one model of a model folder, as the environment to learn in.

`PATH` is relative to the working directory; if it has a comma, rename it, and if it has a `=`, write `path=`. `model`
is `true` (the default: `true.csv`), `average` (the mean model), or the number of a model of `file`, which is `training`
or `test`.
Rewards are realised as the folder's reward signal says: by the arrival where rewards depend on it, as one of two
values under `bernoulli`, else the expected reward of the pair. The discount is the folder's.
"""

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.grammar import Choice, Text
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.folder import ModelFolder, read_models
from beliefbound.lab.envs.environment import Environment, environment_from_mdp, from_outcomes
from beliefbound.lab.envs.registry import env
from beliefbound.models.mdp import MDP


@env(
    "folder",
    summary="a model of a model folder: folder:PATH,model=0",
    parameters=(
        Text("path", about="the path of a model folder", path=True),
        Text("model", "true", "true, average, or the number of a model", by_position=False),
        Choice("file", "training", ("training", "test"), "where a numbered model is"),
    ),
)
def folder(name: str, *, path: str, model: str, file: str) -> Environment:
    """The model that `model` names."""
    held = read_models(path)
    if model in ("true", "average"):
        mdp = held.true if model == "true" else held.average
        if mdp is None:
            raise ParameterError(f"{name!r}: {path} has no true.csv; add model=0, another number, or model=average")
        mdp = MDP(mdp.transitions, mdp.rewards, initial=held.initial)
        return environment_from_mdp(mdp, name=name, discount=held.discount)
    belief = held.training if file == "training" else held.test
    if belief is None:
        raise ParameterError(f"{name!r}: {path} has no test.csv; take file=training")
    if not (model.isascii() and model.isdigit() and int(model) < belief.n_models):
        raise ParameterError(
            f"{name!r}: model is {model!r}; give true, average or a number from 0 to {belief.n_models - 1}"
        )
    return _numbered(name, held, belief, int(model))


def _numbered(name: str, held: ModelFolder, belief: FiniteBelief, number: int) -> Environment:
    chosen = belief.models.select(np.array([number]))
    mdp = MDP(chosen.dense()[0], chosen.rewards[0], initial=held.initial)
    plain = environment_from_mdp(mdp, name=name, discount=held.discount)
    chances, target = plain.chances, plain.outcomes.next_state
    means, arriving = mdp.rewards[:, :, None], belief.signal.on_arrival
    if arriving is not None:
        means = np.take_along_axis(arriving[min(number, len(arriving) - 1)], target, axis=2)
    if belief.signal.name == "bernoulli":
        low, high = belief.reward_range
        success = ((means - low) / (high - low)).clip(0.0, 1.0)
        means = np.concatenate([np.full(target.shape, high), np.full(target.shape, low)], axis=2)
        chances = np.concatenate([chances * success, chances * (1.0 - success)], axis=2)
        target = np.concatenate([target, target], axis=2)
    elif arriving is None:
        return plain
    return from_outcomes(name, chances, target, means, start=held.initial, discount=held.discount)
