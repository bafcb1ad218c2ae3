"""Saved views: a name for the filters, the order and the columns of a list, so that a team opens the same list."""
