"""`python -m memoranda`: the same as the command `memoranda`."""

from memoranda.cli import main

main()
