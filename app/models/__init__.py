"""The registry of models, and the stored results about each model: see docs/architecture.md."""
