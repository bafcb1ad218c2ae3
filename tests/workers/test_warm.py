"""Warming up: what the first job needs is imported, and nothing once there is a job."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("looks", "imported"), [(0, False), (100, True)])
def test_it_imports_until_a_job_comes(looks: int, imported: bool) -> None:
    """In a process of its own: other tests have imported everything here."""
    program = f"""
import sys
from workers.child import warm_up
left = iter([False] * {looks})
warm_up(lambda: next(left, True))
assert ("core.boosting.rankboost" in sys.modules) is {imported}
assert ("app.datasets.tasks" in sys.modules) is {imported}
assert "scipy.stats._stats_py" not in sys.modules
if {imported}:
    from scipy.stats import norm
    import scipy.stats
    assert norm.cdf(0) == scipy.stats.norm.cdf(0) == .5
"""
    subprocess.run([sys.executable, "-c", program], check=True)
