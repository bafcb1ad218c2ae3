"""What keeps the service well: health, metrics, doctor, backup, housekeeping."""
