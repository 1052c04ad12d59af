"""Sweeps and draws on an accelerator: a stage of MMBI by `mmbi`, MSBI end to end, and whether policies are those of the
processor. `python -m benchmarks.accelerator cuda` names the device; where there is none, nothing is measured.
"""

import sys
import time

import numpy as np

import beliefbound as bb
from beliefbound.base.errors import BeliefboundError

MODELS, STATES, ACTIONS = 4096, 200, 4
STAGES = (20, 220)


def random_belief(n_models: int, n_states: int, n_actions: int) -> bb.FiniteBelief:
    rng = np.random.default_rng(1)
    p = rng.random((n_models, n_states, n_actions, n_states))
    p /= p.sum(axis=-1, keepdims=True)
    return bb.FiniteBelief(p, rng.random(p.shape[:3]), reward_signal="unobserved", initial=0)


def stage_seconds(belief: bb.FiniteBelief, **knobs) -> float:
    """Of one stage of `mmbi`: what 200 more of them take, the least of several."""

    def seconds(horizon: int) -> float:
        begin = time.perf_counter()
        bb.mmbi(belief, discount=0.95, horizon=horizon, **knobs)
        return time.perf_counter() - begin

    seconds(5)
    return min(seconds(STAGES[1]) - seconds(STAGES[0]) for _ in range(3)) / (STAGES[1] - STAGES[0])


def sweeps(device: str) -> None:
    begin = time.perf_counter()
    belief = random_belief(MODELS, STATES, ACTIONS)
    nbytes = belief.transitions.nbytes
    print(f"{MODELS} models x {STATES} states x {ACTIONS} actions, {nbytes / 1e9:.1f} GB, made and checked in", end=" ")
    print(f"{time.perf_counter() - begin:.1f} s")
    small = bb.FiniteBelief(belief.transitions[:64], belief.rewards[:64], reward_signal="unobserved", initial=0)
    here = bb.mmbi(small, discount=0.95, horizon=60)
    for dtype in ("float64", "float32"):
        begin = time.perf_counter()
        there = belief.on(device, dtype)
        sent = time.perf_counter() - begin
        seconds = stage_seconds(there)
        read = nbytes / (2 if dtype == "float32" else 1)
        print(
            f"  {dtype}: sent in {sent:.1f} s; a stage {1e3 * seconds:.3f} ms, {read / seconds / 1e12:.2f} TB/s",
            end="; ",
        )
        same = bb.mmbi(small, discount=0.95, horizon=60, device=device, dtype=dtype)
        print(f"{(same.policy.actions == here.policy.actions).mean():.6f} of the processor's actions", end=", ")
        print(f"values within {np.abs(same.model_values - here.model_values).max():.2g}, said: {same.residual:.2g}")
        del there
    begin = time.perf_counter()
    bb.mmbi(belief, discount=0.95, horizon=2)
    one = time.perf_counter() - begin
    begin = time.perf_counter()
    bb.mmbi(belief, discount=0.95, horizon=4)
    two = time.perf_counter() - begin
    print(f"  the processor: a stage {1e3 * (two - one) / 2:.0f} ms")
    for name, plan in (
        ("cadp over 20 decisions", lambda b: bb.cadp(b, discount=0.95, horizon=20, restarts=False)),
        ("e_max over 20 decisions", lambda b: bb.e_max(b, discount=0.95, horizon=20)),
        ("a policy valued for ever", lambda b: bb.evaluate(here.policy.first_step(), b, discount=0.95)),
    ):
        there = belief.on(device)
        plan(there)
        begin = time.perf_counter()
        plan(there)
        print(f"  {name}: {time.perf_counter() - begin:.2f} s")


def draws(device: str, n_here: int = 1) -> None:
    """MSBI on draws of a posterior, twice on the device, where the first call compiles and loads, and `n_here` times on
    the processor."""
    n_states, n_actions, n = 100, 4, 10_000
    rng = np.random.default_rng(2)
    states, arrivals = rng.integers(n_states, size=(2, 4000))
    actions, paid = rng.integers(n_actions, size=4000), rng.integers(2, size=4000).astype(float)
    belief = bb.DirichletBelief(n_states, n_actions, concentration=1.0 / n_states, initial=0)
    belief = belief.update(states, actions, paid, arrivals)
    for knobs in [{"device": device}] * 2 + [{}] * n_here:
        begin = time.perf_counter()
        plan = bb.msbi(belief, discount=0.95, horizon=100, n_models=n, rng=1, **knobs)
        where = knobs.get("device", "the processor")
        print(f"  msbi, {n} draws of {n_states} x {n_actions}, 100 decisions, 1000 fresh models, {where}:", end=" ")
        print(f"{time.perf_counter() - begin:.2f} s, value {plan.value():.4f}", flush=True)
    finite = belief.sample(300, 5)
    here, there = (bb.mmbi(finite, discount=0.95, horizon=100, **k) for k in ({}, {"device": device}))
    print(f"  mmbi on 300 of them: {(here.policy.actions == there.policy.actions).mean():.6f} of the actions alike")


def larger_than_memory(device: str) -> None:
    """As if the card had little memory: the models are sent at every stage."""
    from unittest.mock import patch

    from beliefbound.models.device import Device

    belief = random_belief(512, STATES, ACTIONS)
    with patch.object(Device, "free_bytes", lambda self: belief.transitions.nbytes / 2):
        there = belief.on(device)
    held = there.models.transitions._blocks
    seconds = stage_seconds(there)
    print(f"  {len(held)} blocks of 512 models, half of them sent at every stage: {1e3 * seconds:.1f} ms a stage")


def main(device: str = "cuda") -> None:
    try:
        bb.FiniteBelief([[[[1.0]]]], [[[1.0]]]).on(device)
    except BeliefboundError as missing:
        print(f"not measured: {missing}")
        return
    sweeps(device)
    draws(device)
    larger_than_memory(device)


if __name__ == "__main__":
    main(*sys.argv[1:])
