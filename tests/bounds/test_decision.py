"""Brackets of first actions hold what exact trees say, and a proven decision is right, also where weights move."""

import matplotlib
import numpy as np
import pytest

from beliefbound.base.errors import ParameterError
from beliefbound.beliefs import DirichletBelief, FiniteBelief
from beliefbound.bounds.bracket import Bracket, bracket
from beliefbound.bounds.decision import stability_of
from support import oracles
from support.beliefs import ROUNDING, SIGNALS, random_belief
from support.tiers import tiers

matplotlib.use("Agg")


def first_action_values(P, r, w, s, discount, horizon, signal):
    """`Q(a)` by exact trees: a copy of the start state, where nothing leads, in which only `a` is available."""
    n_models, n_states, n_actions = r.shape
    longer = np.zeros((n_models, n_states + 1, n_actions, n_states + 1))
    longer[:, :-1, :, :-1], longer[:, -1, :, :-1] = P, P[:, s]
    rewards = np.concatenate([r, r[:, s : s + 1]], axis=1)
    values = []
    for a in range(n_actions):
        available = np.ones((n_states + 1, n_actions), bool)
        available[-1] = np.arange(n_actions) == a
        tree = oracles.bayes_adaptive_value(
            longer, rewards, w, n_states, discount, horizon, signal, available=available
        )
        values.append(tree)
    return np.array(values)


@pytest.mark.parametrize("signal", tiers(SIGNALS, "bernoulli"))
@pytest.mark.parametrize("effort", tiers([1, 4, 12], 4))
def test_first_actions_are_bracketed_at_any_effort(signal, effort):
    rng = np.random.default_rng(11)
    for _ in range(3):
        belief, (P, r, w, _) = random_belief(rng, signal, n_actions=3)
        found = bracket(belief, discount=0.9, horizon=4, initial=1, effort=effort, rng=1)
        exact = first_action_values(P, r, w, 1, 0.9, 4, signal)
        decision = found.decision
        assert decision.state == 1
        assert decision.actions == (0, 1, 2)
        assert (decision.lower <= exact + ROUNDING).all()
        assert (decision.upper >= exact - ROUNDING).all()
        assert decision.best in (None, int(exact.argmax()))


@pytest.mark.parametrize("horizon", tiers([4, None], 4))
def test_a_proven_decision_is_right_wherever_it_says_that_it_is_stable(horizon):
    """Every model's weight is moved over a grid inside its interval; an exact tree says which action is best there.
    Without a horizon the tree is cut where what is left cannot change the order."""
    rng, checked = np.random.default_rng(2), 0
    for _ in range(4):
        belief, (P, r, w, _) = random_belief(rng, "bernoulli")
        discount, stages = (0.9, 4) if horizon else (0.2, 4)
        found = bracket(belief, discount=discount, horizon=horizon, initial=0, target="decision", effort=15, rng=1)
        decision = found.decision
        if decision.best is None:
            continue
        tail = 0.0 if horizon else discount**stages / (1.0 - discount)
        for m, (low, high) in enumerate(decision.stability):
            assert 0.0 <= low <= w[m] <= high <= 1.0
            for t in np.linspace(low, high, 5)[1:-1]:
                moved = w * (1.0 - t) / (1.0 - w[m])
                moved[m] = t
                exact = first_action_values(P, r, moved, 0, discount, stages, "bernoulli")
                assert exact[decision.best] >= np.delete(exact, decision.best).max() - tail - ROUNDING
                checked += high - low > 1e-6
    assert checked > 10


def test_a_decision_is_proven_before_the_value_is_and_by_exact_bounds():
    belief, _ = random_belief(np.random.default_rng(5), "bernoulli", n_models=4, n_states=3)
    value = bracket(belief, discount=0.9, initial=0, effort=12, rng=1)
    decided = bracket(belief, discount=0.9, initial=0, target="decision", effort=12, rng=1)
    assert decided.decision.best is not None
    assert decided.effort < value.effort
    assert decided.width > 0.0
    assert decided.confidence == 1.0
    i = decided.decision.actions.index(decided.decision.best)
    assert decided.decision.lower[i] > np.delete(decided.decision.upper, i).max()
    assert decided.decision.describe().startswith(f"at the start action {decided.decision.best} is proven optimal")


def test_actions_that_are_equal_are_never_told_apart():
    belief = FiniteBelief([[[[1.0], [1.0]]]] * 2, [[[1.0, 1.0]], [[2.0, 2.0]]], reward_signal="unobserved")
    found = bracket(belief, discount=0.5, target="decision", effort=20, rng=0)
    assert found.decision.best is None
    assert "still possible: action 0, action 1" in found.decision.describe()


def test_a_lone_action_is_the_decision():
    found = bracket(FiniteBelief([[[[1.0]]]], [[[1.0]]]), discount=0.5, target="decision", rng=0)
    assert found.decision.best == 0
    assert "only action" in found.decision.describe()


def test_several_starts_and_other_beliefs_have_no_decision():
    belief, _ = random_belief(np.random.default_rng(1), "known")
    assert bracket(belief, discount=0.5, effort=1, rng=0).decision is None
    with pytest.raises(ParameterError, match="give initial=state"):
        bracket(belief, discount=0.5, target="decision", rng=0)
    with pytest.raises(ParameterError, match="finite beliefs"):
        bracket(DirichletBelief(2, 2, initial=0), discount=0.5, target="decision", rng=0)
    with pytest.raises(ParameterError, match="target is 'sale'; choose one of value, decision"):
        bracket(belief, discount=0.5, target="sale", rng=0)


def test_stability_is_where_straight_lines_cross():
    """Two models, one other action. From below 1 in both; from above 0.5 now, 2 where model 0 is known, 0 without."""
    found = stability_of(
        np.array([0.5, 0.5]),
        np.array([1.0, 1.0]),
        np.array([0.5]),
        known=np.array([[2.0], [0.0]]),
        without=np.array([[0.0], [2.0]]),
    )
    third = 0.5 + 0.5 / 3.0  # the line from 0.5 to 2 meets 1 after a third of the way
    assert found == pytest.approx(np.array([[0.0, third], [1.0 - third, 1.0]]))


def test_a_decision_uses_names_and_draws_itself(tmp_path):
    names = {"states": ("now",), "actions": ("wait", "burn"), "model_names": ("dry", "wet")}
    belief = FiniteBelief([[[[1.0], [1.0]]]] * 2, [[[1.0, 0.0]], [[2.0, 0.5]]], reward_signal="unobserved", **names)
    found = bracket(belief, discount=0.5, effort=20, rng=0)
    assert found.decision.describe().startswith("at the start wait is proven optimal")
    assert "Decision(at now: wait in [" in repr(found.decision)
    assert found.decision.summary().splitlines()[1].startswith("  wait  between ")
    assert "burn" in found.decision._repr_html_()
    drawn = found.decision.plot()
    assert [label.get_text() for label in drawn.get_yticklabels()] == ["wait", "burn"]
    found.save(tmp_path / "found.json")
    assert Bracket.load(tmp_path / "found.json").decision.describe() == found.decision.describe()
