"""Agents by name. To add one: a module in `kernels.agents`, one here with a `FAMILY`, and its line below."""

from beliefbound.agents import exploit, mcbrl, oracle, qlearning, random, thompson
from beliefbound.agents.agent import CompiledAgent, setting_of
from beliefbound.agents.spec import AgentSpec
from beliefbound.envs.adapter import DiscreteEnv
from beliefbound.envs.environment import Environment

FAMILIES = {
    family.name: family
    for family in (
        mcbrl.FAMILY,
        thompson.FAMILY,
        exploit.FAMILY,
        oracle.FAMILY,
        random.FAMILY,
        qlearning.FAMILY,
    )
}


def agents() -> dict[str, str]:
    """Every agent, and one line about it.

    >>> agents()["random"]
    'every available action with equal probability'
    """
    return {family.name: family.summary for family in FAMILIES.values()}


def agent_parameters(name: str) -> dict[str, str]:
    """The parameters of an agent with their defaults, and one line about each.

    >>> agent_parameters("exploit")["sweeps=1"]
    'value-iteration sweeps a step'
    """
    return {f"{p.name}={p.shown}": p.about for p in parse_agent(name).family.parameters}


def parse_agent(spec: str) -> AgentSpec:
    """A string as an `AgentSpec`: the family and a value for every parameter."""
    return AgentSpec.parse(spec, FAMILIES)


def canonical_agent(spec: str) -> str:
    """The one string by which an agent's results are stored: parameters in order, defaults left out.

    >>> canonical_agent("mcbrl: sweeps=10, n=8, interval=20")
    'mcbrl:n=8,interval=20'
    """
    return str(parse_agent(spec))


def make_agent(spec: str, environment: Environment | DiscreteEnv, *, discount: float | None = None) -> CompiledAgent:
    """The agent that `spec` describes, for an environment.

    Args:
      spec: a name and parameters, such as `"mcbrl:n=16"`; `agents()` lists them.
      environment: what it will be played on; it learns the sizes, the available actions and the range of rewards
        (the oracle: everything). A gymnasium environment goes through `from_gymnasium_env`.
      discount: of its planning; default the environment's. A `discount=` in `spec` comes before both.

    >>> from beliefbound.envs import make_env
    >>> make_agent("mcbrl", make_env("chain"))
    CompiledAgent('mcbrl:n=16', 5 states, 2 actions)
    >>> make_agent("mcbrl:m=8", make_env("chain"))
    Traceback (most recent call last):
    beliefbound.errors.ParameterError: 'mcbrl:m=8': mcbrl has no 'm'; the form is 'mcbrl:n=16,...
    """
    parsed = parse_agent(spec)
    own = parsed.values.get("discount")
    setting = setting_of(environment, discount if own is None else float(own))
    return CompiledAgent(str(parsed), setting, parsed.family.build(setting, parsed.values))
