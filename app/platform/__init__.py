"""The base of every domain: settings, database, blobs, broker, logging."""
