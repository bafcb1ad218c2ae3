"""Python runs this before a process's own first line, where this folder stands on PYTHONPATH."""

from tests.chaos import inside

inside.take_orders()
