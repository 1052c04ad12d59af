"""`beliefbound agents` and `beliefbound envs`: what can be named in a spec."""

from typing import Annotated

import typer

from beliefbound.cli.app import Plugins, app, load_plugins
from beliefbound.cli.show import loading


@app.command()
def agents(
    name: Annotated[str | None, typer.Argument(help="Show this agent's parameters.")] = None, plugin: Plugins = None
) -> None:
    """List the agents, or the parameters of one.

    Parameters follow the name: `mcbrl:n=8,schedule=constant,interval=20`.
    """
    with loading():
        from beliefbound.lab.engine.registry import agent_parameters
        from beliefbound.lab.engine.registry import agents as known

        load_plugins(plugin)
    _names(agent_parameters(name) if name else known())


@app.command()
def envs(plugin: Plugins = None) -> None:
    """List the environments and their parameters.

    Values follow the name in this order, or as key=value: `grid:10`, `garnet:50,4,5,seed=3`.
    """
    with loading():
        from beliefbound.lab.envs import environments

        load_plugins(plugin)
    _names(environments())


def _names(known: dict[str, str]) -> None:
    width = max(map(len, known), default=0)
    for name, text in known.items():
        print(f"{name:<{width}}  {text}")
