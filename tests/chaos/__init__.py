"""The chaos harness: it kills whatever the service is made of, then asks whether a job was lost or doubled.

`make chaos` runs it; docs/reliability.md says what it proves.
"""
