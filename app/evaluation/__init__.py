"""Models evaluated on datasets that they have not seen: evaluations of one, comparisons of several.

A request is checked and becomes a row with its job (`service`). The job computes in the fit process and writes what it
found (`evaluations`, `comparisons`): metrics, drift, and rows that were there in training (`metrics`).
"""
