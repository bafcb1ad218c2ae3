"""Requests made from the service's own description, by the thousand: `make fuzz`."""
