"""``python -m cloister``: the command line."""

from cloister.cli import main

main()
