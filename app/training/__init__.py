"""A training job: what is asked, planned, fitted and kept."""
