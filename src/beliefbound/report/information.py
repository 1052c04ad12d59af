"""What to measure next, in the report of a set of models: tries of a state and an action, and knowing everything."""

from pathlib import Path

from beliefbound.bounds.information.result import Information, observations
from beliefbound.policy.naming import printable
from beliefbound.report.figures import figure, save
from beliefbound.report.page import Picture, Section, Table

_SHOWN = 20  # lines of the ranking


def information_words(found: Information) -> list[str]:
    """The first of the ranking, and what knowing the model would be worth."""
    ranking, tries = found.ranking(), found.tries
    if not ranking:
        return ["Nothing is worth measuring before acting."]
    first = ranking[0]
    count = "" if tries is None else observations(tries)
    what = printable(found.names.pair(first.state, first.action))
    holds = "proven" if found.confidence == 1.0 else f"{100 * found.confidence:.4g}% confidence"
    return [
        f"The expected value of sample information (EVSI) of {count} of ({what}), the first of the ranking, is between "
        f"{first.low:.6g} and {first.high:.6g}; that of perfect information (EVPI) is between {found.evpi.low:.6g} and "
        f"{found.evpi.high:.6g} ({holds})."
    ]


def information_sections(found: Information | None, place: Path) -> list[Section]:
    """The ranking as a table and a picture, which is written to `place`."""
    if found is None:
        return []
    with figure() as (drawn, axes):
        found.plot(axes)
        picture = save(drawn, place / "information")[1]
    ranking = found.ranking()
    rows = [
        [found.names.state(x.state), found.names.action(x.action), f"{x.low:.6g}", f"{x.high:.6g}"] for x in ranking
    ]
    more = f" The first {_SHOWN} of {len(rows)}." if len(rows) > _SHOWN else ""
    count = "" if found.tries is None else observations(found.tries)
    caption = f"What {count} of each state and action would raise the value by (EVSI), the surest first. Where "
    caption += f"intervals overlap it is open which is worth more.{more}"
    table = Table(["state", "action", "at least", "at most"], rows[:_SHOWN], caption)
    words = [*information_words(found), "Worth is the rise of the value of acting optimally, learning included."]
    return [Section("What to measure next", words, [table], [Picture(picture, "The most that measuring is worth.")])]
