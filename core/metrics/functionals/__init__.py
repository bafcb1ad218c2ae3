"""The metrics of a ranking of two classes. A new one is one class in a module of this package, in `MODULES`."""

from . import area, top

MODULES = (area, top)
"""The modules whose metrics have names, in the order in which a refusal lists them."""
