"""Writes the pages of the site that nobody writes by hand: `docs/build.py` runs it, `docs/check.py` checks them."""
