"""Sequential monitoring of a ranker in production: tests that keep their error rate over repeated looks."""
