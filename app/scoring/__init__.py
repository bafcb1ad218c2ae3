"""Rows in, scores out."""
