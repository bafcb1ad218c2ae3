"""What the product does, in sentences. No FastAPI, no Celery."""
