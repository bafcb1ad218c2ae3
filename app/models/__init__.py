"""What was learnt: the registry, aliases, curves, operating points, bounds."""
