"""Which policy as weights move: against expectations of reweighted beliefs, and counts of models, one by one."""

import numpy as np
import pytest

from beliefbound import FiniteBelief, StationaryPolicy, bracket
from beliefbound.base.errors import ParameterError, PolicyError
from beliefbound.bounds import sensitivity
from beliefbound.models.evaluation import evaluate
from support.oracles import random_models


def drawn(seed, n_models=4, n_states=3, n_actions=3):
    rng = np.random.default_rng(seed)
    p, r, w, _ = random_models(rng, n_models, n_states, n_actions)
    names = tuple(f"m{k}" for k in range(n_models))
    belief = FiniteBelief(p, r, w, initial=0, reward_signal="unobserved", model_names=names)
    every = np.array([*np.ndindex(*n_states * [n_actions])])
    rules = {f"rule {k}": StationaryPolicy(every[i]) for k, i in enumerate(rng.choice(len(every), 5, replace=False))}
    return belief, rules, sensitivity(rules, belief, discount=0.9)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_policy_is_that_of_the_reweighted_belief(seed):
    belief, rules, found = drawn(seed)
    table = found.two_way("m1", 3, points=6)
    assert len(table["best"]) == 21  # of a triangle
    for x, y, best, value, ahead in zip(*table.values(), strict=True):
        rest = belief.weights * [1, 0, 1, 0]
        weights = rest * (1 - x - y) / rest.sum() + np.array([0, x, 0, y])
        other = belief.reweight(weights)
        values = [float(other.weights @ evaluate(rule, other, discount=0.9)[:, 0]) for rule in rules.values()]
        assert value == pytest.approx(max(values), rel=1e-12)
        assert best == [*rules][int(np.argmax(values))]
        assert ahead == pytest.approx(max(values) - sorted(values)[-2], abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_acceptability_counts_the_models_in_which_a_policy_is_the_best(seed):
    belief, rules, found = drawn(seed)
    values = np.array([evaluate(rule, belief, discount=0.9)[:, 0] for rule in rules.values()])
    winners = values.argmax(axis=0)
    counted = [sum(w for m, w in enumerate(belief.weights) if winners[m] == k) for k in range(len(rules))]
    assert found.acceptability() == pytest.approx(counted)
    curve = found.one_way("m2", points=11)
    shares = np.array([curve[f"acceptable {rule}"] for rule in rules])
    assert shares.sum(axis=0) == pytest.approx(1.0)
    assert shares[winners[2], -1] == pytest.approx(1.0)  # where the model is known
    for t, x in enumerate(curve["weight"]):
        rest = np.where(np.arange(4) == 2, 0.0, belief.weights)
        weights = rest * (1 - x) / rest.sum() + np.where(np.arange(4) == 2, x, 0.0)
        assert shares[:, t] == pytest.approx([weights[winners == k].sum() for k in range(len(rules))])


def test_ties_are_shared_and_the_first_is_the_best():
    belief, rules, _ = drawn(1)
    twice = sensitivity({"a": rules["rule 0"], "b": rules["rule 0"]}, belief, discount=0.9)
    assert twice.acceptability() == pytest.approx([0.5, 0.5])
    assert twice.best() == 0
    assert twice.two_way(0, 1)["ahead"] == pytest.approx(0.0)


@pytest.mark.full
def test_a_policy_that_learns_is_compared_by_its_exact_values():
    belief, rules, _ = drawn(2)
    certified = bracket(belief, discount=0.9, effort=5, rng=1)
    found = sensitivity({"certified": certified.policy, **rules}, belief, discount=0.9)
    assert certified.lower.value - 1e-9 <= found.expected()[0] <= certified.upper.value + 1e-9
    assert found.best() == 0  # the best now, by the lower bound of all tables


@pytest.mark.full
def test_pictures_and_words():
    _, rules, found = drawn(3)
    assert found.plot("m1").get_xlabel() == "weight of model m1 (line: now)"
    labels = [text.get_text() for text in found.plot_two_way(0, "m2").get_legend().get_texts()]
    assert labels[-1] == "now"
    assert set(labels[:-1]) == set(found.two_way(0, 2, 61)["best"])
    assert all(rule in found.summary() and rule in found._repr_html_() for rule in rules)


def test_files_of_policies_are_compared_as_they_are(tmp_path):
    belief, rules, found = drawn(5)
    rules["rule 0"].save(tmp_path / "rule.json")
    (tmp_path / "rule.csv").write_text(
        "idstate,idaction\n" + "".join(f"{s},{a}\n" for s, a in enumerate(rules["rule 0"].actions))
    )
    both = sensitivity({"json": tmp_path / "rule.json", "csv": str(tmp_path / "rule.csv")}, belief, discount=0.9)
    assert both.values == pytest.approx(found.values[[0, 0]])


def test_what_cannot_be_compared_is_refused():
    belief, rules, found = drawn(4)
    with pytest.raises(ParameterError, match="no model 'm9'"):
        found.one_way("m9")
    with pytest.raises(ParameterError, match="two of three models"):
        found.two_way(1, "m1")
    for given in ({}, 3, [rules]):
        with pytest.raises(ParameterError, match="give some by name"):
            sensitivity(given, belief, discount=0.9)

    class Random:
        def reset(self, seed): ...
        def act(self, state):
            return 0

        def observe(self, state, action, reward, next_state): ...

    with pytest.raises(PolicyError, match="'mine' on each model is not exact"):
        sensitivity({"mine": Random()}, belief, discount=0.9)
    two = belief.reweight([1.0, 0.0, 0.0, 0.0])  # the rest has no proportions: it is shared equally
    assert sensitivity(rules, two, discount=0.9).moved({0: 0.4}).tolist() == pytest.approx([0.4, 0.2, 0.2, 0.2])
