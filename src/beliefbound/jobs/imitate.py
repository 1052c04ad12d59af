"""`beliefbound imitate`: demonstrations in; a policy, how sure it is, and a picture of what they want, out.

1. *Belief* (`planning.inverse.posterior`): draws of rewards and dynamics.
2. *Choice.* On the draws of the first half of the chains: the expected MDP's policy, MMBI, CADP and imitation; the one
   of the highest mean value.
3. *Certificate.* On the draws of the other chains: the mean of `V*_m − V^π_m`, with a Normal interval by their
   effective number; right in the limit of long chains. A bracket of the first half's draws says what learning could
   gain there.
4. *Questions.* What they would do in a state, and whether they like it more than its median reward: an answer splits
   the draws, and is worth `Σ_g max_π Σ_m b_g[m] V^π_m − max_π Σ_m b[m] V^π_m`, `π` of a pool of policies.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.convergence import mean_ess
from beliefbound.base.errors import BeliefError, FileError, ParameterError
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable, write_text
from beliefbound.base.io.csv_table import csv_text, number_of, read_header, read_table
from beliefbound.base.io.result_folder import one_result
from beliefbound.base.validation import FloatArray, as_rng, check_not_below, check_probability, shown
from beliefbound.beliefs.finite import FiniteBelief
from beliefbound.beliefs.folder import write_models
from beliefbound.beliefs.from_log import action_id, state_id
from beliefbound.bounds.bracket import Bracket, bracket_of, seed_of
from beliefbound.bounds.record import TracePoint
from beliefbound.bounds.steps import Limits
from beliefbound.jobs.from_log.command import column_mapping, prior_of, size_of
from beliefbound.jobs.made import write_json
from beliefbound.logs.demonstrations import Demonstrations, read_demonstrations
from beliefbound.logs.log import Log
from beliefbound.models.evaluation import evaluate
from beliefbound.planning.cadp import cadp
from beliefbound.planning.expected import expected_mdp_policy
from beliefbound.planning.inverse.imitation import imitation
from beliefbound.planning.inverse.posterior import from_demonstrations
from beliefbound.planning.inverse.result import Demonstrated
from beliefbound.planning.mmbi import mmbi
from beliefbound.planning.optimal import optimal_values
from beliefbound.planning.task import FiniteTask
from beliefbound.policy import StationaryPolicy, TablePolicy
from beliefbound.report.imitation.page import page_of
from beliefbound.report.imitation.result import Imitated, Mean, Question, Rival
from beliefbound.report.page import REPORT, write_page

FILE = "imitation.json"
_ROUNDING = 1e-12  # of values: what is worth less may be worth nothing
_POOL, _ASKED = 64, 128  # policies and draws that answers are valued on


@dataclass(frozen=True, kw_only=True, eq=False)
class ImitateOptions:
    """What can be asked of `beliefbound imitate`, in words of the command line.

    Attributes:
      discount: of the demonstrators.
      transitions: a log of what others did in the same world.
      reward: `state`, `pair`, or a CSV file of features: `state`, perhaps `action`, and one column per feature.
      reward_prior: `uniform`, `sparse` or `normal`; `rationality`: a number where it is known.
      prior: of the dynamics, as for `beliefbound plan`.
      columns, states, actions, names, sort, keep_suspicious: of the files, as for `beliefbound plan`.
      initial: start states, by name or number; default: as demonstrations begin.
      draws, chains, steps: of the Markov chains, as for `from_demonstrations`.
      grid: `ROWSxCOLUMNS`, where states are cells of a map, row by row.
      confidence: of each interval.
      time_limit, effort: of the bracket; a time of 0: without one.
    """

    discount: float
    transitions: str | None = None
    reward: str = "state"
    reward_prior: str | None = None
    rationality: float | None = None
    prior: str = "suggest"
    columns: Sequence[str] | None = None
    states: str | None = None
    actions: str | None = None
    names: bool = False
    sort: bool = False
    keep_suspicious: bool = False
    initial: Sequence[str] | None = None
    draws: int = 256
    chains: int = 4
    steps: int | None = None
    grid: str | None = None
    confidence: float = 0.95
    time_limit: float = 5.0
    effort: int | None = None
    seed: int = 1
    threads: int | None = None

    def __post_init__(self) -> None:
        check_probability(self.confidence, "confidence")
        check_not_below(self.time_limit, "time")
        if self.chains < 4 or self.chains % 2:
            raise ParameterError(f"chains is {self.chains}; give an even number of at least 4: half of them choose")


def imitate_file(
    source: str,
    out: Path,
    options: ImitateOptions,
    *,
    watch: Callable[[TracePoint], object] | None = None,
    say: Callable[[str], object] = lambda text: None,
    stopping: Callable[[], object] = lambda: None,
) -> tuple[Imitated, Path]:
    """Read demonstrations, learn, plan, and write everything into `out`: `(what was found, the page)`. Ctrl-C ends the
    bracket; a second one leaves at once and writes nothing."""
    check_writable(out)
    say(f"reading {source}")
    demos = _read(source, options)
    grid = _grid(options.grid, demos.log)
    reward = options.reward if options.reward in ("state", "pair") else _features(Path(options.reward), demos.log)
    start = None
    if options.initial:
        start = np.zeros(demos.log.n_states)
        for name in options.initial:
            start[state_id(demos.log, name)] += 1.0 / len(options.initial)
    say("learning what they want and how the world works")
    rng = as_rng(options.seed)
    found = from_demonstrations(
        demos,
        discount=options.discount,
        reward=reward,
        reward_prior=options.reward_prior,
        rationality=options.rationality,
        prior=prior_of(options.prior),
        initial=start,
        draws=options.draws,
        chains=options.chains,
        steps=options.steps,
        rng=rng,
        threads=options.threads,
    )
    with first_interrupt(stopping) as asked:
        done = imitated(found, options, rng, grid=grid, watch=watch, stop=asked.is_set, say=say)
    say("writing")
    with one_result(out, "imitate", last=FILE) as aside:
        _write(done, aside)
    return done, out / REPORT


def imitated(
    found: Demonstrated,
    options: ImitateOptions,
    rng: np.random.Generator,
    *,
    grid: tuple[int, int] | None = None,
    watch: Callable[[TracePoint], object] | None = None,
    stop: Callable[[], bool] | None = None,
    say: Callable[[str], object] = lambda text: None,
) -> Imitated:
    """A policy for what was demonstrated, chosen on half of the chains and valued on the others."""
    belief, discount = found.belief, options.discount
    half = belief.n_models // 2  # draws stand chain by chain
    own, other = (_part(belief, np.arange(belief.n_models)[part]) for part in (slice(half), slice(half, None)))
    say("choosing a policy")
    makers: dict[str, TablePolicy] = {
        "CADP": cadp(own, discount=discount).policy,
        "MMBI": mmbi(own, discount=discount).policy,
        "the expected MDP": expected_mdp_policy(own, discount=discount).policy,
        "imitation": imitation(found.demonstrations.visits.sum(axis=0)),
    }
    start = belief.initial
    assert start is not None
    values = {name: evaluate(p, own, discount=discount) @ start for name, p in makers.items()}
    origin = max(values, key=lambda name: float(values[name].mean()))
    policy = makers[origin]
    assert isinstance(policy, StationaryPolicy)
    say("valuing it on the other chains' draws")
    solved = optimal_values(other, discount=discount)
    best = solved.values @ start
    earned = {name: evaluate(p, other, discount=discount) @ start for name, p in makers.items()}
    choices = found.choices()[half:]
    earned["the demonstrator, as believed"] = other.models.solve(choices, discount) @ start
    chains, sure = found.n_chains // 2, options.confidence
    mine = earned.pop(origin)
    rivals = tuple(Rival(name, _mean(x, chains, sure), _mean(mine - x, chains, sure)) for name, x in earned.items())
    actions = policy.actions
    assert actions is not None
    q = optimal_values(belief, discount=discount).q
    support = (q[:, np.arange(belief.n_states), actions] >= q.max(axis=-1) - 1e-9 * np.abs(q).max()).mean(axis=0)
    closed: Bracket | None = None
    if options.time_limit > 0.0 or options.effort is not None:
        say("bracketing what learning could gain")
        limits = Limits(effort=options.effort, seconds=options.time_limit, stop=stop)
        task = FiniteTask.of(own, discount=discount)
        closed = bracket_of(task, limits, seed=seed_of(rng), watch=watch, confidence=sure).bracket
    say("looking for questions")
    questions, everything = _questions(found, makers)
    return Imitated(
        found,
        policy,
        origin,
        float(values[origin].mean()),
        _mean(mine, chains, sure),
        _mean(best - mine, chains, sure),
        rivals,
        support,
        closed,
        questions,
        everything,
        sure,
        grid,
    )


def _part(belief: FiniteBelief, models: Any) -> FiniteBelief:
    return FiniteBelief.of(
        belief.models.select(models),
        reward_signal="unobserved",
        initial=belief.initial,
        states=belief.states,
        actions=belief.actions,
    )


def _mean(samples: FloatArray, chains: int, confidence: float) -> Mean:
    """Of samples that stand chain by chain; each end fails with `1 − confidence`."""
    from scipy.special import ndtri

    drawn = samples.reshape(chains, -1)
    ess = min(float(mean_ess(drawn)), float(samples.size))
    width = float(ndtri(confidence) * samples.std(ddof=1) / np.sqrt(max(1.0, ess)))
    mean = float(samples.mean())
    return Mean(mean, mean - width, mean + width, ess)


def _questions(found: Demonstrated, makers: dict[str, TablePolicy]) -> tuple[tuple[Question, ...], float]:
    """Questions by what their answers are worth, and what knowing everything is."""
    belief = found.belief
    spread = np.linspace(0, belief.n_models - 1, min(_ASKED, belief.n_models)).astype(np.int64)
    some, start = _part(belief, spread), belief.initial
    assert start is not None
    solved = optimal_values(some, discount=found.discount)
    few = np.linspace(0, len(spread) - 1, min(_POOL, len(spread))).astype(np.int64)
    pool = list(dict.fromkeys([*makers.values(), *map(StationaryPolicy, solved.actions[few])]))
    alpha = np.stack([evaluate(policy, some, discount=found.discount) @ start for policy in pool])  # [policy,m]
    now = float(alpha.mean(axis=1).max())
    choices, asked = found.choices()[spread], []
    met = ~found.demonstrations.log.terminal

    def worth(parts: FloatArray) -> float:
        """Of a split into parts `[g,m]` of the draws."""
        rise = float((alpha @ parts.T / len(spread)).max(axis=0).sum()) - now
        return rise if rise > _ROUNDING * float(np.abs(alpha).max()) else 0.0

    for s in np.flatnonzero(met):
        asked.append(Question(int(s), "do", worth(choices[:, s].T)))
        paid = some.rewards[:, s].max(axis=1)
        above = paid > np.median(paid)
        asked.append(Question(int(s), "like", worth(np.stack([above, ~above]).astype(np.float64))))
    everything = float((solved.values @ start).mean()) - now
    return tuple(sorted(asked, key=lambda question: -question.worth)), max(0.0, everything)


def _write(done: Imitated, place: Path) -> None:
    """All files; `imitation.json` and the page last."""
    belief, log = done.found.belief, done.found.demonstrations.log
    names: dict[str, Any] = {"state_names": belief.states, "action_names": belief.actions}
    done.policy.save(place / "policy.json", note=done.loss_words(), **names)
    actions = done.policy.actions
    assert actions is not None
    mean, spread = done.found.reward_mean, done.found.reward_spread
    s = np.arange(len(actions))
    table = {
        "idstate": s,
        "state": [log.state_name(i) for i in range(len(s))],
        "idaction": actions,
        "action": [log.action_name(int(a)) for a in actions],
        "support": done.support,
        "reward": mean[s, actions],
        "reward_spread": spread[s, actions],
    }
    write_text(place / "policy.csv", csv_text(table))
    if done.bracket is not None and not isinstance(done.bracket.policy, TablePolicy):
        done.bracket.policy.save(place / "policy.npz", note="learns how the world works as it acts", **names)
    write_models(place / "posterior.npz", belief, discount=done.found.discount)
    write_page(page_of(done, place / "figures"), place / REPORT)
    write_json(place / FILE, done.to_dict())


def _read(source: str, options: ImitateOptions) -> Demonstrations:
    return read_demonstrations(
        source,
        transitions=options.transitions,
        columns=column_mapping(options.columns),
        states=size_of(options.states),
        actions=size_of(options.actions),
        names=options.names,
        sort=options.sort,
        keep_suspicious=options.keep_suspicious,
    )


def _grid(text: str | None, log: Log) -> tuple[int, int] | None:
    if text is None:
        return None
    rows, _, columns = text.lower().partition("x")
    if not (rows.isdecimal() and columns.isdecimal()):
        raise ParameterError(f"grid is {shown(text)}; give ROWSxCOLUMNS, such as 5x5")
    if log.states is not None or int(rows) * int(columns) != log.n_states:
        named = ", which have names" if log.states is not None else ""
        raise ParameterError(
            f"grid is {text}, which is {int(rows) * int(columns)} cells; there are {log.n_states} states{named}: a "
            f"grid needs one number a cell, row by row (--states tells how many)"
        )
    return int(rows), int(columns)


def _features(file: Path, log: Log) -> FloatArray:
    """Features `[s,a,f]` of a CSV file: `state`, perhaps `action`, and one column per feature."""
    header = read_header(file)
    by_action = "action" in header
    keys = ["state", "action"] if by_action else ["state"]
    features = [name for name in header if name not in keys]
    if "state" not in header or not features:
        raise FileError(f"{file}: features have the columns state, action (or not) and one for each feature")
    table = read_table(file, [*keys, *features])
    phi = np.full((log.n_states, log.n_actions, len(features)), np.nan)
    for i, line in enumerate(table.line):
        try:
            s = state_id(log, str(table["state"][i]))
            a: Any = action_id(log, str(table["action"][i])) if by_action else slice(None)
        except BeliefError as fault:
            raise FileError(f"{file}, line {line}: {fault}") from None
        row = [number_of(table[name][i]) for name in features]
        if np.isnan(row).any():
            bad = features[int(np.isnan(row).argmax())]
            raise FileError(
                f"{file}, line {line}, column {bad!r}: it is {table[bad][i]!r}; features are finite numbers"
            )
        if not np.isnan(phi[s, a]).all():
            raise FileError(f"{file}, line {line}: state {table['state'][i]} is given more than once")
        phi[s, a] = row
    if np.isnan(phi).any():
        s = int(np.argwhere(np.isnan(phi))[0, 0])
        raise FileError(f"{file} has no row for state {log.state_name(s)[:60]!r}; every state has features")
    return phi
