"""The metrics of two-class rankings, one class each, in the modules listed in `MODULES`."""

from . import area, top

MODULES = (area, top)
"""The modules whose metrics have names, in the order in which a refusal lists them."""
