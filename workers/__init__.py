"""Workers: processes that take jobs from the queue, and the fit processes that compute them."""
