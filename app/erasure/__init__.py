"""Erasure of one person or entity: requests, and the job that removes the entity's rows from tables.

Housekeeping erases decisions and outcomes (`app.feedback.upkeep`): processes may still have some in their logs.
"""
