"""What the services stand on: settings, ids, logging, blobs, the queue's producer."""
