"""Where `check_array` was; see `core.state`."""

from .state import check_array as check_array  # noqa: PLC0414 - for who still asks here
