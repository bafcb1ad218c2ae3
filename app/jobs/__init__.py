"""Background jobs: the queue, leases, events, child jobs."""
