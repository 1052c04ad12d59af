"""The page of the command line, cli.md, from the commands themselves: written when the pages are built."""

import inspect
from pathlib import Path
from typing import Any

from typer.main import get_command

from beliefbound.cli import app

PAGE = Path(__file__).parent / "cli.md"
LEAD = """# The command line

Every command, as `--help` has it. An error is one line and exit code 1; other codes are told where they mean something.
"""


def page() -> str:
    """All commands, in the order of `beliefbound --help`."""
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    return "\n".join([LEAD, *(_command(name, each) for name, each in commands.items() if not each.hidden)])


def _command(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
    words = " ".join(each.name.upper() if each.required else f"[{each.name.upper()}]" for each in arguments)
    text = inspect.cleandoc(command.help or "")
    parts = [f"## beliefbound {name}", f"`beliefbound {name} {words} [options]`".replace("  ", " "), text]
    if arguments:
        rows = [f"| `{each.name.upper()}` | {_cell(each.help)} |" for each in arguments]
        parts.append("\n".join(["| argument | |", "|---|---|", *rows]))
    if options:
        rows = [f"| {_called(each)} | {_default(each)} | {_cell(each.help)} |" for each in options]
        parts.append("\n".join(["| option | default | |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _called(option: Any) -> str:
    return ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])


def _default(option: Any) -> str:
    """What it is where nothing is given and the text does not say so."""
    if option.required:
        return "required"
    given = option.default
    return "" if option.is_flag or given is None or callable(given) or given == () else f"`{given}`"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


def setup(sphinx: Any) -> None:
    """Sphinx asks for this, before it looks for pages."""
    PAGE.write_text(page(), encoding="utf-8")
