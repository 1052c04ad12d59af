"""Beliefs of any class: what they can do is asked in one place; files, logs and fewer actions."""

import numpy as np
import pytest

from beliefbound import DirichletBelief, FiniteBelief, load_belief, plan_log, save_belief
from beliefbound.base.errors import BeliefboundError, BeliefError, FileError
from beliefbound.beliefs import NormalRewards
from beliefbound.beliefs.capabilities import Capability, capabilities_of, expected, lacking, offering, predictive
from beliefbound.beliefs.files import belief_of, entries_of
from beliefbound.beliefs.from_log import learn
from beliefbound.logs import log_of
from support.mixture import Mixture

COMMON = {Capability.DRAW, Capability.PREDICT, Capability.CONDITION}
SURE = np.array([[[5.0, 1.0], [1.0, 5.0]]] * 2)
MIXTURE = Mixture([DirichletBelief(2, 2, concentration=SURE), DirichletBelief(2, 2)], [0.5, 0.5])


def some_log(n=80, seed=0):
    rng = np.random.default_rng(seed)
    s, a = rng.integers(0, 2, (2, n))
    t = np.where(rng.random(n) < 0.8, a, 1 - a)
    return log_of(s, a, 1.0 * (t == 1), t)


@pytest.mark.parametrize(
    ("belief", "more"),
    [
        (DirichletBelief(2, 2), {Capability.COUNT}),
        (DirichletBelief(2, 2, rewards=NormalRewards()), set()),
        (DirichletBelief(2, 2).sample(3, 1), {Capability.ENUMERATE}),
        (MIXTURE, set()),
    ],
    ids=["counts", "normal rewards", "finite", "mixture"],
)
def test_what_a_belief_can_do(belief, more):
    assert capabilities_of(belief) == COMMON | more


def test_an_error_names_what_is_missing_and_how_to_have_it():
    with pytest.raises(BeliefError, match="belief is 3, which has no n_states; give a belief"):
        capabilities_of(3)
    assert "can count: counted(), as a DirichletBelief has" in str(lacking(MIXTURE, Capability.COUNT, "this"))


def test_what_is_not_known_is_drawn():
    """The expected MDP of a belief that cannot predict is that of draws."""

    class Plain:
        n_states, n_actions, initial, reward_range, available = 2, 2, None, (0.0, 1.0), MIXTURE.available
        sample = staticmethod(MIXTURE.sample)

    np.testing.assert_allclose(expected(Plain()).transitions, MIXTURE.mean().transitions, atol=0.1)
    np.testing.assert_allclose(predictive(Plain(), 0, 1), MIXTURE.predictive(0, 1), atol=0.1)
    assert np.array_equal(expected(Plain()).transitions, expected(Plain()).transitions)


def test_a_mixture_comes_back_from_its_file(tmp_path):
    later = MIXTURE.update([0, 1], [1, 1], [1.0, 1.0], [1, 1])
    save_belief(tmp_path / "belief.npz", later, states=["a", "b"])
    back = load_belief(tmp_path / "belief.npz")
    np.testing.assert_array_equal(back.weights, later.weights)
    assert np.array_equal(back.sample(5, 1).transitions, later.sample(5, 1).transitions)
    nested = Mixture([later, MIXTURE], [0.25, 0.75])
    assert np.array_equal(belief_of(entries_of(nested)).sample(5, 1).rewards, nested.sample(5, 1).rewards)


def test_files_of_unknown_or_broken_kinds_are_refused(tmp_path):
    entries = entries_of(MIXTURE)
    text = entries["header"].tobytes().decode()
    for wrong, said in (
        (text.replace("two-minds", "strange"), r"of the kind 'strange', which nobody has registered"),
        (text.replace('"kind":"two-minds"', '"kind":3'), "has version 1 of the kind 3"),
        (text.replace('"version":1', '"version":9'), "reads versions 1 and 2"),
    ):
        damaged = {**entries, "header": np.frombuffer(wrong.encode(), dtype=np.uint8)}
        with pytest.raises(FileError, match=said):
            belief_of(damaged, file=tmp_path / "x.npz")
    without = {name: array for name, array in entries.items() if name != "weights"}
    with pytest.raises(BeliefboundError, match="the belief 'two-minds' failed: KeyError"):
        belief_of(without, file=tmp_path / "x.npz")
    unequal = {**entries, "weights": np.array([0.5, 0.6])}
    with pytest.raises(FileError, match=r"x.npz: weights are \[0.5 0.6\]; give one per part"):
        belief_of(unequal, file=tmp_path / "x.npz")


def test_what_cannot_be_saved_says_so(tmp_path):
    class Unnamed(Mixture):
        pass

    with pytest.raises(BeliefError, match="give its class to_entries and from_entries, and register it"):
        save_belief(tmp_path / "x.npz", Unnamed(MIXTURE.parts, MIXTURE.weights))
    with pytest.raises(BeliefError, match="finite beliefs are written by write_models"):
        save_belief(tmp_path / "x.npz", MIXTURE.sample(2, 1))
    odd = Mixture(MIXTURE.parts, MIXTURE.weights)
    odd.to_entries = lambda: {"words": np.array(["a"])}
    with pytest.raises(BeliefError, match="entry 'words' of a two-minds is .* give numbers"):
        save_belief(tmp_path / "x.npz", odd)
    assert not list(tmp_path.iterdir())


def test_fewer_actions_of_any_belief():
    offered = np.array([[True, False], [True, True]])
    for belief in (MIXTURE, DirichletBelief(2, 2), FiniteBelief([[[[1.0, 0.0]] * 2] * 2] * 3, [[0.0, 1.0]] * 2)):
        narrow = offering(belief, offered)
        sample = narrow.sample(4, 1)
        assert (sample.available == offered).all()
        assert not sample.models.dense()[:, 0, 1].any()
        assert offering(belief, np.ones((2, 2), dtype=bool)) is belief
        narrow.update(0, 0, 1.0, 0)
    with pytest.raises(BeliefError, match="state 1 would have no action"):
        offering(MIXTURE, np.array([[True, True], [False, False]]))


def test_a_log_conditions_any_belief():
    """A Dirichlet belief as the prior is the posterior of its counts; a mixture's weights follow the evidence."""
    log = some_log()
    by_counts = learn(log, prior=1.0, rewards="beta")
    given = learn(log, prior=DirichletBelief(2, 2, concentration=1.0))
    np.testing.assert_allclose(given.belief.concentration, by_counts.belief.concentration)
    np.testing.assert_allclose(given.prior_share, by_counts.prior_share)
    found = learn(log, prior=MIXTURE)
    cells = [np.repeat(x, log.cells.times) for x in (log.cells.state, log.cells.action, log.cells.reward)]
    steps = (*cells, np.repeat(log.cells.next_state, log.cells.times))
    logs = [part.log_marginal_likelihood(*steps) for part in MIXTURE.parts]
    assert found.belief.weights[0] == pytest.approx(1.0 / (1.0 + np.exp(logs[1] - logs[0])))
    assert ((found.prior_share > 0.0) & (found.prior_share < 1.0)).all()


def test_a_log_that_does_not_fit_is_refused():
    log = some_log()
    with pytest.raises(BeliefError, match="has 3 states and 2 actions, .* has 2 and 2"):
        learn(log, prior=Mixture([DirichletBelief(3, 2)], [1.0]))
    with pytest.raises(BeliefError, match="give neither rewards nor known"):
        learn(log, prior=MIXTURE, rewards="beta")
    ended = log_of([0, 0], [0, 1], [1.0, 1.0], [1, 1], terminated=[1, 1])
    with pytest.raises(BeliefError, match="episodes of .* end in state .* make the state absorbing"):
        learn(ended, prior=Mixture([DirichletBelief(ended.n_states, 2)], [1.0]))
    plain = FiniteBelief([[[[0.5, 0.5]] * 2] * 2], [[0.0, 1.0]] * 2)

    class Fixed:
        n_states, n_actions, initial, reward_range, available = 2, 2, None, (0.0, 1.0), plain.available
        sample = staticmethod(plain.sample)

    with pytest.raises(BeliefError, match="learning from a log needs a belief that can be conditioned"):
        learn(log, prior=Fixed())


def test_a_log_is_planned_with_a_mixture(tmp_path):
    from beliefbound.jobs.from_log.writing import write_files

    found = plan_log(some_log(), discount=0.9, prior=MIXTURE, n_models=200, effort=6, measure=False)
    assert found.lower.value <= found.upper.value
    assert found.bracket.lower.value <= found.upper.value
    assert found.reliance.table[0].evidence is None
    write_files(found, {}, tmp_path)
    assert load_belief(tmp_path / "posterior.npz").weights.sum() == pytest.approx(1.0)
