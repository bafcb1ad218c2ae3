"""Long work: the queue, leases, events, child jobs."""
