"""`beliefbound verify`."""

from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Threads, app
from beliefbound.cli.show import closing, loading


@app.command()
def verify(
    bounds: Annotated[
        Path, typer.Argument(help="A bounds.json of `beliefbound bound`, or a robust.json of `beliefbound robust`.")
    ],
    models: Annotated[
        Path | None, typer.Argument(help="The models it was made from; default: where the file says they are.")
    ] = None,
    threads: Threads = None,
) -> None:
    """Make a certificate again, from its seed and effort, and compare every number.

    The same version on the same kind of machine must find the same numbers, bit for bit; another one must find the
    same ends within a millionth of the value, and is named. The policies beside the file must be those that were
    certified. It takes as long as the certificate took. The exit code is 0 when it was found again.

    Example: `beliefbound verify chain8-bounds/bounds.json examples/chain8`
    """
    with loading():
        from beliefbound.report.verify import verify_bounds
        from beliefbound.report.verify_robust import is_robust, verify_robust

    check = verify_robust if is_robust(bounds) else verify_bounds
    with closing() as (watch, _):
        result = check(bounds, models, threads=threads, watch=watch)
    for words in result.words:
        print(words)
    if not result.same:
        raise typer.Exit(1)
