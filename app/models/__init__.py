"""The registry of models, and what is known about each: see docs/architecture.md."""
