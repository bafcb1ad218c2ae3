"""Read by each Python process of a measured service as it starts: see `benchmarks.rounds`."""

from benchmarks import rounds

rounds.record_if_asked()
