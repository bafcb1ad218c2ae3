"""Evaluations of a model on held-out datasets, and comparisons of several models.

A request is checked and becomes a row with its job (`service`). The job computes in the fit process and writes what it
found (`evaluations`, `comparisons`): metrics, drift, and rows that were there in training (`metrics`).
"""
