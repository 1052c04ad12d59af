"""`beliefbound verify`."""

from pathlib import Path
from typing import Annotated

import typer

from beliefbound.cli.app import Threads, app
from beliefbound.cli.show import closing, loading


@app.command()
def verify(
    certificate: Annotated[
        Path,
        typer.Argument(
            help="bounds.json of `beliefbound bound`, robust.json of `robust`, certificate.json of `plan`, or what "
            "`certify` wrote."
        ),
    ],
    models: Annotated[
        Path | None, typer.Argument(help="The models, or the log, it was made from; default: where the file says.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="The policy that was certified, where it is no longer there; agent.py:Class must be named."),
    ] = None,
    threads: Threads = None,
) -> None:
    """Make a certificate again, from its seed and effort, and compare everything that was written.

    The same version on the same kind of machine must find the same, bit for bit: every entry of the certificate, the
    policies, the tables, the pictures and the page beside it; and no file of another certificate may stand there. It
    takes as long as the certificate took.

    The exit code is 0 when everything was compared and is the same; 1 when something is different, or cannot be read;
    3 when not everything could be compared, which is said first: files that are missing, or another version or kind of
    machine, where bits may differ and then only the numbers of the certificate are compared, to a millionth of the
    value.

    Example: `beliefbound verify chain8-bounds/bounds.json examples/chain8`
    """
    with loading():
        from beliefbound.jobs.verify import verify as verified

    with closing() as (watch, _):
        result = verified(certificate, models, policy=policy, threads=threads, watch=watch)
    for words in result.words:
        print(words)
    if result.code:
        raise typer.Exit(result.code)
