"""Tools that developers and the Makefile run: `python -m tools.NAME`."""
