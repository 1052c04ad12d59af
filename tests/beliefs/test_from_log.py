"""The posterior of a log: counts plus prior, whatever was chosen about rewards; and what it refuses."""

import gymnasium
import numpy as np
import pytest
import scipy.stats as stats

from beliefbound import BetaRewards, DirichletBelief, DirichletRewards, KnownRewards
from beliefbound.base.errors import BeliefError, FileError, ObservationError
from beliefbound.beliefs import NormalRewards
from beliefbound.beliefs.files import load_belief, save_belief
from beliefbound.beliefs.from_log import learn
from beliefbound.beliefs.log_checks import check_learnt
from beliefbound.beliefs.log_priors import PRIORS
from beliefbound.beliefs.rewards import MixedRewards
from beliefbound.lab.agents import make_agent, run_episode
from beliefbound.lab.envs import DiscreteEnv, make_env
from beliefbound.logs import log_of, roll_out


def transitions(n=200, seed=0, n_states=4, n_actions=2):
    rng = np.random.default_rng(seed)
    s, a = rng.integers(0, n_states - 1, n), rng.integers(0, n_actions, n)
    t = np.minimum(n_states - 1, rng.integers(0, 3, n) + a)
    return s, a, t, rng


def by_hand(belief, s, a, r, t):
    for row in zip(s, a, r, t, strict=True):
        belief = belief.update(*row)
    return belief


@pytest.mark.parametrize("prior", [*PRIORS, 0.3])
def test_transitions_are_prior_plus_counts(prior):
    s, a, t, _ = transitions()
    log = log_of(s, a, 1.0 * s, t, n_states=5)
    learnt = learn(log, prior=prior)
    counts = np.zeros((5, 2, 5))
    np.add.at(counts, (s, a, t), 1.0)
    assert np.allclose(learnt.belief.concentration - learnt.concentration, counts)
    total = {"uniform": 1.0, "jeffreys": 2.5, "sparse": 1.0, 0.3: 1.5}.get(prior)
    if total is not None:
        assert np.allclose(learnt.concentration.sum(axis=-1), total)
    if prior == "sparse":
        seen = counts.sum(axis=1) > 0
        assert ((learnt.concentration[0, 0] > 0) == seen[0]).all()
        assert (learnt.concentration[4] > 0).all()  # nothing was seen there
    assert learnt.belief.observed.sum() == 200
    assert np.allclose(
        learnt.prior_share[:3], learnt.concentration[:3].sum(-1) / learnt.belief.concentration[:3].sum(-1)
    )


def test_the_fitted_weight_is_that_of_the_data():
    """By a plain sum over a grid of what each pair's counts would be worth: for `local`, with the next states that the
    other action led to."""
    rng = np.random.default_rng(1)
    s, a = rng.integers(0, 4, 60), rng.integers(0, 2, 60)
    log = log_of(s, a, 1.0 * s, (s + rng.integers(0, 2, 60)) % 4, n_states=4)
    counts, grid = log.transition_counts(), np.linspace(0.0, 12.0, 301)[1:]
    seen = counts > 0
    new = (sum(not seen[s, 1 - a, t] for s, a, t in np.argwhere(seen)) + 1) / (seen.sum() + 1)
    other = seen[:, ::-1] / seen[:, ::-1].sum(axis=-1, keepdims=True)
    for name, shares in (("empirical", np.full((4, 2, 4), 0.25)), ("local", (1 - new) * other + new / 4)):
        rows = list(zip(shares.reshape(8, 4), counts.reshape(8, 4), strict=True))
        total = np.array(
            [sum(stats.dirichlet_multinomial(w * m, int(n.sum())).logpmf(n) for m, n in rows) for w in grid]
        )
        chance = np.exp(total - total.max() - grid)
        weight = learn(log, prior=name).concentration[0, 0].sum()
        assert weight == pytest.approx((chance @ grid) / chance.sum(), rel=0.01)


def test_untried_pairs_are_expected_to_act_like_others_of_their_state():
    """Where two actions of a state lead to the same states, the third is expected to; where each leads elsewhere, it is
    expected to lead elsewhere."""
    rng = np.random.default_rng(2)
    s, a = rng.integers(0, 20, 2000), rng.integers(0, 2, 2000)
    for step, stays in ((rng.integers(0, 2, 2000), True), (1 + 3 * a, False)):
        learnt = learn(log_of(s, a, 1.0 * s, (s + step) % 20, n_states=20, n_actions=3))
        untried = learnt.belief.mean().transitions[5, 2]
        assert (untried[5] > 0.4) == stays
        if stays:
            assert learnt.name == "local"


def test_what_never_varies_is_believed_to_go_on_so_but_not_for_certain():
    """A cycle of eight states, walked ever longer: the suggested prior has a weight that falls as more is repeated, as
    1/Σ H(n−1) for n steps of each pair, to first order; where little was seen it is uniform."""

    def walked(times):
        s = np.arange(8 * times) % 8
        return learn(log_of(s, 0 * s, 1.0 * s, (s + 1) % 8))

    assert walked(1).name == "uniform"
    for times in (50, 500):
        learnt = walked(times)
        assert learnt.name == "empirical"
        harmonic = (1.0 / np.arange(1, times)).sum()
        assert learnt.concentration[0, 0].sum() == pytest.approx(1.0 / (8 * harmonic), rel=0.2)
        assert any("prior 'empirical' is taken" in note for note in learnt.notes)
    rng = np.random.default_rng(1)
    s, t = rng.integers(0, 8, 300), rng.integers(0, 8, 300)  # and what is spread more than expected is believed so
    spread = learn(log_of(s, 0 * s, 1.0 * s, t))
    assert spread.name in ("empirical", "local")
    assert spread.concentration[0, 0].sum() > 3.0


def test_where_every_row_pays_the_same_that_is_taken_for_known_and_said():
    learnt = learn(log_of([0, 1], [0, 0], [2.0, 2.0], [1, 0], n_actions=2))
    assert learnt.family == "mixed"
    assert (learnt.belief.rewards.mean()[:, 0] == 2.0).all()
    assert any("every row of the log pays 2" in note for note in learnt.notes)


def test_times_are_repeated_rows():
    s, a, t, rng = transitions(40)
    times = rng.integers(0, 4, 40)
    long = [np.repeat(x, times) for x in (s, a, t)]
    for rewards, paid in (
        (BetaRewards(1, 1), rng.random(40)),
        (DirichletRewards([0.0, 1.0, 2.0]), 1.0 * rng.integers(0, 3, 40)),
        (NormalRewards(0.0), rng.normal(size=40)),
        (KnownRewards(1.0), np.ones(40)),
        (
            MixedRewards([[1.0, np.nan]] * 4, DirichletRewards([0.0, 1.0])),
            np.where(a == 0, 1.0, rng.integers(0, 2, 40)),
        ),
    ):
        prior = DirichletBelief(4, 2, rewards=rewards)
        short = prior.update(s, a, paid, t, times=times)
        whole = prior.update(long[0], long[1], np.repeat(paid, times), long[2])
        assert np.allclose(short.concentration, whole.concentration)
        assert np.allclose(short.rewards.mean(), whole.rewards.mean())
        assert (short.observed == whole.observed).all()
    with pytest.raises(ObservationError, match="times has shape"):
        prior.update(s, a, paid, t, times=[1, 2])


def test_families_are_updated_as_row_by_row():
    s, a, t, rng = transitions(300)
    paid = 1.0 * rng.integers(0, 3, 300)
    log = log_of(s, a, paid, t)
    share = np.bincount(paid.astype(int)) / 300
    values = learn(log, rewards="values").belief
    slow = by_hand(DirichletBelief(4, 2, rewards=DirichletRewards([0.0, 1.0, 2.0], share)), s, a, paid, t)
    assert np.allclose(values.rewards.counts, slow.rewards.counts)
    assert np.allclose(values.concentration, slow.concentration)
    beta = learn(log, rewards="beta").belief.rewards
    assert beta.alpha.sum() + beta.beta.sum() == pytest.approx(8 + 300)
    many = rng.normal(1.0, 2.0, 300)
    normal = learn(log_of(s, a, many, t), rewards="normal").belief.rewards
    centre, spread = many.mean(), many.var()
    slow = by_hand(DirichletBelief(4, 2, rewards=NormalRewards(centre, rate=spread)), s, a, many, t).rewards
    for name in ("location", "strength", "shape", "rate"):
        assert np.allclose(getattr(normal, name), getattr(slow, name))


def test_rewards_that_never_vary_are_taken_as_known():
    s, a, t, _ = transitions(400)
    pair = learn(log_of(s, a, 1.0 * s + 10 * a, t))
    assert pair.family == "mixed"  # state 3 was never acted in
    assert pair.belief.mean().rewards[2, 1] == 12.0
    assert pair.belief.mean().rewards[3, 0] == pytest.approx((1.0 * s + 10 * a).mean())
    by_state = learn(log_of(s, a, 1.0 * (t == 3), t, n_states=5))
    assert by_state.family == "known"
    assert by_state.belief.rewards.rewards[0, 0].tolist() == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert any("never reached" in note for note in by_state.notes)
    both = learn(log_of(s, a, 1.0 * s + t, t))
    assert both.family == "mixed"
    seen = int(t[(s == 1) & (a == 0)][0])
    assert both.belief.rewards.known[1, 0, seen] == 1.0 + seen


def test_a_reward_on_the_way_out_is_not_earned_by_staying():
    """Every transition was the same each time, so nothing says whether the 20 are the pair's or the end's: a model
    where the step does not end must not pay them again and again."""
    s, a, t = [0, 1] * 30, [0, 1] * 30, [1, 2] * 30
    log = log_of(s, a, [-1.0, 20.0] * 30, t, terminated=[False, True] * 30)
    rewards = learn(log).belief.rewards
    assert rewards.known[1, 1].tolist() == [9.5, 9.5, 20.0]
    assert rewards.known[0, 0].tolist() == [-1.0, -1.0, -1.0]
    assert np.isnan(rewards.known[0, 1]).all()


def test_rewards_that_vary_are_not_known():
    s, a, t, rng = transitions(300)
    paid = rng.integers(0, 2, 300) * 1.0
    log = log_of(s, a, paid, t)
    assert learn(log).family == "values"
    with pytest.raises(BeliefError, match=r"column 'reward': state .* paid 0 and 1"):
        learn(log, rewards="known")
    assert learn(log_of(s, a, rng.normal(size=300), t)).family == "normal"


def test_given_rewards_are_known_and_the_others_learnt():
    s, a, t, rng = transitions(300)
    paid = np.where(a == 0, 7.0, rng.integers(0, 2, 300))
    known = np.full((4, 2), np.nan)
    known[:, 0] = 7.0
    learnt = learn(log_of(s, a, paid, t), known=known)
    rewards = learnt.belief.mean().rewards
    assert np.allclose(rewards[:, 0], 7.0)
    here = (s == 1) & (a == 1)
    prior = np.array([(paid == x).mean() for x in (0.0, 1.0, 7.0)])
    after = prior + np.array([(paid[here] == x).sum() for x in (0.0, 1.0, 7.0)])
    assert rewards[1, 1] == pytest.approx(after @ [0.0, 1.0, 7.0] / after.sum())


def test_what_does_not_fit_is_refused():
    s, a, t, _ = transitions(50)
    log = log_of(s, a, 1.0 * s, t)
    for options, message in (
        ({"prior": "flat"}, "prior is 'flat'"),
        ({"rewards": "gamma"}, "rewards is 'gamma'"),
        ({"terminal": [0]}, "rows of the log start in it"),
        ({"known": np.zeros((2, 2))}, "known has shape"),
        ({"rewards": 3}, "choose one of"),
    ):
        with pytest.raises(BeliefError, match=message):
            learn(log, **options)
    with pytest.raises(BeliefError, match="give a log"):
        learn(3)
    with pytest.raises(FileError, match=r"log\.csv does not exist"):
        learn("log.csv")


def test_only_tried_actions_are_offered():
    log = log_of([0, 0, 1], [0, 0, 1], [0.0, 0.0, 0.0], [1, 1, 2], n_states=3)
    belief = learn(log, only_tried=True, rewards="known").belief
    assert belief.available.tolist() == [[True, False], [False, True], [True, True]]


def test_the_frozen_lake_is_not_worth_more_than_it_can_be():
    """Marked ends: a log of the lake once was worth 4.5 to 6.8, where 0.2 is the most that anyone can earn."""
    log = roll_out(gymnasium.make("FrozenLake-v1"), steps=4000, seed=2)
    belief = DirichletBelief.from_log(log)
    assert np.flatnonzero(belief.terminal).tolist() == [5, 7, 11, 12, 15]
    from beliefbound import optimal_values

    best = optimal_values(belief.sample(200, 1), discount=0.95).values[:, 0]
    assert 0.1 < best.mean() < 0.25


@pytest.mark.parametrize("kind", ["known", "arrival", "beta", "values", "mixed", "normal"])
def test_a_belief_is_read_back_bit_for_bit(tmp_path, kind):
    rewards = {
        "known": KnownRewards([[1.0, 2.0]] * 3),
        "arrival": KnownRewards(np.arange(18.0).reshape(3, 2, 3)),
        "beta": BetaRewards(2.0, 3.0, low=-1.0, high=4.0),
        "values": DirichletRewards([0.0, 1.0, 5.0]),
        "mixed": MixedRewards([[1.0, np.nan]] * 3, DirichletRewards([0.0, 1.0])),
        "normal": NormalRewards(1.0),
    }[kind]
    belief = DirichletBelief(3, 2, rewards=rewards, terminal=[2], available=[[1, 1], [1, 0], [1, 1]], initial=1)
    belief = belief.update([0, 1], [0, 0], [1.0, 1.0], [1, 2])
    save_belief(tmp_path / "posterior.npz", belief)
    same = load_belief(tmp_path / "posterior.npz")
    for name in ("concentration", "terminal", "available", "initial", "observed"):
        assert np.array_equal(getattr(same, name), getattr(belief, name))
    assert type(same.rewards) is type(belief.rewards)
    assert np.array_equal(same.rewards.mean(), belief.rewards.mean())
    one, other = (x.sample(3, 7) for x in (belief, same))
    assert np.array_equal(one.rewards, other.rewards)


def test_files_that_are_no_beliefs_are_refused(tmp_path):
    file = tmp_path / "posterior.npz"
    np.savez(file, concentration=np.ones((2, 1, 2)))
    with pytest.raises(FileError, match="no header"):
        load_belief(file)
    np.savez(file, header=np.array([object()], dtype=object))
    with pytest.raises(FileError, match="no array|only plain numbers"):
        load_belief(file)
    save_belief(file, DirichletBelief(2, 1))
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(FileError, match="damaged"):
        load_belief(file)


def test_the_posterior_of_a_log_is_the_prior_of_an_agent(tmp_path):
    environment = make_env("replacement:4")
    rng = np.random.default_rng(0)
    from beliefbound.lab.envs import gymnasium_env

    log = roll_out(gymnasium_env(environment), steps=300, seed=1, rng=rng)
    save_belief(tmp_path / "posterior.npz", DirichletBelief.from_log(log))
    agent = make_agent("mcbrl:n=4", environment, belief=load_belief(tmp_path / "posterior.npz"))
    episode = run_episode(agent, DiscreteEnv(gymnasium_env(environment)), steps=40, seed=3)
    assert episode.rewards.mean() > 6.5  # never replacing pays 7 or more a step, replacing pays 2


def test_checks_notice_what_is_wrong():
    rng = np.random.default_rng(5)
    n = 4000
    s = np.zeros(n, int)
    drifting = (rng.random(n) < np.linspace(0.2, 0.8, n)).astype(int)
    log = log_of(s, s, np.zeros(n), drifting, n_states=2)
    found = {check.name: check for check in check_learnt(log, learn(log))}
    assert found["chances are the same early and late"].p < 1e-6
    t = rng.integers(0, 2, n)
    paid = (rng.random(n) < 0.2 + 0.6 * t).astype(float)
    log = log_of(s, s, paid, t, n_states=2)
    found = {check.name: check for check in check_learnt(log, learn(log))}
    assert found["rewards do not depend on the next state"].p < 1e-6
    assert not found["chances are the same early and late"].suspicious
    many = 60  # sixty states, each led to one: a flat prior of weight 30 expects more
    log = log_of(np.arange(many), np.zeros(many, int), np.zeros(many), np.roll(np.arange(many), 1))
    log = log_of(
        np.tile(np.arange(many), 5),
        np.zeros(5 * many, int),
        np.zeros(5 * many),
        np.tile(np.roll(np.arange(many), 1), 5),
    )
    assert check_learnt(log, learn(log, prior="jeffreys"))[0].suspicious
    assert not check_learnt(log, learn(log, prior="sparse"))[0].suspicious


def test_p_values_are_not_small_too_often():
    """Sixty logs of constant chances: p-values below 0.05 come up three times on average, ten times hardly ever."""
    rng, small = np.random.default_rng(8), 0
    for _ in range(60):
        t = (rng.random(300) < 0.3).astype(int)
        log = log_of(np.zeros(300, int), np.zeros(300, int), np.zeros(300), t, n_states=2)
        small += check_learnt(log, learn(log))[1].p < 0.05
    assert small < 10
