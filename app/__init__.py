"""The service around the science: HTTP, command line, jobs, storage."""

__version__ = "0.2.0"
