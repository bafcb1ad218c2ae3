"""Training jobs: the request, the plan of its fits, the fits, and the stored results."""
