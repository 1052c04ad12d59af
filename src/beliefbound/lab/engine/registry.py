"""Agents by name. `@agent` registers one; `make_agent` makes one from `"name:parameters"`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from beliefbound.base.errors import BeliefError, ParameterError
from beliefbound.base.grammar import Parameter, Parsed, Value
from beliefbound.base.plugins import Build, Registry, blamed
from beliefbound.beliefs.belief import Belief
from beliefbound.beliefs.capabilities import Capability, in_arrays, lacking
from beliefbound.lab.engine.priors import belief_for
from beliefbound.lab.engine.protocol import Agent, CompiledAgent, Machine, Setting, setting_of
from beliefbound.lab.envs.adapter import DiscreteEnv
from beliefbound.lab.envs.environment import Environment

_DRAWN: dict[str, Callable[..., Agent]] = {}  # how agents play on beliefs that count nothing, by name
AGENTS = Registry("agent", group="beliefbound.agents", example="mcbrl:n=16", package="beliefbound.lab.agents")


def agent(
    name: str,
    *,
    summary: str,
    parameters: tuple[Parameter, ...] = (),
    presets: Mapping[str, Mapping[str, Value]] | None = None,
    drawn: Callable[..., Agent] | None = None,
) -> Callable[[Build], Build]:
    """Register a function `build(setting, **parameters)` that returns a `Machine`, or a class of plain Python.

    Args:
      name: by which it is called.
      summary: one line about it.
      parameters: `grammar.Number` and `grammar.Choice`, each with a default, in canonical order. `PRIOR` makes it
        model-based (see `priors`), `DISCOUNT` gives it a discount of its own.
      presets: named sets of values, for `preset=name`.
      drawn: `drawn(setting, **parameters)` returns the agent for a belief that draws models and counts nothing
        (`lab.engine.drawn`); without it the agent refuses such a belief.

    >>> import numpy as np
    >>> from beliefbound.lab.agents import Setting, make_agent
    >>> from beliefbound.lab.envs import make_env
    >>> @agent("first", summary="the first action that a state offers")
    ... class First:
    ...     def __init__(self, setting: Setting) -> None:
    ...         self.available = setting.available
    ...     def reset(self, seed: int) -> None: ...
    ...     def act(self, state: int) -> int:
    ...         return int(np.argmax(self.available[state]))
    ...     def observe(self, state: int, action: int, reward: float, next_state: int) -> None: ...
    >>> make_agent("first", make_env("chain")).act(3)
    0
    """
    if drawn is not None:
        _DRAWN[name] = drawn
    return AGENTS.register(name, summary=summary, parameters=parameters, presets=presets)


def agents() -> dict[str, str]:
    """Every agent, and one line about it.

    >>> agents()["random"]
    'every available action with equal probability'
    """
    return {family.name: family.summary for family in AGENTS.families().values()}


def agent_parameters(name: str) -> dict[str, str]:
    """The parameters of an agent with their defaults, and one line about each.

    >>> agent_parameters("exploit")["sweeps=1"]
    'value-iteration sweeps a step'
    """
    return {f"{p.name}={p.shown}": p.about for p in AGENTS.find(name).parameters}


def parse_agent(spec: str) -> Parsed:
    """A string as its family and a value for every parameter."""
    return AGENTS.parse(spec)


def canonical_agent(spec: str) -> str:
    """The one string by which an agent's results are stored: parameters in order, defaults left out.

    >>> canonical_agent("mcbrl: sweeps=10, n=8, interval=20")
    'mcbrl:n=8,interval=20'
    """
    return str(parse_agent(spec))


def make_agent(
    spec: str,
    environment: Environment | DiscreteEnv,
    *,
    discount: float | None = None,
    belief: Belief | None = None,
) -> Agent:
    """The agent that `spec` describes, for an environment.

    Args:
      spec: a name and parameters, such as `"mcbrl:n=16"`; `agents()` lists them.
      environment: what it will be played on; it learns the sizes, the available actions and the range of rewards
        (the oracle: everything). A gymnasium environment goes through `DiscreteEnv`.
      discount: of its planning; default the environment's. A `discount=` in `spec` comes before both.
      belief: the prior of a model-based agent, in place of `prior=` in `spec`. One that counts, such as a
        `DirichletBelief`, serves all of them; of others, `exploit`, `hypotheses`, `mcbrl`, `psrl` and `thompson` draw.

    >>> from beliefbound.lab.envs import make_env
    >>> make_agent("mcbrl", make_env("chain"))
    CompiledAgent('mcbrl:n=16', 5 states, 2 actions)
    >>> make_agent("mcbrl:m=8", make_env("chain"))
    Traceback (most recent call last):
    beliefbound.base.errors.ParameterError: 'mcbrl:m=8': mcbrl has no 'm'; the form is 'mcbrl:n=16,...
    """
    parsed = parse_agent(spec)
    values = dict(parsed.values)
    if belief is not None:
        _refuse_second_prior(parsed)
    own = values.get("discount")
    setting = setting_of(environment, discount if own is None else float(own), belief)
    if "discount" in values:
        values["discount"] = setting.discount
    with blamed(f"the agent {parsed}", foreign=parsed.foreign):
        made = _built(parsed, setting, values)
        if isinstance(made, Machine):
            return CompiledAgent(str(parsed), setting, made)
        if not isinstance(made, Agent):
            raise ParameterError(
                f"the agent {parsed.family.name!r} makes {made!r}; it must be a Machine, or have reset, act and observe"
            )
        return made


def _built(parsed: Parsed, setting: Setting, values: dict[str, Value]) -> Any:
    """By counts, unless the belief has none."""
    if setting.belief is None and values.get("prior", "flat") not in ("flat", "known-rewards"):
        setting = replace(setting, belief=belief_for(setting, values))
    if setting.belief is None or in_arrays(setting.belief) is not None:
        return parsed.family.build(setting, **values)
    if parsed.family.name not in _DRAWN:
        able = ", ".join(sorted(name for name in AGENTS.families() if name in _DRAWN))
        raise BeliefError(
            f"{lacking(setting.belief, Capability.COUNT, f'the agent {parsed.family.name}')}; {able} do with less"
        )
    return _DRAWN[parsed.family.name](setting, **values)


def _refuse_second_prior(parsed: Parsed) -> None:
    if "prior" not in parsed.values:
        raise ParameterError(f"{parsed.family.name} learns no model of the environment, so it can use no belief")
    twice = [name for name in ("prior", "concentration", "successes", "failures") if name in parsed.given]
    if twice:
        raise ParameterError(f"{twice[0]}= in {str(parsed)!r} and belief= are two priors; keep one")
