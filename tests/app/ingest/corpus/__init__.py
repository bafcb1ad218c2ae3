"""A corpus of crafted files, each with its expected outcome, and each failing when the rule it is about is off."""
