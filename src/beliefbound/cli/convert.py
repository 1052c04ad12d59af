"""`beliefbound convert`."""

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Absorbing, app
from beliefbound.cli.show import loading


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="Models: a folder, or a .pomdpx, .pomdp or .npz file.")],
    target: Annotated[Path, typer.Argument(help="What to write; the ending says which format, none is a folder.")],
    reward_signal: Annotated[
        str | None,
        typer.Option(help="What the agent sees of rewards: known, deterministic, bernoulli, unobserved, continuous."),
    ] = None,
    absorbing: Absorbing = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
) -> None:
    """Convert models between formats: folders of CSV, POMDPX, Cassandra's .pomdp, arrays of draws (.npz).

    Hidden-model problems only: a part of the state is always seen, the rest never is and never changes. Names of
    states, actions and models are kept; what a format cannot hold is refused, or said.

    Example: `beliefbound convert gouldian.pomdpx gouldian/`
    """
    with loading():
        from beliefbound.beliefs.folder import read_models, write_models

    held = read_models(source, reward_signal=reward_signal, absorbing=absorbing or ())  # type: ignore[arg-type]
    with warnings.catch_warnings(record=True) as changed:
        warnings.simplefilter("always")
        write_models(
            target,
            held.training,
            discount=held.discount,
            initial=held.initial,
            test=held.test,
            true=held.true,
            overwrite=overwrite,
        )
    for note in (*held.notes, *(str(warning.message) for warning in changed)):
        print(f"note: {note}", file=sys.stderr)
    belief = held.training
    print(
        f"{belief.n_models} models, {belief.n_states} states, {belief.n_actions} actions, rewards "
        f"{belief.reward_signal}, discount {held.discount!r}: {target}"
    )
