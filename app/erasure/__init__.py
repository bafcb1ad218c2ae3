"""Erasure of one person or entity: requests, and the job that removes the entity's rows from tables.

Decisions and outcomes are erased by housekeeping (`app.feedback.upkeep`), because processes may still have some in
their logs.
"""
