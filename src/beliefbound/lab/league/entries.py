"""Who plays, and how long: every registered agent that fits, and the variants worth a row of their own.

Settings follow one rule, agent by agent in `docs/league.md`: what the authors published or wrote into their program,
else what did best on random MDPs outside the leagues (`benchmarks/defaults.py`). Of how an agent does in a league
nothing is chosen.
"""

from typing import NamedTuple

from beliefbound.base.errors import ParameterError
from beliefbound.lab.engine.registry import AGENTS, canonical_agent

REFERENCE = "mcbrl:n=16"
ORACLE = "oracle"
EVERYTHING = "the MDP"  # is what it is told
NOTHING = "nothing"  # is what agents without a prior are told, where others are told one

_UNIFORM = "prior=known-rewards,concentration=1.0"  # as the systems were run that the paper quotes

VARIANTS: dict[str, tuple[str, ...]] = {
    "mcbrl": ("mcbrl:n=1", "mcbrl:n=8", REFERENCE, "mcbrl:prior=tied"),
    "mcbrl-lookahead": (
        "mcbrl-lookahead",
        "mcbrl-lookahead:schedule=moved",
        "mcbrl-lookahead:schedule=bracket",
        "mcbrl-lookahead:n=64,schedule=moved",
        "mcbrl-lookahead:n=64,depth=3,schedule=moved",
    ),
    "branch-and-bound": ("branch-and-bound", "branch-and-bound:leaves=mmbi", "branch-and-bound:leaves=pairs"),
    "beetle": ("beetle", f"beetle:{_UNIFORM}", "beetle:prior=semi-tied", "beetle:prior=tied"),
    "boss": ("boss", "boss:prior=semi-tied", "boss:prior=tied"),
    "vpi": ("vpi:variant=global", "vpi:variant=importance", "vpi:variant=repair", "vpi:variant=local"),
    "bamcp": ("bamcp:simulations=100", "bamcp"),
    "dither": ("dither:explore=epsilon", "dither:explore=softmax"),
    "psrl": ("psrl", "psrl:episodes=dynamic"),
    "ucrl2": ("ucrl2", "ucrl2:radii=bernstein"),
}


class Length(NamedTuple):
    """Steps of a run and how many runs are played, unless one says otherwise; the discount with which all plan."""

    steps: int
    runs: int
    discount: float | None = None  # the environment's own


# Discounts: the smallest of 0.95, 0.97, 0.98 and 0.99 with which the optimal policy earns 99.9% or more of what so many
# steps allow (a test looks), so that the oracle is the upper line that its name promises.
LENGTHS = {
    "chain": Length(1000, 500, 0.95),
    "double-loop": Length(1000, 200, 0.95),
    "grid": Length(1000, 200, 0.95),
    "grid:10": Length(2000, 50, 0.95),
    "maze": Length(20_000, 30, 0.98),
    "riverswim": Length(5000, 200, 0.95),
    "riverswim:form=strehl": Length(5000, 200, 0.95),
    "six-arms": Length(5000, 100, 0.95),
}


def length_of(environment: str) -> Length:
    """What the papers play on an environment; 250 steps where MDPs are drawn from a prior, 1000 elsewhere."""
    if environment.startswith(("drawn-", "prior-")):
        return Length(250, 500)
    return LENGTHS.get(environment, Length(1000, 100))


def told(agent: str, prior: str | None) -> str:
    """What an agent was told that the others of a league were not: `""` where it has the league's prior, or where a
    league has none; else its own prior, or `"nothing"` if it takes none; `"the MDP"` of the oracle. Those who were told
    different things are not rivals.

    >>> told("thompson", None), told("boss:prior=tied", None), told("boss:prior=tied", "tied"), told("oracle", None)
    ('', 'tied', '', 'the MDP')
    >>> told("mbie", None), told("mbie", "known-rewards")
    ('', 'nothing')
    """
    if agent.partition(":")[0] == ORACLE:
        return EVERYTHING
    own = AGENTS.parse(agent).values.get("prior", "flat" if prior is None else NOTHING)
    return "" if own == (prior or "flat") else str(own)


def with_prior(agent: str, prior: str | None) -> str:
    """An agent told a prior, where it can be told one and was not."""
    parsed = AGENTS.parse(agent)
    if prior is None or "prior" not in parsed.values or "prior" in parsed.given:
        return str(parsed)
    return canonical_agent(f"{parsed}{',' if ':' in str(parsed) else ':'}prior={prior}")


def without_prior(agent: str, prior: str | None) -> str:
    """An agent's name without the prior that all were told: what a table of the league calls it.

    >>> without_prior("mcbrl:n=16,prior=environment", "environment"), without_prior("boss:prior=tied", "environment")
    ('mcbrl:n=16', 'boss:prior=tied')
    """
    family, _, values = agent.partition(":")
    kept = ",".join(value for value in values.split(",") if value != f"prior={prior}")
    return f"{family}:{kept}" if kept else family


def entries(prior: str | None) -> list[str]:
    """The agents that enter: each registered one with its defaults, or with the variants above in their place. Agents
    that must be told something, such as a file, are left to whoever names them."""
    return [
        with_prior(variant, prior)
        for family in AGENTS.families().values()
        if not any(parameter.required for parameter in family.parameters)
        for variant in VARIANTS.get(family.name, (family.name,))
    ]


def edition(agent: str) -> str:
    """What marks the runs of an agent that is not ours."""
    made = AGENTS.parse(agent).edition
    return f"-{made}" if made else ""


def chosen(agents: list[str], prior: str | None) -> list[str]:
    """The agents that a person named, in canonical form, each once, the one that all are compared with among them."""
    found = list(dict.fromkeys(with_prior(agent, prior) for agent in agents))
    if not found:
        raise ParameterError("no agent was named; leave --agents out for all of them")
    reference = with_prior(REFERENCE, prior)
    return found if reference in found else [*found, reference]
