"""Feedback: decisions that models made, outcomes that arrive later, and whether the model is still right."""
