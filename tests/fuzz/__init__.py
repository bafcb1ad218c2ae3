"""Requests made from the service's own description, by thousands: `make fuzz`."""
