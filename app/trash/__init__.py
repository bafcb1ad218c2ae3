"""The trash: resources deleted in the last 30 days, which can be restored or deleted permanently.

A deletion sets `deleted_at` (`app.platform.tables.Trashable`), and no query returns the row any more. Its bytes and its
version number remain in use. Housekeeping deletes it permanently after `DAYS`.
"""
