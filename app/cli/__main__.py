"""`python -m app.cli`, for where the `rankwright` command is not installed."""

from app.cli import main

main()
