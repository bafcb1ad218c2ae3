"""What results mean: one function decides each question about a model, and one says the answer.

The functions take numbers and return decisions; they know no HTTP, no SQL and no files.
"""
