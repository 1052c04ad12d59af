"""The solver of optimistic agents: against linear programs, a plain twin, and values worked out for known problems."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from beliefbound.kernels.planning.optimism import BALL, MEAN, SHIFT, best_in_ball, optimistic_model, solve, sort_states
from beliefbound.lab.envs import make_env
from support import optimism_twins as twin

KINDS = {"mean": MEAN, "ball": BALL, "shift": SHIFT}


def in_ball(p, v, radius):
    order = np.arange(len(v))
    sort_states(v, order)
    assert (np.diff(v[order]) >= 0).all()
    return best_in_ball(p, v, order, radius, False)


def in_ball_by_program(p, v, radius):
    """Maximise `q·v`: variables q and the excess `d ≥ |q − p|`."""
    n = len(p)
    eye = np.eye(n)
    found = linprog(
        np.concatenate([-v, np.zeros(n)]),
        A_ub=np.vstack([np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.append(np.zeros(n), np.ones(n))[None]]),
        b_ub=np.concatenate([p, -p, [radius]]),
        A_eq=np.append(np.ones(n), np.zeros(n))[None],
        b_eq=[1.0],
        bounds=(0, 1),
    )
    assert found.success
    return -found.fun


def test_the_ball_is_a_linear_program():
    rng = np.random.default_rng(1)
    for case in range(60):
        n = int(rng.integers(1, 8))
        p = rng.dirichlet(np.full(n, 0.5))
        if case % 3 == 0:
            p = np.bincount(rng.integers(n, size=4), minlength=n) / 4
        v = rng.normal(size=n).round(1)  # ties are common
        radius = float(rng.choice([0.0, 0.05, 0.4, 1.3, 2.0, 5.0]))
        exact = in_ball_by_program(p, v, radius)
        assert in_ball(p, v, radius) == pytest.approx(exact, abs=1e-9)
        assert float(twin.best_in_ball(p, v, radius) @ v) == pytest.approx(exact, abs=1e-9)


def test_the_ball_of_the_worked_example():
    p, v = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 2.0])
    assert in_ball(p, v, 0.4) == pytest.approx(1.1)
    np.testing.assert_allclose(twin.best_in_ball(p, v, 0.4), [0.3, 0.3, 0.4])
    assert in_ball(np.zeros(3), v, 2.0) == 2.0  # nothing seen: anywhere


@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_equal_those_of_a_plain_twin(kind):
    rng = np.random.default_rng(2)
    for S, A in ((1, 1), (3, 2), (6, 3)):
        available = rng.random((S, A)) < 0.7
        available[:, 0] = True
        model = optimistic_model(available, kind=KINDS[kind], discount=0.9, cap=9.5)
        model.p[:] = rng.dirichlet(np.full(S, 0.5), size=(S, A))
        model.p[rng.random((S, A)) < 0.2] = 0.0
        model.r[:] = rng.random((S, A))
        model.width[:] = rng.random((S, A))
        v = model.v.copy()
        for _ in range(40):
            made = solve(model, 1, 0.0)
            v, actions = twin.sweep(kind, model.p, model.r, model.width, available, 0.9, 9.5, v)
            np.testing.assert_allclose(model.v, v, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(model.actions, actions)
            assert made == 1


def test_rows_that_are_blank_count_as_zeros_and_are_not_read():
    rng = np.random.default_rng(3)
    S, A = 12, 3
    p, r, width = rng.dirichlet(np.full(S, 0.5), size=(S, A)), rng.random((S, A)), 3 * rng.random((S, A))
    blank = rng.random((S, A)) < 0.5
    for kind in (MEAN, BALL):
        values = []
        for known, entry in ((False, 0.0), (True, np.nan)):
            model = optimistic_model(np.ones((S, A), bool), kind=kind, discount=0.9, cap=9.5)
            model.p[:], model.r[:], model.width[:], model.blank[:] = p, r, width, blank & known
            model.p[blank] = entry
            solve(model, 40, 0.0)
            values.append((model.v.copy(), model.actions.copy()))
        np.testing.assert_array_equal(values[0], values[1])


def test_the_tolerance_bounds_the_error():
    chain = make_env("chain").mdp
    model = chain_model(MEAN)
    made = solve(model, 10_000, 1e-3)
    assert 50 < made < 1000
    exact = chain_model(MEAN)
    solve(exact, 100_000, 0.0)
    assert np.abs(model.v - exact.v).max() <= 1e-3 * 0.95 / 0.05
    assert np.abs(exact.v - (chain.rewards + 0.95 * chain.models.dense()[0] @ exact.v).max(axis=1)).max() < 1e-10


def chain_model(kind, width=0.0, bonus=0.0, floor=0.0):
    chain = make_env("chain").mdp
    model = optimistic_model(chain.available, kind=kind, discount=0.95)
    model.p[:] = chain.models.dense()[0] + floor
    model.r[:] = chain.rewards + bonus
    model.width[:] = width
    return model


PLAIN = [61.3794816, 64.8912896, 69.5120896, 75.5920896, 83.5920896]


@pytest.mark.parametrize(
    ("what", "model", "values"),
    [
        ("optimal", chain_model(MEAN), PLAIN),
        ("MBIE, radius 0", chain_model(BALL), PLAIN),
        ("MBIE, radius .2", chain_model(BALL, 0.2), [103.5834, 107.0952, 111.7160, 117.7960, 125.7960]),
        ("BEB", chain_model(MEAN, bonus=2.5 / 11), np.add(PLAIN, 4.545455)),
        ("BOLT, η = 0", chain_model(SHIFT), PLAIN),
        (
            "BOLT, η = 1",
            chain_model(SHIFT, 1 / 11, floor=1e-13),
            [78.977740, 81.616213, 85.435056, 90.962329, 98.962329],
        ),
        # what cannot happen is not hoped for: slips are (back, start) instead of anywhere
        ("BOLT within the support", chain_model(SHIFT, 1 / 11), None),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_chain_has_the_published_values(what, model, values):
    solve(model, 100_000, 1e-12)
    if values is not None:
        np.testing.assert_allclose(model.v, values, atol=1e-4)
    else:
        assert (model.v > np.array(PLAIN) + 1).all()
        assert (model.v < [78.97, 81.61, 85.43, 90.96, 98.96]).all()


@pytest.mark.parametrize(("radius", "gain"), [(0.0, 0.428622434), (0.1, 0.533333333), (0.5, 0.8)])
def test_extended_value_iteration_finds_the_gain_of_riverswim(radius, gain):
    river = make_env("riverswim").mdp
    model = optimistic_model(river.available, kind=BALL, discount=1.0, relative=True)
    model.p[:], model.r[:], model.width[:] = river.models.dense()[0], river.rewards, radius
    solve(model, 100_000, 1e-11)
    assert model.change.mean() == pytest.approx(gain, abs=1e-9)
    assert model.change[1] - model.change[0] <= 1e-11
    assert math.isclose(model.v.min(), 0.0, abs_tol=1.0)


def test_solving_stops_at_the_cap_on_sweeps():
    assert solve(chain_model(MEAN), 7, 0.0) == 7
