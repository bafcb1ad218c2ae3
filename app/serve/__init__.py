"""`rankwright serve`: the whole service on one host, with a process that supervises the others."""


class ServeError(Exception):
    """The service cannot run here; the message is the reason."""
