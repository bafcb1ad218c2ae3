"""The Celery side: thin tasks onto app.services, and the warm processes that fit."""
