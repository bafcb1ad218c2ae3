"""`rankwright serve`: the whole service on one host, watched by one process that leaves nothing behind."""
