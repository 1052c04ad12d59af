"""`check_belief`: what every belief must do, ours or yours, as one function to call in a test.

1. It has the sizes, actions, start and range of rewards that its models have.
2. Equal seeds draw equal models; a generator that is drawn from again draws others; models are within what the belief
   says of them; no global generator is used.
3. What it predicts is the mean of what it draws, and what it enumerates and counts predicts the same.
4. What it believes after a step is Bayes' rule: the mean of draws weighed by the likelihood of what was seen, which the
   models' own signal knows. `update` leaves the belief as it was; many steps at once are the same as one by one; what
   cannot happen is refused.
5. What it says besides is true: terminal states, rows that are learnt together, files.

`base.kits` has how means are compared.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import ObservationError
from beliefbound.base.kits import CLOSE, assert_mean, global_state
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs import capabilities as can
from beliefbound.beliefs.files import belief_of, can_save, entries_of
from beliefbound.beliefs.finite import FiniteBelief

_DRAWS = 4000
_STEPS = 3


def check_belief(belief: Any, *, draws: int = _DRAWS, seed: int = 1) -> None:
    """Raise `AssertionError`, saying what is wrong, unless the belief keeps its word.

    Args:
      belief: of any class with what `beliefs.belief` asks for; small, so that models can be drawn by the thousand.
      draws: models that its predictions are compared with.
      seed: of everything drawn.

    >>> from beliefbound import DirichletBelief
    >>> check_belief(DirichletBelief(2, 2), draws=1000)
    """
    before = global_state()
    for name in can.NEEDED:
        assert hasattr(belief, name), f"it has no {name}; see beliefbound.beliefs.Belief"
    _check_sizes(belief)
    drawn = _check_draws(belief, draws, seed)
    _check_predictions(belief, drawn)
    if callable(getattr(belief, "update", None)):
        _check_conditioning(belief, drawn, seed)
    _check_said(belief, drawn, seed)
    assert global_state() == before, (
        "it used or reseeded a global random generator; draw from the generator that sample is given"
    )


def _check_sizes(belief: Any) -> None:
    S, A = belief.n_states, belief.n_actions
    for name, size in (("n_states", S), ("n_actions", A)):
        assert isinstance(size, int) and size >= 1, f"{name} is {size!r}; give a whole number from 1"  # noqa: PT018
    offered = belief.available
    assert isinstance(offered, np.ndarray), f"available is {offered!r}; give booleans [state, action]"
    assert offered.dtype == np.bool_, f"available has dtype {offered.dtype}; give booleans"
    assert offered.shape == (S, A), f"available has shape {offered.shape}; expected ({S}, {A})"
    assert offered.any(axis=1).all(), f"available: state {np.argmin(offered.any(axis=1))} has no action; offer one"
    if belief.initial is not None:
        start = np.asarray(belief.initial)
        assert start.shape == (S,), f"initial has shape {start.shape}; expected ({S},), or None"
        assert (start >= 0.0).all() and abs(start.sum() - 1.0) < CLOSE, (  # noqa: PT018
            f"initial is {start}; give probabilities that sum to 1"
        )
    if belief.reward_range is not None:
        low, high = belief.reward_range
        assert low <= high, f"reward_range is ({low}, {high}); give the least first"


def _check_draws(belief: Any, draws: int, seed: int) -> FiniteBelief:
    one, same = belief.sample(5, seed), belief.sample(5, seed)
    assert isinstance(one, FiniteBelief), f"sample(5, seed) gave a {type(one).__name__}; give a FiniteBelief"
    assert one.n_models == 5, f"sample(5, seed) gave {one.n_models} models; give 5"
    assert (one.n_states, one.n_actions) == (belief.n_states, belief.n_actions), (
        f"sample gave models of {one.n_states} states and {one.n_actions} actions; the belief has {belief.n_states} "
        f"and {belief.n_actions}"
    )
    assert np.ptp(one.weights) <= CLOSE, f"models drawn have weights {one.weights}; give equal ones, they are draws"
    assert (one.available == belief.available).all(), "models drawn offer other actions than available says"
    mine, own = one.initial, belief.initial
    agree = mine is None if own is None else mine is not None and np.allclose(mine, own)
    assert agree, f"models drawn start in {mine}; the belief says initial is {own}"
    assert _equal(one, same), "sample(5, seed) drew other models the second time; equal seeds draw equal models"
    source = np.random.default_rng(seed)
    first, then = belief.sample(5, source), belief.sample(5, source)
    varied = np.ptp(one.models.dense(), axis=0).any() or np.ptp(one.rewards, axis=0).any()
    assert not varied or not _equal(first, then), (
        "sample(5, rng) drew the same models twice from one generator; draw from it, do not reseed it"
    )
    drawn: FiniteBelief = belief.sample(draws, np.random.default_rng((seed, 1)))
    if belief.reward_range is not None:
        (low, high), paid = belief.reward_range, drawn.rewards[:, belief.available]
        slack = CLOSE * max(abs(low), abs(high), 1.0)
        assert low - slack <= paid.min(), f"a model drawn pays {paid.min()}; reward_range says at least {low}"
        assert paid.max() <= high + slack, f"a model drawn pays {paid.max()}; reward_range says at most {high}"
    return drawn


def _check_predictions(belief: Any, drawn: FiniteBelief) -> None:
    chances, rewards = drawn.models.dense(), drawn.rewards
    listed = can.enumerated(belief)
    if callable(getattr(belief, "mean", None)):
        mean = belief.mean()
        assert_mean(mean.models.dense()[0], chances, "mean().transitions", where=belief.available)
        assert_mean(mean.rewards, rewards, "mean().rewards", where=belief.available)
    if callable(getattr(belief, "predictive", None)):
        for s, a in np.argwhere(belief.available):
            row = np.asarray(belief.predictive(int(s), int(a)))
            what = f"predictive({s}, {a})"
            assert row.shape == (belief.n_states,), f"{what} has shape {row.shape}; expected ({belief.n_states},)"
            assert abs(row.sum() - 1.0) < 1e-6, f"{what} sums to {row.sum()}; chances of the next state sum to 1"
            assert_mean(row, chances[:, s, a], what)
    if listed is not None:
        assert isinstance(listed, FiniteBelief), f"enumerated() is {listed!r}; give a FiniteBelief, or None"
        assert_mean(listed.mean().models.dense()[0], chances, "enumerated(): its mean", where=belief.available)
    posterior = can.counted(belief)
    if posterior is not None:
        assert posterior.n_actions == belief.n_actions, f"counted() has {posterior.n_actions} actions"
        if not posterior.tied:
            rows = posterior.alpha / posterior.alpha.sum(axis=1, keepdims=True)
            rows = rows.reshape(belief.n_states, belief.n_actions, -1)
            assert_mean(rows, chances, "counted(): its expected transitions", where=belief.available)


def _check_conditioning(belief: Any, drawn: FiniteBelief, seed: int) -> None:
    if not drawn.signal.finite:
        return  # what a step shows has a density, and draws do not say it
    rng = np.random.default_rng((seed, 2))
    seen, kept = [], belief.sample(3, 7)
    after, log_weights = belief, np.zeros(drawn.n_models)
    for _ in range(_STEPS):
        s, a = (int(x) for x in rng.choice(np.argwhere(belief.available)))
        m = int(rng.choice(drawn.n_models, p=_normal(log_weights)))
        step = (s, a, *drawn.step(m, s, a, rng))
        seen.append(step)
        after = after.update(*step)
        r = 0.0 if step[2] is None else step[2]
        with np.errstate(divide="ignore"):
            like = drawn.models.transitions.likelihood(s, a, step[3]) * drawn.signal.likelihood(s, a, r, step[3])
            log_weights = log_weights + np.log(like)
    for name in can.NEEDED:
        assert hasattr(after, name), f"update({_told(seen[0])}) gave {after!r}, which has no {name}; give a belief"
    assert _equal(belief.sample(3, 7), kept), "update changed the belief itself; give another one"
    weights = _normal(log_weights)
    what = f"after {', then '.join(map(_told, seen))}: what is expected"
    mean, knobs = can.expected(after), {"where": belief.available, "weights": weights}
    assert_mean(mean.models.dense()[0], drawn.models.dense(), what, **knobs)
    assert_mean(mean.rewards, drawn.rewards, f"{what} of rewards", **knobs)
    columns = [np.array([step[k] for step in seen]) for k in (0, 1, 3)]
    paid = None if any(step[2] is None for step in seen) else np.array([step[2] for step in seen])
    if paid is not None or not drawn.signal.teaches:
        at_once = belief.update(columns[0], columns[1], paid, columns[2])
        mine, other = (can.expected(each).models.dense()[0][belief.available] for each in (at_once, after))
        assert np.allclose(mine, other, atol=1e-6), (
            "update with arrays of several steps differs from the same steps one by one"
        )
    _check_refusal(belief, drawn)


def _check_refusal(belief: Any, drawn: FiniteBelief) -> None:
    never = np.argwhere(belief.available[..., None] & ~(drawn.models.dense() > 0.0).any(axis=0))
    outside = (belief.n_states, 0, 0)
    for s, a, t in [*never[:1].tolist(), outside]:
        shown = drawn.rewards[0, min(s, belief.n_states - 1), a]
        try:
            belief.update(s, a, float(shown), t)
        except ObservationError:
            continue
        except Exception as fault:
            raise AssertionError(
                f"update({s}, {a}, {shown:g}, {t}), which cannot happen, raised {type(fault).__name__}: {fault}; raise "
                "ObservationError"
            ) from fault
        raise AssertionError(f"update({s}, {a}, {shown:g}, {t}) cannot happen in any model; raise ObservationError")


def _check_said(belief: Any, drawn: FiniteBelief, seed: int) -> None:
    ends = can.terminal(belief)
    assert ends.shape == (belief.n_states,), f"terminal has shape {ends.shape}; expected ({belief.n_states},)"
    for s in np.flatnonzero(ends):
        stays = drawn.models.dense()[:, s, belief.available[s]][..., s]
        assert np.allclose(stays, 1.0), f"terminal: state {s} is left in models drawn; make it absorbing there"
        assert not drawn.rewards[:, s].any(), f"terminal: state {s} pays rewards in models drawn; make them 0"
    assert all(isinstance(note, str) for note in can.notes(belief)), "notes() must be texts"
    known = can.allowed(belief)
    if known is not None:
        outside = (drawn.models.dense() > 0.0).any(axis=0) & ~known.possible
        assert not outside.any(), f"allowed(): {tuple(np.argwhere(outside)[0])} happens in models drawn"
    for s, a in np.argwhere(belief.available & ~ends[:, None])[:1]:
        together = can.learnt_together(belief, int(s), int(a))
        assert together is None or ((together == (s, a)).all(axis=1)).any(), (
            f"tied_to({s}, {a}) is {together}; the pair itself is among those learnt together with it"
        )
    if can_save(belief):
        back = belief_of(entries_of(belief))
        assert _equal(back.sample(3, seed), belief.sample(3, seed)), (
            "from_entries(to_entries()) draws other models; entries must hold all that the belief is"
        )


def _normal(logs: FloatArray) -> FloatArray:
    weights = np.exp(logs - logs.max())
    normal: FloatArray = weights / weights.sum()
    return normal


def _told(step: tuple[Any, ...]) -> str:
    return "({})".format(", ".join("None" if x is None else f"{x:g}" for x in step))


def _equal(one: FiniteBelief, other: FiniteBelief) -> bool:
    return np.array_equal(one.models.dense(), other.models.dense()) and np.array_equal(one.rewards, other.rewards)
