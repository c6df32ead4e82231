"""`python -m recollect`: the same as the command `recollect`."""

from recollect.cli import main

main()
