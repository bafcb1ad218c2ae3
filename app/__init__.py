"""The service around the science: HTTP, command line, jobs, storage."""
