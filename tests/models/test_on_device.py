"""What runs on an accelerator gives what the processor gives. Here by NumPy, by PyTorch too where it is installed, and
on a card where there is one."""

import importlib.util
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import beliefbound as bb
from beliefbound.base.errors import BeliefboundError, ModelError, ParameterError
from beliefbound.beliefs.device_draws import sample_on
from beliefbound.models.device import Device
from beliefbound.models.on_device import OnDevice
from support.oracles import random_models


def installed(*names):
    return all(importlib.util.find_spec(name) is not None for name in names)


def card():
    if not installed("torch", "array_api_compat"):
        return False
    import torch

    return torch.cuda.is_available()


TORCH = pytest.mark.skipif(not installed("torch", "array_api_compat"), reason="PyTorch is not installed: extra `gpu`")
JAX = pytest.mark.skipif(not installed("jax"), reason="JAX is not installed")
CARD = pytest.mark.skipif(not card(), reason="there is no GPU here")
DEVICES = ["numpy", *(pytest.param(name, marks=mark) for name, mark in (("cpu", TORCH), ("jax", JAX), ("cuda", CARD)))]


@pytest.fixture
def belief(monkeypatch):
    monkeypatch.setattr("beliefbound.base.limits.LANES_BYTES", 0)
    p, r, w, p0 = random_models(np.random.default_rng(3), 5, 6, 3)
    available = np.random.default_rng(4).random((6, 3)) < 0.8
    available[:, 0] = True
    p[:, ~available], r[:, ~available] = 0.0, 0.0
    return bb.FiniteBelief(p, r, w, reward_signal="unobserved", initial=p0, available=available)


@pytest.mark.parametrize("device", DEVICES)
def test_planners_give_what_they_give_here(belief, device):
    there = belief.on(device)
    assert isinstance(there.models.transitions, OnDevice)
    for plan in (
        lambda b, **k: bb.mmbi(b, discount=0.9, horizon=7, **k),
        lambda b, **k: bb.mmbi(b, discount=0.9, epsilon=0.1, **k),
        lambda b, **k: bb.mmbi(b, discount=0.9, **k),
        lambda b, **k: bb.cadp(b, discount=0.9, horizon=7, **k),
        lambda b, **k: bb.cadp(b, discount=0.9, **k),
    ):
        here, by_belief, by_name = plan(belief), plan(there), plan(belief, device=device)
        for found in (by_belief, by_name):
            assert np.array_equal(found.policy.actions, here.policy.actions)
            np.testing.assert_allclose(found.model_values, here.model_values, rtol=1e-12)
    for horizon in (6, None):
        for bound in (bb.e_max, bb.qmdp):
            one, two = (bound(b, discount=0.9, horizon=horizon) for b in (belief, there))
            assert two.value == pytest.approx(one.value, rel=1e-9)
        policy = bb.mmbi(belief, discount=0.9, horizon=horizon).policy
        one, two = (bb.evaluate(policy, b, discount=0.9, horizon=horizon) for b in (belief, there))
        np.testing.assert_allclose(two, one, rtol=1e-11)
    np.testing.assert_allclose(there.mean().transitions, belief.mean().transitions, rtol=1e-13)
    assert there.update(0, 0, None, 1).weights.tolist() == belief.update(0, 0, None, 1).weights.tolist()


def test_whatever_else_is_asked_of_models_on_a_device_is_answered(belief, tmp_path):
    there = belief.on("numpy")
    assert there.on("numpy").models is there.models
    found = [bb.bracket(each, discount=0.9, horizon=3, effort=4, rng=1) for each in (belief, there)]
    assert found[1].lower.value == pytest.approx(found[0].lower.value, rel=1e-9)
    assert found[1].upper.value == pytest.approx(found[0].upper.value, rel=1e-9)
    back = pickle.loads(pickle.dumps(there))
    assert np.array_equal(back.transitions, belief.transitions)
    bb.write_models(tmp_path / "models", there, discount=0.9)
    assert there.sample(3, 1).n_models == 3
    assert there.models.compressed().shape == (5 * 6 * 3, 6)


@pytest.mark.parametrize("device", DEVICES)
def test_models_that_do_not_fit_are_sent_in_blocks(belief, device, monkeypatch):
    monkeypatch.setattr(Device, "free_bytes", lambda self: (4 * 8 * 6 * 6 * 4 + 8 * 8 * 5 * 6 * 5 + 8) / 0.9)
    there = belief.on(device)
    kept = there.models.transitions._blocks
    assert [len(block) for block in kept] == [2, 1, 1, 1]
    assert all(isinstance(block, np.ndarray) or str(block.device) == "cpu" for block in kept[1:])
    here = bb.cadp(belief, discount=0.9, horizon=7), bb.mmbi(belief, discount=0.9, horizon=7)
    found = bb.cadp(there, discount=0.9, horizon=7), bb.mmbi(there, discount=0.9, horizon=7)
    for one, two in zip(here, found, strict=True):
        assert np.array_equal(one.policy.actions, two.policy.actions)
        np.testing.assert_allclose(two.model_values, one.model_values, rtol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_single_precision_is_off_by_no_more_than_it_says(belief, device):
    plan = bb.mmbi(belief, discount=0.95, horizon=60, device=device, dtype="float32")
    exact = bb.evaluate(plan.policy, belief, discount=0.95)
    off = np.abs(plan.model_values - exact).max()
    assert 0.0 < off <= plan.residual < 1e-3 * np.abs(exact).max()
    assert f"off by at most {plan.residual:.3g}" in plan.guarantee
    again = bb.mmbi(belief.on(device), discount=0.95, horizon=60, device=device, dtype="float32")
    assert again.residual == plan.residual  # sent anew, though it is there in double precision
    forever = bb.mmbi(belief, discount=0.9, device=device, dtype="float32")  # valued in double precision
    np.testing.assert_allclose(forever.model_values, bb.evaluate(forever.policy, belief, discount=0.9), rtol=1e-11)


@pytest.mark.parametrize("device", DEVICES)
def test_draws_on_a_device_have_the_law_of_draws_here(device):
    """Means and variances of 20 000 draws, each within 5 standard errors: false alarms below 1e-4 altogether."""
    alpha = np.array([[[0.02, 0.5, 3.0]], [[0.0, 1.0, 1.0]], [[1e-9, 1e-9, 1e-9]]])
    belief = bb.DirichletBelief(3, 1, concentration=alpha, rewards=bb.KnownRewards(np.zeros((3, 1))))
    n = 20_000
    p = sample_on(belief, n, np.random.default_rng(1), Device.named(device)).transitions[:, :, 0]
    np.testing.assert_allclose(p.sum(axis=-1), 1.0, rtol=1e-14)
    assert (p[:, 1, 0] == 0.0).all()
    total = alpha[:, 0].sum(axis=-1, keepdims=True)
    mean = alpha[:, 0] / total
    variance = mean * (1 - mean) / (total + 1)
    assert (np.abs(p.mean(axis=0) - mean) <= 5.0 * np.sqrt(variance / n) + 1e-12).all()
    assert (np.abs(p.var(axis=0) - variance) <= 5.0 * np.sqrt(2.0 / n) * np.maximum(variance, 0.01)).all()


@pytest.mark.parametrize("device", DEVICES)
def test_msbi_draws_sweeps_and_values_there(device):
    belief = bb.DirichletBelief(4, 2, terminal=[3]).update([0, 1, 2], [0, 1, 0], [1.0, 0.0, 1.0], [1, 2, 3])
    found = [bb.msbi(belief, discount=0.9, horizon=15, n_models=50, device=device, rng=7) for _ in range(2)]
    assert np.array_equal(found[0].model_values, found[1].model_values)
    fresh = bb.evaluate(found[0].policy, belief.sample(4000, 3), discount=0.9)
    spread = 5.0 * (fresh.std(axis=0) / np.sqrt(4000) + found[0].model_values.std(axis=0) / np.sqrt(1000))
    assert (np.abs(found[0].values - fresh.mean(axis=0)) <= spread + 1e-12).all()  # false alarms below 1e-5
    paid = np.random.default_rng(1).random((4, 2, 4))
    arrival = bb.DirichletBelief(4, 2, rewards=bb.KnownRewards(paid))
    models = sample_on(arrival, 3, np.random.default_rng(1), Device.named(device))
    np.testing.assert_allclose(models.rewards, (models.transitions * paid).sum(axis=-1), rtol=1e-12)
    finite = belief.sample(5, 2)  # drawn here, and sent
    assert bb.msbi(finite, discount=0.9, horizon=3, n_models=4, n_evaluate=6, device=device, rng=1).belief.n_models == 6


def test_mistakes_are_answered_before_anything_is_sent(belief, monkeypatch):
    for device, words in (("gpu", "give cuda, cuda:1, cpu"), ("cuda:x", "cuda:1|not installed"), (3, "give cuda")):
        with pytest.raises(ParameterError, match=words):
            belief.on(device)
    with pytest.raises(ParameterError, match="dtype is 'float16'; give one of: float64, float32"):
        belief.on("numpy", dtype="float16")
    with pytest.raises(ParameterError, match="there is no device"):
        bb.mmbi(belief, discount=0.9, dtype="float32")
    sparse = bb.FiniteBelief([belief.mean().to_sparse().transitions], belief.rewards[:1], available=belief.available)
    with pytest.raises(ModelError, match="sparse models are swept on the processor"):
        bb.mmbi(sparse, discount=0.9, device="numpy")
    monkeypatch.setattr(Device, "free_bytes", lambda self: 4000.0)
    with pytest.raises(ParameterError, match=r"5 models of 6 states and 3 actions need .* GiB on numpy"):
        belief.on("numpy")
    with pytest.raises(ParameterError, match=r"drawing 50 models .* needs .* GiB on numpy"):
        bb.msbi(bb.DirichletBelief(4, 2), discount=0.9, horizon=5, n_models=50, device="numpy", rng=1)


def test_without_a_library_or_a_card_the_error_names_what_is_missing(belief, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(BeliefboundError, match=r"needs torch, which is not installed; .*beliefbound\[gpu\]"):
        bb.mmbi(belief, discount=0.9, device="cuda")


def test_where_there_is_no_card_or_not_as_many_that_is_said(belief, monkeypatch):
    """By a stand-in for PyTorch: what it answers on a machine without a card, and on one with two."""
    modules, cards = __import__("sys").modules, SimpleNamespace(is_available=lambda: False, device_count=lambda: 2)

    def device(text):
        kind, _, number = text.partition(":")
        return SimpleNamespace(type=kind, index=int(number) if number else None)

    monkeypatch.setitem(modules, "torch", SimpleNamespace(device=device, cuda=cards))
    monkeypatch.setitem(modules, "array_api_compat", SimpleNamespace())
    monkeypatch.setitem(modules, "array_api_compat.torch", SimpleNamespace())
    with pytest.raises(ParameterError, match="'cuda': PyTorch sees no GPU here; leave the device out"):
        bb.mmbi(belief, discount=0.9, device="cuda")
    cards.is_available = lambda: True
    with pytest.raises(ParameterError, match="'cuda:2': there are 2 GPUs, from cuda:0 on"):
        belief.on("cuda:2")
