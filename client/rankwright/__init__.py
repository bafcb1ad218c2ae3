"""Client of a Rankwright service: upload tables, train and evaluate models, and score rows.

`Client` blocks until the service has responded. `AsyncClient` is awaited. `RemoteRanker` is a scikit-learn estimator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.4.0.dev0"

if TYPE_CHECKING:
    from rankwright.client import AsyncClient as AsyncClient
    from rankwright.client import Client as Client
    from rankwright.errors import ConfigurationError as ConfigurationError
    from rankwright.errors import ConnectionFailed as ConnectionFailed
    from rankwright.errors import InvalidTable as InvalidTable
    from rankwright.errors import JobFailed as JobFailed
    from rankwright.errors import ProblemError as ProblemError
    from rankwright.errors import RankwrightError as RankwrightError
    from rankwright.errors import SecretLost as SecretLost
    from rankwright.sklearn import RemoteRanker as RemoteRanker

_HOMES = {
    "AsyncClient": "client",
    "Client": "client",
    "ConfigurationError": "errors",
    "ConnectionFailed": "errors",
    "InvalidTable": "errors",
    "JobFailed": "errors",
    "ProblemError": "errors",
    "RankwrightError": "errors",
    "RemoteRanker": "sklearn",
    "SecretLost": "errors",
}
__all__ = ["AsyncClient", "Client", "ConfigurationError", "ConnectionFailed", "InvalidTable"]
__all__ += ["JobFailed", "ProblemError", "RankwrightError", "RemoteRanker", "SecretLost"]

if not TYPE_CHECKING:  # a type checker is to know the names above alone

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'rankwright' has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(f"rankwright.{_HOMES[name]}"), name)
