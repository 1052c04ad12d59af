"""`gym:FrozenLake-v1,is_slippery=False`: an environment of gymnasium's registry that has a transition table `P`.

Other keys are passed on to the environment, read as `True`, `False`, a number or text. Every outcome of a pair pays
the expected reward of that pair (`from_gymnasium`); an episode ends where the table says so.
"""

from beliefbound.base.errors import BeliefboundError, ParameterError
from beliefbound.base.grammar import Text
from beliefbound.lab.envs.environment import Environment, environment_from_mdp
from beliefbound.lab.envs.registry import env
from beliefbound.models.convert.gym_table import from_gymnasium

_REFUSED = ("render_mode", "disable_env_checker")  # nothing is drawn here, and warnings are wanted


@env(
    "gym",
    summary="an environment of gymnasium with a transition table, by its id: gym:FrozenLake-v1,is_slippery=False",
    parameters=(Text("id", about="the id of a gymnasium environment"),),
    others=True,
)
def gym(name: str, *, id: str, **others: str) -> Environment:
    """The MDP of the table."""
    import gymnasium

    if ":" in id:  # gymnasium would import what stands before the colon
        raise ParameterError(f"{name!r}: the id {id!r} names a module; give the id of a registered environment alone")
    refused = [key for key in others if key in _REFUSED]
    if refused:
        raise ParameterError(f"{name!r}: {refused[0]} has no meaning here; leave it out")
    try:
        world = gymnasium.make(id, **{key: _value(text) for key, text in others.items()})
    except Exception as cause:  # ids and keys are checked by gymnasium and by the environment, each in its own way
        reason = " ".join(str(cause).split()) or type(cause).__name__
        raise ParameterError(f"{name!r}: gymnasium cannot make it: {reason}") from None
    try:
        return environment_from_mdp(from_gymnasium(world), name=name)
    except BeliefboundError as cause:
        raise ParameterError(f"{name!r}: {cause}") from None
    finally:
        world.close()


def _value(text: str) -> bool | int | float | str:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
