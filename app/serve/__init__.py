"""`rankwright serve`: the whole service on one host, watched by one process that leaves nothing behind."""


class ServeError(Exception):
    """The service cannot run here; the message says why."""
