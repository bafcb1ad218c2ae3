"""Operation of the service: health, metrics, doctor, backup, housekeeping."""
