"""`from_demonstrations`: what people who know what they do want, and how the world works, from what they did.

    Pr(a | s) = exp(η Q*(s,a)) / Σ_b exp(η Q*(s,b)),    p(D) = Π_t P(s'_t|s_t,a_t) · Pr(a_t|s_t)

with `Q*` of rewards and dynamics that are unknown, and `η` too (Ramachandran & Amir 2007 for known dynamics; Rothkopf
& Dimitrakakis 2011; several demonstrators with a shared, unknown prior: Dimitrakakis & Rothkopf 2011). Finitely many
hypotheses are weighed exactly (`planning.inverse.hypotheses`); else rewards, rows of the dynamics and rationality are
drawn by Metropolis–Hastings (`kernels.demonstrators`), and the draws, equally weighted, are the belief. What is proven
of it, by `bracket` or `certify`, is proven of the draws.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.convergence import bulk_ess, rhat, tail_ess
from beliefbound.base.errors import BeliefError, ParameterError
from beliefbound.base.validation import (
    FloatArray,
    IntArray,
    Rng,
    as_floats,
    as_rng,
    check_count,
    check_discount,
    check_distributions,
    check_initial,
    check_kind,
    check_positive,
    check_threads,
    shown,
)
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.log_priors import Prior, concentration_of, suggest_prior
from beliefbound.kernels.demonstrators.state import BETA
from beliefbound.logs.demonstrations import Demonstrations, read_demonstrations
from beliefbound.logs.tables import is_table
from beliefbound.planning.inverse.chains import KINDS, Draws, Problem, run_chains
from beliefbound.planning.inverse.hypotheses import log_choices, weigh_hypotheses
from beliefbound.planning.inverse.result import Demonstrated, Mixing
from beliefbound.planning.inverse.rewards import RewardForm, reward_form
from beliefbound.planning.optimal import optimal_values

RATIONALITY = (2.0, 2.0)  # shape and scale of a Gamma, for rewards between 0 and 1
_STEPS, _LEAST = 3000, 100_000  # of a chain: for each unknown and demonstrator, and in any case
_SIMULATED = 1999  # random demonstrators


def from_demonstrations(
    demonstrations: Any,
    *,
    discount: float,
    reward: Any = "state",
    reward_prior: Any = None,
    rationality: Any = None,
    dynamics: Any = None,
    prior: Prior | float = "suggest",
    hypotheses: FiniteBelief | None = None,
    initial: Any = None,
    draws: int = 256,
    chains: int = 4,
    steps: int | None = None,
    rng: Rng = None,
    threads: int | None = None,
) -> Demonstrated:
    """A belief about what demonstrators want and how the world works.

    Args:
      demonstrations: a file or a table with the columns `state, action, next_state` and, where there are several,
        `demonstrator`, and no rewards; or what `logs.demonstrations.read_demonstrations` found, which also takes more
        transitions by others.
      discount: of the demonstrators, below 1.
      reward: `state`, `pair`, or features `[s,f]` or `[s,a,f]`; `planning.inverse.rewards` has what they mean.
      reward_prior: `uniform` (the default), `sparse`, `normal` (the default for features), `("beta", a, b)` or
        `("normal", mean, deviation)`, of each parameter; of several demonstrators, of what they share.
      rationality: `η`: a number where it is known, or `("gamma", shape, scale)`; default Gamma(2, 2). For hypotheses a
        number, or several that are equally likely.
      dynamics: transitions `[s,a,t]`, where they are known; default: learnt, with the belief about rewards.
      prior: of the dynamics, as for `plan_log`: `suggest`, `uniform`, `jeffreys`, `sparse`, `empirical`, `local`, or a
        concentration.
      hypotheses: models with rewards to choose from, in place of all this: weighed exactly. All demonstrators are then
        taken to want the same.
      initial: start distribution, or a state by number or name; default: as demonstrations begin.
      draws: models of the belief, in all; `chains`: Markov chains, an equal share of them from each.
      steps: of each chain, after a quarter of them is thrown away; default: 3000 for each unknown and
        demonstrator, at least 100 000.
      rng: of the chains; the same seed gives the same draws, whatever the threads.

    Do they want state 0 or state 1? Action a leads to state a; their reward is paid in the state that is left:

    >>> leads = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    >>> wanted = FiniteBelief([leads, leads], [[[1, 1], [0, 0]], [[0, 0], [1, 1]]], reward_signal="unobserved")
    >>> seen = {"state": [0, 1, 1], "action": [1, 1, 1], "next_state": [1, 1, 1]}
    >>> found = from_demonstrations(seen, discount=0.9, hypotheses=wanted, rationality=2.0)
    >>> found.belief.weights.round(3).tolist()
    [0.004, 0.996]

    Without hypotheses, rewards and dynamics are drawn: `from_demonstrations("demos.csv", discount=0.95)`.
    """
    given = demonstrations
    demos = read_demonstrations(given) if is_table(given) or isinstance(given, str | Path) else given
    check_kind(demos, Demonstrations, "demonstrations", BeliefError, fix="give a file, a table, or what was read")
    discount = check_discount(discount, None)
    seed, threads = int(as_rng(rng).integers(0, 2**62)), check_threads(threads)
    chance = random_as_often(demos.visits, seed)
    if hypotheses is not None:
        return _of_hypotheses(hypotheses, demos, discount, rationality, chance, dynamics, reward, reward_prior)
    log = demos.log
    form = reward_form(reward, reward_prior, log.n_actions, log.terminal)
    alpha, known, rows, words, said = _dynamics(demos, dynamics, prior)
    problem = Problem(discount, alpha, known, rows, demos.visits, form, _rational(rationality))
    n, k = check_count(draws, "draws", least=8), check_count(chains, "chains", least=2)
    if n < 4 * k:
        raise ParameterError(f"draws is {n}, for {k} chains; keep at least {4 * k}, or run fewer chains")
    asked = max(_LEAST, _STEPS * problem.unknowns * demos.n_demonstrators)
    asked = asked if steps is None else check_count(steps, "steps", least=8)
    found = run_chains(problem, chains=k, draws=-(-n // k), steps=asked, seed=seed, threads=threads)
    return _demonstrated(demos, problem, found, initial, chance, f"rewards: {form.words}; dynamics: {words}", said)


def _demonstrated(
    demos: Demonstrations, problem: Problem, found: Draws, initial: Any, chance: float, prior: str, said: Sequence[str]
) -> Demonstrated:
    """The result of chains."""
    log, form, (K, S, A) = demos.log, problem.form, problem.visits.shape
    mixing, found = _mixing(demos, form, found, problem.rational[2] > 0.0), found.kept()
    n_chains, n = len(found.scale), found.scale.size
    w, eta = found.w.reshape(n, K, -1), found.eta.reshape(n, K)
    if K > 1:
        rng = np.random.default_rng(found.w.size)
        one = _somebody(found.prior.reshape(n, -1, 2), form, rng)
        w = np.concatenate([w, one[:, None]], axis=1)
        shape, scale, known = problem.rational
        new = np.full(n, scale) if known > 0.0 else rng.gamma(shape, found.scale.reshape(n))
        eta = np.concatenate([eta, new[:, None]], axis=1)
    rewards = form.rewards(w, S * A).reshape(n, -1, S, A)
    belief = FiniteBelief(
        found.p.reshape(n, S, A, S),
        rewards[:, -1],
        reward_signal="unobserved",
        initial=log.initial if initial is None else check_initial(initial, S, BeliefError, log.states),
        states=log.states,
        actions=log.actions,
        normalize=True,
    )
    share = {kind: int(x[1]) / int(x[0]) for kind, x in zip(KINDS, found.tally.sum(axis=0), strict=True) if x[0] > 0}
    return Demonstrated(
        belief=belief,
        demonstrations=demos,
        discount=problem.discount,
        rewards=rewards,
        rationality=eta,
        log_likelihood=found.like.sum(axis=-1).reshape(n),
        chance=chance,
        prior=prior,
        exact=False,
        mixing=mixing,
        n_chains=n_chains,
        n_steps=int(found.tally[0, :, 0].sum()),
        accepted=share,
        said=tuple(said),
    )


def _somebody(prior: FloatArray, form: RewardForm, rng: np.random.Generator) -> FloatArray:
    """Parameters `[m,f]` of somebody new, from the prior `[m,f,2]` that demonstrators share."""
    one, two = prior[..., 0], prior[..., 1]
    drawn: FloatArray = rng.beta(one, two) if form.family == BETA else rng.normal(one, two)
    return drawn


def _dynamics(
    demos: Demonstrations, dynamics: Any, prior: Any
) -> tuple[FloatArray, FloatArray, IntArray, str, list[str]]:
    """Concentrations, known rows, which are unknown, words, and what should be known about them."""
    log = demos.log
    S, A, ends = log.n_states, log.n_actions, log.terminal
    stay = np.zeros((S, A, S))
    stay[np.arange(S), :, np.arange(S)] = 1.0
    if dynamics is not None:
        known = as_floats(dynamics, "dynamics", BeliefError)
        if known.shape != (S, A, S):
            raise BeliefError(f"dynamics have shape {known.shape}; expected {(S, A, S)}, [s,a,t]")
        check_distributions(known, "dynamics", ("state", "action", "next state"), BeliefError)
        return np.zeros((S, A, S)), known, np.zeros(0, dtype=np.int64), "known", []
    notes: list[str] = []
    if isinstance(prior, str) and prior == "suggest":
        prior, reason = suggest_prior(log, ends)
        notes += [reason.split("; ")[0]] if reason else []
    concentration, words, more = concentration_of(log, prior, ends)
    alpha = concentration + log.transition_counts()
    rows = np.flatnonzero(np.repeat(~ends, A) & ((alpha > 0.0).sum(axis=-1).ravel() > 1))
    sure = alpha / alpha.sum(axis=-1, keepdims=True)
    return alpha, np.where(ends[:, None, None], stay, sure), rows.astype(np.int64), words, [*notes, *more]


def _rational(given: Any) -> tuple[float, float, float]:
    """Shape and scale of a Gamma, and 0; or a known number, and 1."""
    if given is None:
        return (*RATIONALITY, 0.0)
    if isinstance(given, tuple):
        if len(given) != 3 or given[0] != "gamma":
            raise ParameterError(f"rationality is {shown(given)}; give a number, or ('gamma', shape, scale)")
        return check_positive(given[1], "rationality's shape"), check_positive(given[2], "rationality's scale"), 0.0
    return 0.0, check_positive(given, "rationality"), 1.0


def _of_hypotheses(
    hypotheses: FiniteBelief,
    demos: Demonstrations,
    discount: float,
    rationality: Any,
    chance: float,
    dynamics: Any,
    reward: Any,
    reward_prior: Any,
) -> Demonstrated:
    check_kind(hypotheses, FiniteBelief, "hypotheses", BeliefError, fix="give a FiniteBelief")
    if dynamics is not None or reward_prior is not None or not (isinstance(reward, str) and reward == "state"):
        raise ParameterError("hypotheses have rewards and dynamics of their own; give neither reward nor dynamics")
    if rationality is None or (isinstance(rationality, tuple) and rationality and isinstance(rationality[0], str)):
        raise ParameterError("how rational are they? give rationality, a number or several that are equally likely")
    eta = np.atleast_1d(as_floats(rationality, "rationality", ParameterError))
    if eta.ndim != 1 or not eta.size or not (np.isfinite(eta) & (eta >= 0.0)).all():
        raise ParameterError(f"rationality is {shown(rationality)}; give numbers of at least 0")
    belief = weigh_hypotheses(hypotheses, demos, discount=discount, rationality=eta)
    q, M = optimal_values(belief, discount=discount).q, belief.n_models
    like = np.stack([log_choices(q, demos.visits.sum(axis=0), float(x)) for x in eta]).max(axis=0)
    return Demonstrated(
        belief=belief,
        demonstrations=demos,
        discount=discount,
        rewards=belief.rewards[:, None],
        rationality=np.full((M, 1), float(eta[0]) if len(eta) == 1 else np.nan),
        log_likelihood=np.where(belief.weights > 0.0, like, 0.0),
        chance=chance,
        prior=f"{M} hypotheses",
        exact=True,
    )


def _mixing(demos: Demonstrations, form: RewardForm, found: Draws, known: bool) -> tuple[Mixing, ...]:
    """Of the likelihood, of rewards and of rationality, the largest R̂ first."""
    log, who = demos.log, demos.demonstrators
    quantities = {"log likelihood of the choices": found.like.sum(axis=-1)}
    starts = form.pair[form.first[:-1]]
    for k, name in enumerate(who):
        of = "" if len(who) == 1 else f" of {name[:40]}"
        if not known:
            quantities[f"log rationality{of}"] = np.log(found.eta[:, :, k])
        for j in range(form.n):
            state, action = (log.state_name(int(starts[j]) // log.n_actions), int(starts[j]) % log.n_actions)
            where = {"state": state, "pair": f"{state}, {log.action_name(action)}", "features": f"feature {j}"}
            quantities[f"reward of {where[form.name][:80]}{of}"] = found.w[:, :, k, j]
    checks = [Mixing(name, rhat(x), bulk_ess(x), tail_ess(x)) for name, x in quantities.items()]
    return tuple(sorted(checks, key=lambda check: -check.rhat))


def random_as_often(visits: IntArray, seed: int) -> float:
    """How often choices made at random, as many in each state, are as one-sided as these: a Monte Carlo test.

    >>> random_as_often(np.array([[[9, 0], [0, 8]]]), 1) < 0.01, random_as_often(np.array([[[5, 4], [4, 4]]]), 1) > 0.5
    (True, True)
    """
    rng, A = np.random.default_rng(seed), visits.shape[-1]

    def one_sided(counts: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(counts > 0, counts * np.log(counts), 0.0).sum(axis=-1)

    rows = visits.reshape(-1, A)
    rows = rows[rows.sum(axis=1) > 0]
    seen = float(one_sided(rows.astype(np.float64)).sum())
    drawn = sum(one_sided(rng.multinomial(int(row.sum()), np.full(A, 1.0 / A), _SIMULATED)) for row in rows)
    return float((1 + (drawn >= seen - 1e-9).sum()) / (_SIMULATED + 1))
