"""`rankwright serve`: the whole service on one host. One process watches the others."""


class ServeError(Exception):
    """The service cannot run here; the message says why."""
