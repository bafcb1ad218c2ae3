"""Opens the blob store that the settings name."""

from __future__ import annotations

from app.platform.blobs import BlobStore, FolderStore
from app.platform.buckets import Bucket
from app.platform.settings import Settings

REQUEST_PATIENCE = 5.0
"""Seconds for which a request waits for a bucket that is away, before it is refused with 503."""
WORK_PATIENCE = 300.0
"""Seconds for which a job or a command waits for a bucket that is away. A job that fails then is run again."""


def open_store(settings: Settings, patience: float = WORK_PATIENCE) -> BlobStore:
    """Return the blob store. Raises OSError if its folder on this machine cannot be used. No request is sent to a
    bucket: `check_writable` sends the first one.
    """
    if settings.bucket_url is None:
        return FolderStore(settings.blob_dir)
    from app.platform.object_store import ObjectStore

    bucket = Bucket(
        settings.bucket_url,
        settings.blob_endpoint,
        settings.blob_credentials_file,
        settings.blob_ca_file,
    )
    return ObjectStore(
        bucket,
        settings.blob_dir,
        cache_bytes=settings.blob_cache_bytes,
        upload_bytes=settings.blob_upload_bytes,
        patience=patience,
    )
