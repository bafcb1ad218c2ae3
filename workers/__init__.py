"""The Celery side: thin tasks onto app.jobs, and the warm processes that fit."""
