"""`beliefbound paper`: every table and figure of the paper from nothing, in one call."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np

from beliefbound.base.errors import ParameterError
from beliefbound.base.executors import Executor
from beliefbound.base.io.atomic import as_parquet, check_writable, write_aside, write_bytes
from beliefbound.base.io.paths import as_path
from beliefbound.base.io.result_folder import one_result
from beliefbound.base.tables import pl
from beliefbound.base.validation import check_count
from beliefbound.lab.experiments.run import Progress, Say, n_missing, run
from beliefbound.lab.experiments.spec import Cell, Spec
from beliefbound.lab.experiments.statistics import bootstrap_mean
from beliefbound.lab.paper.figure1 import figure1
from beliefbound.lab.paper.figure2 import draw_distributions, draw_regret, regret_curve
from beliefbound.lab.paper.published import DISCOUNT, OTHERS, RUNS, SAMPLES, STEPS, STUCK_BELOW, TABLE1
from beliefbound.lab.paper.table1 import table1, table1_rows
from beliefbound.report.page import REPORT, Page, Picture, Section, Table, write_page

_SHOWN = {"exploit": "Exploit", "mcbrl:n=1": "MCBRL n=1", "mcbrl:n=8": "MCBRL n=8"}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What the command made: Table 1 as a frame, the regret curve, and the report's path."""

    table: pl.DataFrame
    regret: pl.DataFrame
    report: Path


def paper_spec(*, runs: int = RUNS, seed: int = 1, samples: tuple[int, ...] = SAMPLES) -> Spec:
    """The paper's experiment as data: Exploit, MCBRL for every n, and the oracle, on Chain as the paper counts."""
    wanted = sorted({1, 8, 16, *(check_count(n, "n") for n in samples)})
    return Spec(
        agents=("oracle", "exploit", *(f"mcbrl:n={n}" for n in wanted)),
        environments=("chain",),
        runs=check_count(runs, "runs", least=2),
        steps=STEPS,
        seeds=(seed,),
        discount=DISCOUNT,
        accounting="paper",
        stuck_below=STUCK_BELOW,
        title="Robust Bayesian reinforcement learning through tight lower bounds: Table 1 and Figure 2",
    )


def others_spec(*, runs: int = RUNS, seed: int = 1) -> Spec:
    """The systems that Table 1 quotes from others, as run here: on the same noise, with fewer runs each."""
    own = paper_spec(runs=runs, seed=seed)
    return msgspec.structs.replace(
        own,
        agents=tuple(name for row in TABLE1 for name in row.here),
        runs=max(2, own.runs // OTHERS),
        title="BEETLE, AMP-EM and SEM as run here",
    )


def reproduce(
    out: Path | str,
    *,
    runs: int = RUNS,
    seed: int = 1,
    samples: tuple[int, ...] = SAMPLES,
    threads: int | None = None,
    executor: Executor | None = None,
    repair: bool = False,
    progress: Progress | None = None,
    say: Say = lambda text: None,
    stage: Say = lambda text: None,
) -> Reproduction:
    """Run the paper's experiments and write tables, figures, raw runs and a report into `out`.

    Writes `table1.csv`, `figure1.{csv,png,svg}`, `figure2a.{csv,png,svg}`, `figure2b.{png,svg}`, `runs.parquet`,
    `report.html`, and the resumable stores under `runs/` and `others/`, which alone use the threads or the executor.
    `stage` is told what is being done once the runs are there, `say` what `lab.experiments.run` has to say.
    """
    if not samples:
        raise ParameterError("no n was given; pass at least one number of sampled models")
    folder = as_path(out)
    check_writable(folder)
    spec = paper_spec(runs=runs, seed=seed, samples=samples)
    store = run(spec, folder / "runs", threads=threads, executor=executor, repair=repair, progress=progress, say=say)
    frame = store.read()
    others = _run_others(
        others_spec(runs=runs, seed=seed), folder / "others", threads, executor, repair, say=say, stage=stage
    )
    everything = pl.concat([frame, others])
    with one_result(folder, "paper", last=REPORT) as aside:
        write_bytes(aside / "runs.parquet", as_parquet(everything))
        stage("bootstrap intervals")
        table = table1(everything)
        write_aside(aside / "table1.csv", table.write_csv)
        curve = regret_curve(frame, tuple(sorted(set(samples))), STUCK_BELOW)
        stage("Figure 2")
        draw_regret(curve, aside)
        draw_distributions(frame, _SHOWN, aside)
        stage("Figure 1, compiling once if this is the first time")
        figure1(aside, seed=seed, certify_every=4, progress=lambda k, n: stage(f"Figure 1, belief {k} of {n}"))
        stage("report")
        write_page(_page(aside, everything, table, curve, spec), aside / REPORT)
    return Reproduction(table, curve, folder / REPORT)


def _run_others(
    spec: Spec, out: Path, threads: int | None, executor: Executor | None, repair: bool, *, say: Say, stage: Say
) -> pl.DataFrame:
    """Their runs; what is under way is a stage."""
    total, left = spec.runs * len(spec.cells()), n_missing(spec, out)
    done = [total - left]
    if left:
        stage("BEETLE, AMP-EM and SEM")

    def tell(cell: Cell, runs: int) -> None:
        done[0] += runs
        stage(f"{cell.agent}, {done[0]} of {total} runs")

    return run(spec, out, threads=threads, executor=executor, repair=repair, progress=tell, say=say).read()


def _page(folder: Path, frame: pl.DataFrame, table: pl.DataFrame, curve: pl.DataFrame, spec: Spec) -> Page:
    oracle = bootstrap_mean(frame.filter(agent="oracle")["total"].to_numpy())
    own = table.filter(pl.col("z_total").is_not_null())
    off = max(abs(z) for z in own["z_total"])
    runs = len(frame.filter(agent="exploit"))
    return Page(
        title="Robust Bayesian reinforcement learning through tight lower bounds, reproduced",
        lead=(
            "Table 1, Figure 1 and Figure 2 of the paper, computed from nothing by one command and set beside the "
            "published numbers."
        ),
        facts=[
            ("runs per row", f"{runs:,}"),
            ("seed", str(spec.seeds[0])),
            ("largest distance from the paper", f"{off:.1f} joint standard errors"),
            ("version", version("beliefbound")),
        ],
        sections=[
            Section(
                "Table 1: Chain, 1000 steps",
                [
                    "Mean total reward and discounted utility (γ = 0.95) over runs; the 80% interval spans the 10th "
                    "to the 90th percentile of runs; the confidence interval is a 95% percentile bootstrap of the "
                    "mean with 10⁴ resamples. Published values stand in the columns marked paper.",
                    *_others_words(frame),
                    f"The oracle, which knows the chain, earns {oracle.mean:.0f} ± {oracle.error:.1f} "
                    f"on the same noise.",
                ],
                [
                    Table(
                        *table1_rows(table),
                        "Highlighted rows reproduce the paper's own. U: utility; z: joint standard errors from it.",
                        frozenset(range(len(own))),
                    )
                ],
            ),
            Section(
                "Figure 2(a): regret against the number of sampled models",
                _regret_words(curve),
                [_regret_html(curve)],
                [
                    Picture(
                        folder / "figure2a.svg",
                        "Regret of MCBRL for n sampled models, 95% bootstrap intervals; the dashed line is Exploit.",
                    )
                ],
            ),
            Section(
                "Figure 2(b): where the total reward of a run lands",
                [
                    "Exploit has the best runs and the worst: it often settles for the small immediate reward. One "
                    "sampled model over-explores; eight keep most of the safety at less cost."
                ],
                pictures=[
                    Picture(folder / "figure2b.svg", "Total reward over runs: Exploit, MCBRL with n = 1 and n = 8.")
                ],
            ),
            Section(
                "Figure 1: bounds on the Bayes-optimal value as the belief sharpens",
                [
                    "Eight MDPs drawn from the prior; the belief moves from uniform to certainty about the first. "
                    "MMBI is the value of a policy, so a lower bound on the Bayes-optimal value; E max is an upper "
                    "bound. The green band is the bracket that beliefbound certifies (95% confidence at each belief): "
                    "the Bayes-optimal value lies in it.",
                ],
                pictures=[
                    Picture(
                        folder / "figure1.svg",
                        "E max, MMBI, the expected MDP's policy and the certified bracket, mean over states.",
                    )
                ],
            ),
            Section(
                "How it was made",
                [
                    f"`beliefbound paper --runs {runs} --seed {spec.seeds[0]}`",
                    "MCBRL draws new models at step 1 and then after 11, 12, 13, … steps; at every step it does at "
                    "most 10 sweeps of MMBI, warm-started, stopping when the expected values change by less than "
                    "0.001 in total. Exploit does one sweep on the expected MDP a step. As in the original, the "
                    "reset's reward of 0 counts as the first of the 1000 rewards. Raw runs are in runs.parquet, the "
                    "tables in table1.csv and figure2a.csv.",
                ],
            ),
        ],
    )


def _others_words(frame: pl.DataFrame) -> list[str]:
    """How the rows that the paper quotes were run, and how far apart plans of BEETLE are."""
    names = ", ".join(f"{row.model} as {row.here[0]}" for row in TABLE1 if row.here)
    plans = [float(np.mean(frame.filter(agent=name)["total"].to_numpy())) for name in TABLE1[4].here]
    return [
        "The paper quotes BEETLE, AMP-EM and SEM from others, and so do the columns marked paper. The settings behind "
        "those figures are not known; here they were run too, told the rewards, from a uniform prior and with "
        f"settings of ours ({names}). So there is no z.",
        "BEETLE plans once, at beliefs that it samples from the prior, and a plan's worth varies with them: the "
        f"{len(plans)} plans pooled in its row (seeds 1 to {len(plans)}) earn "
        f"{', '.join(f'{x:.0f}' for x in plans)}. Its interval "
        "is about these plans.",
    ]


def _regret_html(curve: pl.DataFrame) -> Table:
    rows = [
        [
            "Exploit" if row["n"] is None else f"n = {row['n']}",
            f"{row['regret']:.0f}",
            f"{row['ci_low']:.0f} – {row['ci_high']:.0f}",
            f"{100 * row['stuck']:.1f}%",
        ]
        for row in curve.iter_rows(named=True)
    ]
    return Table(["agent", "regret", "95% interval", "stuck runs"], rows, "Stuck: total reward under 2000.")


def _regret_words(curve: pl.DataFrame) -> list[str]:
    """What the curve shows, said from the numbers: where it improves, where it stops, and the stuck runs."""
    sampled = curve.filter(pl.col("n").is_not_null())
    best = sampled.row(int(sampled["regret"].arg_min() or 0), named=True)
    last = sampled.row(-1, named=True)
    level = (
        f"The least regret is at n = {best['n']}"
        if best["n"] != last["n"]
        else f"Regret is least at the largest n tried, {best['n']}"
    )
    apart = last["ci_low"] > best["ci_high"]
    tail = "beyond it regret rises again" if apart else "beyond it the intervals overlap: the curve has levelled off"
    claim = "The paper says that performance improves monotonically with n and that under 1% of runs get stuck."
    stuck = ", ".join(f"{100 * row['stuck']:.1f}% at n = {row['n']}" for row in sampled.iter_rows(named=True))
    return [f"{claim} {level}; {tail}." if best["n"] != last["n"] else f"{claim} {level}.", f"Stuck runs: {stuck}."]
