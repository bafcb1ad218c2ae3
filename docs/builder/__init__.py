"""What writes the pages of the site that nobody writes by hand: `docs/build.py` runs it, `docs/check.py` reads the result."""
