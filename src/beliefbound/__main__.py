"""`python -m beliefbound` is the command line."""

from beliefbound.cli import command

command()
