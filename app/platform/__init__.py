"""What every domain stands on: settings, database, blobs, broker, logging."""
