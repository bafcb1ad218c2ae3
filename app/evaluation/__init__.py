"""Models judged on datasets that they have not seen: evaluations of one, comparisons of several.

A request is checked (`requests`) and becomes a row with its job (`evaluations`, `comparisons`). The job computes in the
fit process and writes what it found (`evaluate`, `compare`); `drift` says what has changed since validation.
"""
