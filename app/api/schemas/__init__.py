"""The shapes of the HTTP contract."""
