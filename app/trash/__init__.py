"""The trash: resources deleted in the last 30 days, which can be restored or deleted permanently.

A deletion sets `deleted_at` (`app.platform.tables.Trashable`), and no query reads the row any more. Its bytes and its
version number stay taken. The housekeeper deletes it for good after `DAYS`.
"""
