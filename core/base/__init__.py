"""The base of all rankers: input checks, fitted state and its storage, checkpoints, and row splits.

- `ranker` is the base class of every estimator; `parameters` checks what their constructors are given.
- `table` reads X (numbers, or tables with columns of text), `target` reads y, weights and groups, and `splits` holds
  rows out. `training` has the record of all that was read, from which every fit learns.
- `state` declares the fitted attributes: what an artifact keeps of each, and what is checked when it is read.
- `checkpoint` stops a fit and goes on with it, and divides the fit of a forest into shares.

Arrays that many internal functions take have one form, which their docstrings do not repeat: `X` is
(n_rows, n_features), float64, C-contiguous, with NaN for a missing value and the index of a category; `positive` is
(n_rows,), bool; `weight` is (n_rows,), float64, above 0; `n_categories` is (n_features,), int64, 0 for a numeric
feature.
"""
