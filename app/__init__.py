"""The service around the science: HTTP, command line, jobs, storage."""

from core.version import VERSION

__version__ = VERSION
