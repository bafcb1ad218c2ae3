"""Schedules: times at which the sources of datasets are read again."""
