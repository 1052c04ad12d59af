"""Models of a Dirichlet belief drawn on an accelerator, where they stay.

`Gamma(α)` has the law of `Gamma(α + 1) U^{1/α}`. Taken in logarithms, and the largest of a row taken off, nothing
underflows however small the parameters are, and no row is empty. Rewards are drawn here: they are few.
"""

from typing import Any

import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.validation import FloatArray
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.dirichlet import DirichletBelief
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.kernels.random import stream_from
from beliefbound.models.device import Device
from beliefbound.models.on_device import OnDevice

_BLOCK_BYTES = 1 << 30  # of models drawn together: scratch is a few times that


def sample_on(belief: Belief, n: int, rng: np.random.Generator, device: Device) -> FiniteBelief:
    """`n` independent models, equally weighted, on the device: drawn there where the belief is Dirichlet and its rows
    are not tied, by PyTorch or NumPy; else drawn here and sent."""
    drawn_there = isinstance(belief, DirichletBelief) and belief.ties is None and device.library in ("torch", "numpy")
    if not drawn_there:
        return belief.sample(n, rng).on(device.name, device.dtype)
    assert isinstance(belief, DirichletBelief)
    n_states, n_actions = belief.n_states, belief.n_actions
    model = np.dtype(device.dtype).itemsize * n_states * n_states * n_actions
    size = max(1, min(n, _BLOCK_BYTES // model))
    needed, free = (n + 6 * size) * model, device.free_bytes()
    if needed > free:
        raise ParameterError(
            f"drawing {n} models of {n_states} states and {n_actions} actions needs {needed / 2**30:.1f} GiB on "
            f"{device.name}, and {free / 2**30:.1f} are free; draw fewer, or use no device"
        )
    gammas = _Gammas(device, int(rng.integers(2**63)))
    alpha = device.send(np.where(belief.available[..., None], belief.concentration, 0.0).reshape(-1, n_states))
    rewards, signal = belief.rewards.sample(n, stream_from(rng))
    blocks, paid = list[Any](), list[FloatArray]()
    for first in range(0, n, size):
        rows = gammas.rows(alpha, min(size, n - first))
        blocks.append(rows)
        if rewards.ndim == 4:  # paid on arrival: under each model's own chances
            own = device.send(np.ascontiguousarray(rewards[first : first + size]).reshape(rows.shape))
            paid.append(device.fetch(device.xp.sum(rows * own, axis=-1)).reshape(-1, n_states, n_actions))
    if paid:
        rewards = np.concatenate(paid)
    return belief.of_models(OnDevice(device, blocks, (n, n_states, n_actions), None), rewards, signal)


class _Gammas:
    """Draws of rows, from a seed."""

    def __init__(self, device: Device, seed: int) -> None:
        self.device = device
        if device.library == "torch":
            import torch

            self.source: Any = torch.Generator(device.device).manual_seed(seed)
        else:
            self.source = np.random.default_rng(seed)

    def rows(self, alpha: Any, n: int) -> Any:
        """`[n,(s,a),t]`: a draw of every row of `alpha [(s,a),t]`, `n` times; rows without parameters are empty."""
        xp, shape = self.device.xp, (n, *alpha.shape)
        if self.device.library == "torch":
            import torch

            gamma = torch._standard_gamma((alpha + 1.0).expand(shape).contiguous(), generator=self.source)
            uniform = torch.rand(shape, dtype=alpha.dtype, device=alpha.device, generator=self.source)
        else:
            gamma = self.source.standard_gamma(alpha + 1.0, shape).astype(alpha.dtype)
            uniform = self.source.random(shape).astype(alpha.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = xp.log(gamma) + xp.log(uniform) / alpha
            logs = xp.where(alpha > 0.0, logs, -xp.inf)
            most = xp.max(logs, axis=-1, keepdims=True)
            rows = xp.exp(logs - xp.where(xp.isfinite(most), most, xp.zeros_like(most)))
            total = xp.sum(rows, axis=-1, keepdims=True)
            return rows / xp.where(total > 0.0, total, xp.ones_like(total))
