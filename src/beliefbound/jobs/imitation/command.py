"""What `beliefbound imitate` does: its words as options, the work, the files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.errors import BeliefError, FileError, ParameterError
from beliefbound.base.interrupt import first_interrupt
from beliefbound.base.io.atomic import check_writable, write_text
from beliefbound.base.io.csv_table import csv_text, number_of, read_header, read_table
from beliefbound.base.io.result_folder import one_result
from beliefbound.base.validation import FloatArray, as_rng, check_not_below, check_probability, shown
from beliefbound.beliefs.folder import write_models
from beliefbound.beliefs.from_log import action_id, state_id
from beliefbound.bounds.record import TracePoint
from beliefbound.bounds.steps import Limits
from beliefbound.jobs.imitation.plan import imitated
from beliefbound.jobs.log_files import LogFileOptions, prior_of, start_of
from beliefbound.jobs.made import write_json
from beliefbound.logs.demonstrations import read_demonstrations
from beliefbound.logs.log import Log
from beliefbound.planning.inverse.posterior import from_demonstrations
from beliefbound.policy import TablePolicy
from beliefbound.report.imitation.page import page_of
from beliefbound.report.imitation.result import Imitated
from beliefbound.report.page import REPORT, write_page

FILE = "imitation.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class ImitateOptions(LogFileOptions):
    """What can be asked of `beliefbound imitate`, in words of the command line.

    Attributes:
      discount: of the demonstrators.
      transitions: a log of what others did in the same world.
      reward: `state`, `pair`, or a CSV file of features: `state`, perhaps `action`, and one column per feature.
      reward_prior: `uniform`, `sparse` or `normal`; `rationality`: a number where it is known.
      prior: of the dynamics, as for `beliefbound plan`.
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
    demos = read_demonstrations(source, transitions=options.transitions, **options.reading)
    grid = _grid(options.grid, demos.log)
    reward = options.reward if options.reward in ("state", "pair") else _features(Path(options.reward), demos.log)
    say("learning what they want and how the world works")
    rng = as_rng(options.seed)
    found = from_demonstrations(
        demos,
        discount=options.discount,
        reward=reward,
        reward_prior=options.reward_prior,
        rationality=options.rationality,
        prior=prior_of(options.prior),
        initial=start_of(options.initial, demos.log),
        draws=options.draws,
        chains=options.chains,
        steps=options.steps,
        rng=rng,
        threads=options.threads,
    )
    with first_interrupt(stopping) as asked:
        limits = Limits(effort=options.effort, seconds=options.time_limit, stop=asked.is_set)
        wanted = limits if options.time_limit > 0.0 or options.effort is not None else None
        done = imitated(found, confidence=options.confidence, limits=wanted, rng=rng, grid=grid, watch=watch, say=say)
    say("writing")
    with one_result(out, "imitate", last=FILE) as aside:
        _write(done, aside)
    return done, out / REPORT


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
