"""MMBI against NumPy and against memory bandwidth; value iteration against QuantEcon and pymdptoolbox."""

import tracemalloc
import warnings

import numpy as np
from numba import njit

from beliefbound import MDP, FiniteBelief, mmbi, value_iteration
from beliefbound.lab.envs import make_env
from beliefbound.models.convert import to_mdptoolbox, to_quantecon
from benchmarks.timing import race, show


def random_belief(n_models: int, n_states: int, n_actions: int) -> FiniteBelief:
    rng = np.random.default_rng(1)
    p = rng.random((n_models, n_states, n_actions, n_states))
    p /= p.sum(axis=-1, keepdims=True)
    rewards = rng.random((n_models, n_states, n_actions))
    return FiniteBelief(p, rewards, reward_signal="unobserved")


def numpy_mmbi(belief: FiniteBelief, discount: float, horizon: int, backup: str) -> np.ndarray:
    p, r, w = belief.transitions, belief.rewards, belief.weights
    n_models, n_states, n_actions, _ = p.shape
    flat = p.reshape(n_models, n_states * n_actions, n_states)
    v = np.zeros((n_models, n_states))
    for _ in range(horizon):
        if backup == "einsum":
            expected = np.einsum("msat,mt->msa", p, v)
        else:
            expected = np.matmul(flat, v[:, :, None])[:, :, 0].reshape(r.shape)
        q = r + discount * expected
        actions = np.tensordot(w, q, axes=1).argmax(axis=1)
        v = q[:, np.arange(n_states), actions]
    return v


@njit(fastmath=True)
def read(array: np.ndarray) -> float:
    """Sum an array: the memory bandwidth that bounds any sweep."""
    total = 0.0
    for i in range(array.size):
        total += array[i]
    return total


def main() -> None:
    for shape, target in (
        ((16, 5, 2, 180), "einsum at least 10 x ours"),
        ((32, 100, 4, 100), "BLAS at least 1 x ours, reading at least 0.5 x ours"),
        ((64, 500, 5, 50), "BLAS at least 1 x ours, reading at least 0.5 x ours"),
    ):
        *sizes, horizon = shape
        belief = random_belief(*sizes)
        p = belief.transitions
        large = p.nbytes > 1 << 28
        contenders = {
            "beliefbound mmbi": lambda b=belief, h=horizon: mmbi(b, discount=0.95, horizon=h),
            "numpy matmul (BLAS)": lambda b=belief, h=horizon: numpy_mmbi(b, 0.95, h, "matmul"),
        }
        if not large:
            contenders["numpy einsum"] = lambda b=belief, h=horizon: numpy_mmbi(b, 0.95, h, "einsum")
        times = race(contenders, repeats=3 if large else 9)
        once = race({"read": lambda p=p: read(p.reshape(-1))}, repeats=3 if large else 9)["read"]
        times["reading the transitions once a stage"] = once * horizon
        show(f"MMBI (models, states, actions, stages) = {shape}", times, "beliefbound mmbi", target)
        if large:
            tracemalloc.start()
            mmbi(belief, discount=0.95, horizon=2)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(f"  peak memory beside the models: {peak / 1e6:.1f} MB; the models: {p.nbytes / 1e6:.0f} MB")

    mdp = make_env("garnet:1000,4,5,seed=1").mdp
    dense = mdp.to_dense()
    for name, model in (("sparse", mdp.to_sparse()), ("dense", dense)):
        race_value_iteration(f"value iteration, 1000-state Garnet, {name}", model, dense)


def race_value_iteration(title: str, model: MDP, dense: MDP) -> None:
    from mdptoolbox.mdp import ValueIteration

    discount, epsilon = 0.95, 1e-6
    ddp = to_quantecon(model, discount=discount)
    transitions, rewards = to_mdptoolbox(dense)
    contenders = {
        "beliefbound value_iteration": lambda: value_iteration(model, discount=discount, epsilon=epsilon),
        "QuantEcon DiscreteDP value_iteration": lambda: ddp.solve(method="value_iteration", epsilon=epsilon),
        "QuantEcon modified_policy_iteration": lambda: ddp.solve(method="modified_policy_iteration", epsilon=epsilon),
        "pymdptoolbox ValueIteration (with its set-up)": lambda: ValueIteration(
            transitions, rewards, discount, epsilon=epsilon
        ).run(),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = race(contenders, repeats=5)
    show(title, times, "beliefbound value_iteration", "QuantEcon VI at least 1 x ours, pymdptoolbox 10 x")


if __name__ == "__main__":
    main()
