"""Scoring: single rows and batches, reasons and dependence."""
