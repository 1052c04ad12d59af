"""`Demonstrated`: what is believed after demonstrations, and how far that can be trusted."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from beliefbound.base.convergence import GOOD_ESS, GOOD_RHAT
from beliefbound.base.errors import FileError, ParameterError
from beliefbound.base.io.atomic import write_text
from beliefbound.base.io.paths import as_path
from beliefbound.base.validation import FloatArray, check_ids
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.logs.demonstrations import Demonstrations
from beliefbound.logs.log import plain
from beliefbound.planning.optimal import optimal_values
from beliefbound.policy import StationaryPolicy
from beliefbound.policy.results import Result, axis, literal

_DOUBT = 0.01  # choices are told from random ones where random ones look so one-sided more rarely than this
_MET = 1.05  # R̂ up to which chains count as near each other
_GAIN = 5.0  # or where rewards explain them e⁵ = 150 times better, which of random ones they hardly ever do
_LISTED = 5
_NAME_IT = " unless you name it (terminal=…)"  # which demonstrations do not offer: steps are marked


class Mixing(NamedTuple):
    """Of one quantity: whether chains have met (R̂), and how many independent draws theirs are worth."""

    name: str
    rhat: float
    bulk: float
    tail: float


@dataclass(frozen=True, eq=False, repr=False)
class Demonstrated(Result):
    """What is believed after demonstrations.

    Attributes:
      belief: equally weighted draws of rewards and dynamics, or the hypotheses that were given, weighed; nobody shows
        the apprentice a reward. Of several demonstrators, about somebody new from where they come from; `of(name)` is
        about one of them.
      demonstrations: what it was learnt from; `discount`: of the demonstrators.
      rewards: `[m,k,s,a]`, of each draw and demonstrator; the last one is somebody new, where there are several.
      rationality: `[m,k]`, likewise `η`; `nan` for hypotheses with several possible ones.
      log_likelihood: `[m]`, of the demonstrators' choices.
      chance: how often choices made at random are as one-sided as these.
      mixing: of each quantity, where there were chains, the worst first; `n_chains`, `n_steps` of each.
      accepted: share of proposals taken, by kind.
      prior: what was believed before, in words.
      exact: whether these are hypotheses with exact weights.
      said: what a reader should know.
    """

    belief: FiniteBelief
    demonstrations: Demonstrations
    discount: float
    rewards: FloatArray
    rationality: FloatArray
    log_likelihood: FloatArray
    chance: float
    prior: str
    exact: bool
    mixing: tuple[Mixing, ...] = ()
    n_chains: int = 0
    n_steps: int = 0
    accepted: dict[str, float] = field(default_factory=dict)
    said: tuple[str, ...] = ()

    _kind = "demonstrations"

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"{self.belief.n_models} draws of {self.n_chains} chains"
        return f"Demonstrated({self.demonstrations!r}, {how})"

    def of(self, demonstrator: int | str) -> FiniteBelief:
        """The belief about one demonstrator, by number or name: the same dynamics, their own rewards.

        Raises:
          ParameterError: there is no such demonstrator.
        """
        k, names = demonstrator, self.demonstrations.demonstrators
        if isinstance(demonstrator, str):
            if demonstrator not in names:
                listed = ", ".join(map(plain, names[:8]))
                raise ParameterError(f"there is no demonstrator {demonstrator[:60]!r}; there are {listed}")
            k = names.index(demonstrator)
        k = int(check_ids(k, len(names), "demonstrator", ParameterError))
        if self.exact or len(names) == 1:
            return self.belief
        b = self.belief
        return FiniteBelief(
            b.transitions,
            self.rewards[:, k],
            b.weights,
            reward_signal="unobserved",
            initial=b.initial,
            states=b.states,
            actions=b.actions,
        )

    @property
    def reward_mean(self) -> FloatArray:
        """`[s,a]`: expected rewards of the belief."""
        mean: FloatArray = np.einsum("m,msa->sa", self.belief.weights, self.belief.rewards)
        return mean

    @property
    def reward_spread(self) -> FloatArray:
        """`[s,a]`: standard deviation of the rewards of the belief."""
        off = (self.belief.rewards - self.reward_mean) ** 2
        spread: FloatArray = np.sqrt(np.einsum("m,msa->sa", self.belief.weights, off))
        return spread

    def choices(self) -> FloatArray:
        """`[m,s,a]`: what whoever the belief is about would do under each model: `softmax(η Q*)`."""
        q = optimal_values(self.belief, discount=self.discount).q
        logits = self.rationality[:, -1, None, None] * (q - q.max(axis=-1, keepdims=True))
        chances = np.exp(logits)
        shares: FloatArray = chances / chances.sum(axis=-1, keepdims=True)
        return shares

    def demonstrator(self) -> StationaryPolicy:
        """What they would do, on average over what is believed."""
        mean = np.einsum("m,msa->sa", self.belief.weights, self.choices())
        return StationaryPolicy(probabilities=mean / mean.sum(axis=1, keepdims=True))

    @property
    def gain(self) -> float:
        """By how much (log likelihood, on average over the belief) rewards explain choices better than chance."""
        steps = self.demonstrations.n_steps
        mean = float(self.belief.weights @ self.log_likelihood)
        return mean + steps * float(np.log(self.belief.n_actions))

    @property
    def looks_random(self) -> bool:
        """Whether the choices cannot be told from random ones."""
        return self.chance > _DOUBT and self.gain < _GAIN

    @property
    def fewest(self) -> float:
        """How likely it is that random choices are the same each time in every state that was met so often."""
        times = self.demonstrations.visits.sum(axis=-1)
        return float(self.belief.n_actions ** -float(np.maximum(times - 1, 0).sum()))

    @property
    def met(self) -> bool:
        """Whether chains are near enough to each other for intervals of means to be told."""
        return all(m.rhat <= _MET for m in self.mixing)

    @property
    def mixed(self) -> bool:
        """Whether every R̂ and every effective size is good enough."""
        return all(m.rhat <= GOOD_RHAT and min(m.bulk, m.tail) >= GOOD_ESS * self.n_chains for m in self.mixing)

    def notes(self) -> tuple[str, ...]:
        """What a reader should know, in order of weight."""
        notes, demos = [], self.demonstrations
        if self.looks_random:
            too_few = self.fewest > _DOUBT
            why = (
                "they are too few: even the same choice each time would be no surprise"
                if too_few
                else (
                    f"random ones are as one-sided with probability {self.chance:.2g}, and rewards explain them only "
                    f"e^{self.gain:.1f} times better than chance"
                )
            )
            learnt = "little" if too_few else "nothing"
            notes.append(
                f"WARNING: these choices cannot be told from random ones ({why}): {learnt} can be learnt from them "
                f"about what is wanted, and what follows about it is mostly the prior's"
            )
        bad = [m for m in self.mixing if m.rhat > GOOD_RHAT]
        few = [m for m in self.mixing if min(m.bulk, m.tail) < GOOD_ESS * self.n_chains]
        if bad:
            worst = bad[0]
            notes.append(
                f"WARNING: the chains have not met for {len(bad)} of {len(self.mixing)} quantities (R̂ up to "
                f"{worst.rhat:.3g}, {worst.name}; at most {GOOD_RHAT} is good): give more steps"
            )
        elif few:
            worst = min(few, key=lambda m: min(m.bulk, m.tail))
            notes.append(
                f"few independent draws of {len(few)} of {len(self.mixing)} quantities (as few as "
                f"{min(worst.bulk, worst.tail):.0f}, {worst.name}; {GOOD_ESS * self.n_chains} are good): give more "
                f"steps, or keep more draws"
            )
        left = np.flatnonzero(demos.never_left)
        if len(left):
            listed = ", ".join(plain(demos.log.state_name(int(s))) for s in left[:_LISTED])
            more = ", …" if len(left) > _LISTED else ""
            notes.append(
                f"nobody showed what to do in {len(left)} of {demos.log.n_states} states, which were never left "
                f"({listed}{more}): what is believed there follows from elsewhere and from the prior. If episodes end "
                f"there, mark the steps into them as terminated"
            )
        return (*notes, *self.said, *(note.removesuffix(_NAME_IT) for note in demos.log.notes))

    def to_dict(self) -> dict[str, Any]:
        """Numbers and words, ready for JSON; the belief is saved by `write_models`."""
        return {
            "demonstrators": list(self.demonstrations.demonstrators),
            "steps": self.demonstrations.n_steps,
            "discount": self.discount,
            "prior": self.prior,
            "exact": self.exact,
            "models": self.belief.n_models,
            "reward_mean": self.reward_mean.tolist(),
            "reward_spread": self.reward_spread.tolist(),
            "rationality": None if np.isnan(self.rationality).any() else self.rationality.mean(axis=0).tolist(),
            "choices": {"gain": self.gain, "chance": self.chance, "random": self.looks_random},
            "chains": self.n_chains,
            "chain_steps": self.n_steps,
            "accepted": self.accepted,
            "mixing": [m._asdict() for m in self.mixing],
            "notes": list(self.notes()),
        }

    def _rows(self) -> list[tuple[str, str]]:
        eta = self.rationality[:, : self.demonstrations.n_demonstrators]
        rows = [("believed before", self.prior)]
        if not np.isnan(eta).any() and eta.std() > 0.0:
            rows.append(("rationality", f"{eta.mean():.3g} ± {eta.std():.2g}"))
        rows.append(("rewards explain choices", f"e^{self.gain:.1f} times better than chance"))
        if self.mixing:
            least = min(min(m.bulk, m.tail) for m in self.mixing)
            rows.append(("chains", f"R̂ at most {self.mixing[0].rhat:.3f}, at least {least:.0f} independent draws"))
        return [*rows, *(("note", note) for note in self.notes())]

    def save(self, path: Path | str) -> None:
        """Write `to_dict()` as JSON; `write_models(path, found.belief, …)` keeps the belief."""
        import json

        write_text(as_path(path), json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Not to be had: the draws are not in the file.

        Raises:
          FileError: always; it says what can be read.
        """
        raise FileError(f"{path} holds no draws; the belief can be read back where it was saved: read_models")

    def plot(self, ax: Any = None) -> Any:
        """Rewards by state, mean and spread, on a matplotlib axis, returned."""
        ax = axis(ax, figsize=(6.4, 4.0))
        mean, spread = self.reward_mean, self.reward_spread
        names, actions = self.belief.states, self.belief.actions
        x = np.arange(len(mean))
        same = bool(np.ptp(mean, axis=1).max() == 0.0)
        for a in range(1 if same else mean.shape[1]):
            label = None if same else literal(str(a) if actions is None else actions[a])
            ax.errorbar(x + 0.0 if same else x + 0.08 * a, mean[:, a], spread[:, a], fmt="o", ms=4, label=label)
        if names is not None and len(names) <= 40:
            ax.set_xticks(x, [literal(name) for name in names], rotation=45)
        ax.set_xlabel("state")
        ax.set_ylabel("reward, mean ± deviation")
        if not same:
            ax.legend()
        return ax
