"""Who plays, and how long: every registered agent that fits, and the variants worth a row of their own."""

from typing import NamedTuple

from beliefbound.base.errors import ParameterError
from beliefbound.lab.engine.registry import AGENTS, canonical_agent

REFERENCE = "mcbrl:n=16"

_UNIFORM = "prior=known-rewards,concentration=1.0"  # as the systems were run that the paper quotes

VARIANTS: dict[str, tuple[str, ...]] = {
    "mcbrl": ("mcbrl:n=1", "mcbrl:n=8", REFERENCE, "mcbrl:prior=tied"),
    "mcbrl-lookahead": (
        "mcbrl-lookahead",
        "mcbrl-lookahead:schedule=moved",
        "mcbrl-lookahead:schedule=bracket",
    ),
    "branch-and-bound": ("branch-and-bound", "branch-and-bound:leaves=mmbi", "branch-and-bound:leaves=pairs"),
    "beetle": (f"beetle:{_UNIFORM}", "beetle:prior=semi-tied", "beetle:prior=tied"),
    "sem": ("sem", f"sem:horizon=15,{_UNIFORM}"),
    "amp-em": ("amp-em", f"amp-em:horizon=15,{_UNIFORM}"),
    "boss": ("boss", "boss:prior=semi-tied", "boss:prior=tied"),
    "vpi": ("vpi:variant=importance", "vpi:variant=repair"),
    "bamcp": ("bamcp:simulations=100", "bamcp"),
}


class Length(NamedTuple):
    """Steps of a run and how many runs are played, unless one says otherwise."""

    steps: int
    runs: int


_LENGTHS = {
    "chain": Length(1000, 500),
    "double-loop": Length(1000, 200),
    "grid": Length(1000, 200),
    "grid:10": Length(2000, 50),
    "maze": Length(20_000, 10),
    "riverswim": Length(5000, 200),
    "riverswim:form=strehl": Length(5000, 200),
    "six-arms": Length(5000, 100),
}


def length_of(environment: str) -> Length:
    """What the papers play on an environment; 250 steps where MDPs are drawn from a prior, 1000 elsewhere."""
    if environment.startswith(("drawn-", "prior-")):
        return Length(250, 500)
    return _LENGTHS.get(environment, Length(1000, 100))


def with_prior(agent: str, prior: str | None) -> str:
    """An agent told a prior, where it can be told one and was not."""
    parsed = AGENTS.parse(agent)
    if prior is None or "prior" not in parsed.values or "prior" in parsed.given:
        return str(parsed)
    return canonical_agent(f"{parsed}{',' if ':' in str(parsed) else ':'}prior={prior}")


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
