"""Table 1 as published, and the settings behind it."""

from typing import NamedTuple


class PublishedRow(NamedTuple):
    """A row of Table 1: mean total reward and its interval; where given, utility and 80% percentile interval.

    `agent` reproduces a row of the paper's own. Rows that it quotes from others are run too, by the agents of `here`:
    their settings are ours, as those behind the published figures are not known.
    """

    model: str
    agent: str | None
    total: float
    ci_low: float
    ci_high: float
    utility: float | None = None
    p10: float | None = None
    p90: float | None = None
    here: tuple[str, ...] = ()


BEETLE_PLANS = 5  # a plan's worth depends on its random points, so the row pools several
UNIFORM = "prior=known-rewards,concentration=1.0"  # "no information", where rewards are told: theirs is not published

TABLE1 = (
    PublishedRow("Exploit", "exploit", 3287, 3275, 3299, 26.64, 2518, 3842),
    PublishedRow("MCBRL n=1", "mcbrl:n=1", 3166, 3159, 3173, 28.50, 2748, 3582),
    PublishedRow("MCBRL n=8", "mcbrl:n=8", 3358, 3350, 3366, 29.65, 2932, 3800),
    PublishedRow("MCBRL n=16", "mcbrl:n=16", 3376, 3368, 3384, 29.95, 2946, 3830),
    PublishedRow(
        "BEETLE",
        None,
        1754,
        1712,
        1796,
        here=(
            f"beetle:{UNIFORM}",
            *(f"beetle:seed={k},{UNIFORM}" for k in range(2, BEETLE_PLANS + 1)),
        ),
    ),
    PublishedRow("AMP-EM", None, 2180, 2108, 2254, here=(f"amp-em:horizon=15,{UNIFORM}",)),
    PublishedRow("SEM", None, 2052, 2000, 2111, here=(f"sem:horizon=15,{UNIFORM}",)),
)

RUNS = 10_000
OTHERS = 10  # rows of others have one run for so many of the paper's own: they are slower
STEPS = 1000
DISCOUNT = 0.95
STUCK_BELOW = 2000.0
SAMPLES = (1, 2, 4, 8, 16, 32, 64)
