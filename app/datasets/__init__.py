"""Tables that were uploaded, their versions and pairs."""
