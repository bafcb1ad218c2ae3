"""`python -m rankwright`, for where the `rankwright` command is not on the path."""

from rankwright.cli import main

main()
