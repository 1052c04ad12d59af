"""Markov chains over what demonstrators want (`kernels.demonstrators`), each from a seed of its own: numbered samples,
on threads or wherever an executor has workers (`base.executors.elsewhere`)."""

import math
from typing import NamedTuple

import numpy as np

from beliefbound.base.errors import BeliefError
from beliefbound.base.executors.elsewhere import map_numbered
from beliefbound.base.executors.threads import available_threads
from beliefbound.base.limits import check_size
from beliefbound.base.validation import FloatArray, IntArray
from beliefbound.kernels.demonstrators.chain import walk_on
from beliefbound.kernels.demonstrators.state import Data, Kept, Walk
from beliefbound.kernels.random import seed_stream
from beliefbound.planning.inverse.rewards import RewardForm

_PURPOSE = 0x1E2  # in the address of a chain's random numbers
_TRACED = 1000  # draws of a chain that its convergence is judged by
KINDS = ("a reward", "a row of the dynamics", "rationality", "level and scale", "the shared prior")


class Problem(NamedTuple):
    """What is to be learnt.

    Attributes:
      discount: of the demonstrators.
      alpha: `[s,a,t]`, concentrations of the dynamics given all transitions; `None` where they are known.
      known: `[s,a,t]`, dynamics that are known, and rows that do not change.
      rows: pairs whose row is unknown.
      visits: `[k,s,a]`.
      form: of rewards, and their prior.
      rational: shape and scale of the Gamma of `η`, and 0; or 0, `η` and 1 where it is known.
    """

    discount: float
    alpha: FloatArray
    known: FloatArray
    rows: IntArray
    visits: IntArray
    form: RewardForm
    rational: tuple[float, float, float]

    @property
    def unknowns(self) -> int:
        """How many things a chain changes one at a time."""
        return int(self.visits.shape[0]) * (self.form.n + 1) + len(self.rows)


class Draws(NamedTuple):
    """`[chain, draw, …]`: transitions `[pair,t]`; and, of more draws, of which the last of every so many belong to
    those, parameters `[k,f]`, `η[k]`, log likelihoods of choices `[k]`, the prior of rewards `[f,2]` and the scale of
    `η`; and `tally[chain, kind, 2]`, steps tried and taken."""

    p: FloatArray
    w: FloatArray
    eta: FloatArray
    like: FloatArray
    prior: FloatArray
    scale: FloatArray
    tally: IntArray

    def kept(self) -> "Draws":
        """Draws of which the transitions are there."""
        fewer = self.w.shape[1] // self.p.shape[1]
        names = ("w", "eta", "like", "prior", "scale")
        return self._replace(**{name: getattr(self, name)[:, fewer - 1 :: fewer] for name in names})


class Chains(NamedTuple):
    """Chains by their numbers: so many `draws` of each, of which more are `traced`, evenly from so many steps after a
    quarter more of them."""

    problem: Problem
    draws: int
    traced: int
    steps: int
    seed: int

    def scratch(self) -> None:
        """A chain keeps nothing for the next."""

    def one(self, number: int, scratch: None) -> Draws:
        """The draws of one chain."""
        problem, (K, S, A), F = self.problem, self.problem.visits.shape, self.problem.form.n
        data = _data(problem)
        kept = Kept(
            np.empty((self.draws, S * A, S)),
            np.empty((self.traced, K, F)),
            np.empty((self.traced, K)),
            np.empty((self.traced, K)),
            np.empty((self.traced, F, 2)),
            np.empty(self.traced),
        )
        walk = _walk(problem, data, seed_stream(np.array([self.seed, _PURPOSE, number], dtype=np.uint64)))
        walk_on(data, walk, self.steps // 4, max(1, self.steps // self.traced), kept)
        return Draws(*kept, walk.tally)


def run_chains(problem: Problem, *, chains: int, draws: int, steps: int, seed: int, threads: int | None) -> Draws:
    """All chains. Neither threads nor workers change a bit."""
    _, S, A = problem.visits.shape
    check_size((chains, draws, S * A, S), "draws of the dynamics", BeliefError, fix="keep fewer draws")
    traced = draws * max(1, min(_TRACED, steps) // draws)
    nothing = [None] * min(chains, threads or available_threads())
    found = map_numbered(Chains(problem, draws, traced, steps, seed), range(chains), lambda: nothing)
    return Draws(*(np.stack(part) for part in zip(*found, strict=True)))


def _data(problem: Problem) -> Data:
    K, S, A = problem.visits.shape
    form = problem.form
    return Data(
        float(problem.discount),
        np.ascontiguousarray(problem.alpha.reshape(S * A, S)),
        problem.rows,
        form.first,
        form.pair,
        form.times,
        form.level,
        problem.visits.reshape(K, S * A).astype(np.float64),
        form.family,
        np.tile(form.prior, (form.n, 1)),
        np.array(problem.rational),
        K > 1,
    )


def _walk(problem: Problem, data: Data, stream: np.ndarray) -> Walk:
    """A chain before its first step."""
    (K, S, A), F = problem.visits.shape, problem.form.n
    known = problem.rational[2] > 0.0
    return Walk(
        stream=stream,
        p=np.array(problem.known.reshape(S * A, S)),
        w=np.zeros((K, F)),
        eta=np.full(K, problem.rational[1]),
        prior=data.base.copy(),
        centre=np.zeros(F),
        hyper=np.array([0.0, 0.0 if known else math.log(problem.rational[1])]),
        like=np.zeros((2, K)),
        r=np.zeros((2, K, S * A)),
        q=np.zeros((2, K, S * A)),
        v=np.zeros((2, K, S)),
        policy=np.zeros((2, K, S), dtype=np.int64),
        inverse=np.zeros((2, K, S, S)),
        side=np.zeros(K, dtype=np.int64),
        moved=np.zeros(K, dtype=np.int64),
        wanted=np.zeros(S, dtype=np.int64),
        d=np.zeros(S),
        line=np.zeros(S),
        old=np.zeros(S),
        two=np.zeros(2),
        tally=np.zeros((len(KINDS), 2), dtype=np.int64),
    )
