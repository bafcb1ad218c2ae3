"""The version of the library, as artifacts and checkpoints name it."""

LIBRARY_VERSION = "0.1.0"
