"""What results mean: one function answers each question about a model, and says the answer.

The functions take numbers and return a `Finding`; they know no SQL, no files and no requests.
"""
