"""The page of demonstrations: what they want, what to do, how sure that is, what to ask."""

from pathlib import Path
from typing import Any

import numpy as np

from beliefbound.base.validation import FloatArray
from beliefbound.report.figures import figure, save
from beliefbound.report.from_log.headline import above
from beliefbound.report.imitation.result import Imitated, Mean
from beliefbound.report.page import Page, Picture, Section, Table
from beliefbound.report.using import using_section

_ROWS = 300  # of a table; all of them are in the files
_QUESTIONS = 15
_BARS = 60  # states that a picture has space for


def page_of(done: Imitated, figures: Path) -> Page:
    """Everything that was found, as a page; pictures are written to `figures`."""
    found, demos = done.found, done.found.demonstrations
    log = demos.log
    warned = next((note for note in found.notes() if note.startswith("WARNING")), "")
    doubt = f"Read with care: {warned.removeprefix('WARNING: ')}. " if warned else ""
    return Page(
        title=f"What {Path(demos.source).name[:200]} shows",
        lead=f"{doubt}{_sentence(done.want_words())} {_sentence(done.loss_words())}",
        facts=[
            ("steps shown", f"{demos.n_steps:,}"),
            ("transitions in all", f"{log.n_rows:,}"),
            ("demonstrators", str(demos.n_demonstrators)),
            ("states", str(log.n_states)),
            ("actions", str(log.n_actions)),
            ("discount", f"{found.discount:g}"),
            ("draws", str(found.belief.n_models)),
        ],
        sections=[
            _wanted(done, figures),
            _which(done),
            _sure(done),
            _unclear(done),
            using_section("policy.json", done.names, _start(done)),
            _trust(done),
        ],
    )


def _start(done: Imitated) -> FloatArray:
    start = done.found.belief.initial
    assert start is not None
    return start


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _wanted(done: Imitated, figures: Path) -> Section:
    found = done.found
    text = [
        f"Believed before: {found.prior}. Rewards are paid in the state that is left; choices show how they differ."
    ]
    if found.demonstrations.n_demonstrators > 1:
        text.append("This is about somebody new from where the demonstrators come from; their own rewards are below.")
    with figure(figsize=(9.0, 4.2) if done.grid else (7.2, 4.2)) as (drawn, axes):
        if done.grid:
            draw_maps(drawn, axes, found.reward_mean.max(axis=1), found.reward_spread.max(axis=1), done.grid)
        else:
            found.plot(axes)
            axes.set_xlim(-0.7, min(found.belief.n_states, _BARS) - 0.3)
        path = save(drawn, figures / "rewards")[1]
    caption = "What they seem to want: mean and standard deviation of each reward, over what the steps leave possible."
    tables = []
    names = found.demonstrations.demonstrators
    if len(names) > 1:
        means = found.rewards.mean(axis=0).max(axis=-1)
        header = ["state", *(name[:40] for name in names), "somebody new"]
        rows = [
            [found.demonstrations.log.state_name(s)[:200], *(f"{means[k, s]:.3f}" for k in range(len(means)))]
            for s in range(found.belief.n_states)
        ]
        tables.append(Table(header, rows[:_ROWS], "Mean rewards of each demonstrator."))
    return Section("What they seem to want", text, tables=tables, pictures=[Picture(path, caption)])


def draw_maps(drawn: Any, axes: Any, mean: FloatArray, spread: FloatArray, grid: tuple[int, int]) -> None:
    """Mean and spread of rewards `[s]` as maps of `grid` rows and columns, side by side."""
    axes.set_axis_off()
    for place, values, what in ((121, mean, "mean"), (122, spread, "standard deviation")):
        part = drawn.add_subplot(place)
        image = part.imshow(
            values.reshape(grid), cmap="viridis" if what == "mean" else "magma", interpolation="nearest"
        )
        drawn.colorbar(image, ax=part, shrink=0.8)
        part.set_title(f"reward, {what}", fontsize=10)
        part.set_xticks([])
        part.set_yticks([])
        part.grid(visible=False)


def _which(done: Imitated) -> Section:
    log, shown = done.found.demonstrations.log, done.found.demonstrations.visits.sum(axis=0)
    actions, mean, spread = done.policy.actions, done.found.reward_mean, done.found.reward_spread
    assert actions is not None
    rows = [
        [
            log.state_name(s)[:200],
            log.action_name(int(a))[:200],
            f"{100 * done.support[s]:.0f}%",
            str(int(shown[s, a])),
            str(int(shown[s].sum())),
            f"{mean[s].max():.3f} ± {spread[s, int(mean[s].argmax())]:.3f}",
        ]
        for s, a in enumerate(actions[:_ROWS])
        if not log.terminal[s]
    ]
    header = ["state", "action", "optimal in", "shown there", "steps shown in the state", "reward"]
    more = f" The first {_ROWS} states; all are in policy.csv." if len(actions) > _ROWS else ""
    caption = f"Optimal in: the share of draws in which the action is the best one there.{more}"
    return Section("What to do", [f"The policy was made by {done.origin}."], tables=[Table(header, rows, caption)])


def _sure(done: Imitated) -> Section:
    text = [
        _sentence(done.loss_words()),
        f"That is the mean of what the best policy of each draw earns more in it. The policy was chosen on the draws "
        f"of half of the chains and valued on those of the others, worth {done.loss.ess:.0f} independent ones.",
    ]
    if done.bracket is not None:
        text.append(
            f"On the draws it was chosen on, it earns {done.own:.6g}, and no policy, not even one that learns how the "
            f"world works as it acts, more than {above(done.bracket.upper.value, 6)}: proven of these draws, not of "
            f"what the demonstrations leave possible."
        )
    rows = [["this policy", _mean(done.value), ""]]
    rows += [[r.name, _mean(r.value), f"{r.gain.low:.3g} to {r.gain.high:.3g}"] for r in done.rivals]
    table = Table(["policy", "value", "this one earns more"], rows, "", frozenset({0}))
    return Section("How sure", text, tables=[table])


def _mean(x: Mean) -> str:
    return f"{x.value:.4g} ± {0.5 * (x.high - x.low):.2g}"


def _unclear(done: Imitated) -> Section:
    log = done.found.demonstrations.log
    order = [int(s) for s in np.argsort(done.support, kind="stable") if not log.terminal[s]][:5]
    told = ", ".join(f"{done.state(s)} ({100 * done.support[s]:.0f}%)" for s in order)
    text = [f"What to do is least clear in {told}.", _sentence(done.question_words())]
    asked = [q for q in done.questions[:_QUESTIONS] if q.worth > 0.0]
    if not asked:
        return Section("What is still unclear, and what to ask", text)
    rows = [[done.question(q), f"{q.worth:.4g}"] for q in asked]
    caption = "Worth: what the answer would raise the value of the best of a pool of policies by, on the draws."
    return Section("What is still unclear, and what to ask", text, tables=[Table(["question", "worth"], rows, caption)])


def _trust(done: Imitated) -> Section:
    found = done.found
    rows = [[name, text] for name, text in found._rows() if name != "note"]
    rows += [["steps taken, of those tried", ", ".join(f"{k} {100 * v:.0f}%" for k, v in found.accepted.items())]]
    mixing = [[m.name, f"{m.rhat:.3f}", f"{m.bulk:.0f}", f"{m.tail:.0f}"] for m in found.mixing[:_QUESTIONS]]
    text = [note.removeprefix("WARNING: ") + "." for note in found.notes()]
    tables = [Table(["", ""], rows)]
    if mixing:
        caption = "Whether the chains have met (R̂, good up to 1.01) and how many independent draws theirs are worth."
        tables.append(Table(["quantity", "R̂", "middle", "tails"], mixing, caption))
    return Section("How far to trust this", text, tables=tables)
