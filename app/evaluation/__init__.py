"""Evaluations of a model on held-out datasets, and comparisons of several models.

A request is checked and becomes a row with its job (`service`). The job computes in the fit process and stores its
results (`evaluations`, `comparisons`): metrics, drift, and the overlap with the training rows (`metrics`).
"""
