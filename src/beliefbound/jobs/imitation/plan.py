"""A policy for what was demonstrated, and what is certain about it.

1. *Belief* (`planning.inverse.posterior`): draws of rewards and dynamics.
2. *Choice.* On the draws of the first half of the chains: the expected MDP's policy, MMBI, CADP and imitation; the one
   of the highest mean value.
3. *Certificate.* On the draws of the other chains: the mean of `V*_m − V^π_m`, with a Normal interval by their
   effective number; right in the limit of long chains. A bracket of the first half's draws says what learning could
   gain there.
4. *Questions.* What they would do in a state, and whether they like it more than its median reward: an answer splits
   the draws, and is worth `Σ_g max_π Σ_m b_g[m] V^π_m − max_π Σ_m b[m] V^π_m`, `π` of a pool of policies.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from beliefbound.base.convergence import mean_ess
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.bounds.bracket import Bracket, bracket_of, seed_of
from beliefbound.bounds.record import TracePoint
from beliefbound.bounds.steps import Limits
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.cadp import cadp
from beliefbound.planning.expected import expected_mdp_policy
from beliefbound.planning.inverse.imitation import imitation
from beliefbound.planning.inverse.result import Demonstrated
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.report.imitation.result import Imitated, Mean, Question, Rival

_ROUNDING = 1e-12  # of values: what is worth less may be worth nothing
_POOL, _ASKED = 64, 128  # policies and draws that answers are valued on


def imitated(
    found: Demonstrated,
    *,
    confidence: float,
    limits: Limits | None,
    rng: np.random.Generator,
    grid: tuple[int, int] | None = None,
    watch: Callable[[TracePoint], object] | None = None,
    say: Callable[[str], object] = lambda text: None,
) -> Imitated:
    """A policy for what was demonstrated, chosen on half of the chains and valued on the others; `limits`: of the
    bracket, which is left out where there are none."""
    belief, discount = found.belief, found.discount
    half = belief.n_models // 2  # draws stand chain by chain
    own, other = (_part(belief, np.arange(belief.n_models)[part]) for part in (slice(half), slice(half, None)))
    say("choosing a policy")
    makers: dict[str, TablePolicy] = {
        "CADP": cadp(own, discount=discount).policy,
        "MMBI": mmbi(own, discount=discount).policy,
        "the expected MDP": expected_mdp_policy(own, discount=discount).policy,
        "imitation": imitation(found.demonstrations.visits.sum(axis=0)),
    }
    start = belief.initial
    assert start is not None
    values = {name: evaluate(p, own, discount=discount) @ start for name, p in makers.items()}
    origin = max(values, key=lambda name: float(values[name].mean()))
    policy = makers[origin]
    assert isinstance(policy, StationaryPolicy)
    say("valuing it on the other chains' draws")
    solved = optimal_values(other, discount=discount)
    best = solved.values @ start
    earned = {name: evaluate(p, other, discount=discount) @ start for name, p in makers.items()}
    choices = found.choices()[half:]
    earned["the demonstrator, as believed"] = other.models.solve(choices, discount) @ start
    chains, sure = found.n_chains // 2, confidence
    mine = earned.pop(origin)
    rivals = tuple(Rival(name, _mean(x, chains, sure), _mean(mine - x, chains, sure)) for name, x in earned.items())
    actions = policy.actions
    assert actions is not None
    q = optimal_values(belief, discount=discount).q
    support = (q[:, np.arange(belief.n_states), actions] >= q.max(axis=-1) - 1e-9 * np.abs(q).max()).mean(axis=0)
    closed: Bracket | None = None
    if limits is not None:
        say("bracketing what learning could gain")
        task = FiniteTask.of(own, discount=discount)
        closed = bracket_of(task, limits, seed=seed_of(rng), watch=watch, confidence=sure).bracket
    say("looking for questions")
    questions, everything = _questions(found, makers)
    return Imitated(
        found,
        policy,
        origin,
        float(values[origin].mean()),
        _mean(mine, chains, sure),
        _mean(best - mine, chains, sure),
        rivals,
        support,
        closed,
        questions,
        everything,
        sure,
        grid,
    )


def _part(belief: FiniteBelief, models: Any) -> FiniteBelief:
    return FiniteBelief.of(
        belief.models.select(models),
        reward_signal="unobserved",
        initial=belief.initial,
        states=belief.states,
        actions=belief.actions,
    )


def _mean(samples: FloatArray, chains: int, confidence: float) -> Mean:
    """Of samples that stand chain by chain; each end fails with `1 − confidence`."""
    from scipy.special import ndtri

    drawn = samples.reshape(chains, -1)
    ess = min(float(mean_ess(drawn)), float(samples.size))
    width = float(ndtri(confidence) * samples.std(ddof=1) / np.sqrt(max(1.0, ess)))
    mean = float(samples.mean())
    return Mean(mean, mean - width, mean + width, ess)


def _questions(found: Demonstrated, makers: dict[str, TablePolicy]) -> tuple[tuple[Question, ...], float]:
    """Questions by what their answers are worth, and what knowing everything is."""
    belief = found.belief
    spread = np.linspace(0, belief.n_models - 1, min(_ASKED, belief.n_models)).astype(np.int64)
    some, start = _part(belief, spread), belief.initial
    assert start is not None
    solved = optimal_values(some, discount=found.discount)
    few = np.linspace(0, len(spread) - 1, min(_POOL, len(spread))).astype(np.int64)
    pool = list(dict.fromkeys([*makers.values(), *map(StationaryPolicy, solved.actions[few])]))
    alpha = np.stack([evaluate(policy, some, discount=found.discount) @ start for policy in pool])  # [policy,m]
    now = float(alpha.mean(axis=1).max())
    choices, asked = found.choices()[spread], []
    met = ~found.demonstrations.log.terminal

    def worth(parts: FloatArray) -> float:
        """Of a split into parts `[g,m]` of the draws."""
        rise = float((alpha @ parts.T / len(spread)).max(axis=0).sum()) - now
        return rise if rise > _ROUNDING * float(np.abs(alpha).max()) else 0.0

    for s in np.flatnonzero(met):
        asked.append(Question(int(s), "do", worth(choices[:, s].T)))
        paid = some.rewards[:, s].max(axis=1)
        above = paid > np.median(paid)
        asked.append(Question(int(s), "like", worth(np.stack([above, ~above]).astype(np.float64))))
    everything = float((solved.values @ start).mean()) - now
    return tuple(sorted(asked, key=lambda question: -question.worth)), max(0.0, everything)
