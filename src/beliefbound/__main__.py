"""`python -m beliefbound` is the command line."""

from beliefbound.cli import main

main()
