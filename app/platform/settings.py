"""Settings: every `RANKWRIGHT_*` variable, its default and its meaning. A test compares docs/settings.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import parse_qs, quote, unquote, urlsplit, urlunsplit

from annotated_types import Ge, Gt, Le
from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.platform import audit_keys
from app.platform.addresses import HttpUrl, Networks, parse_networks, parse_url
from app.platform.audit_keys import AuditKeys
from app.platform.bucket_credentials import BadCredentials, options_of
from app.platform.buckets import check_bucket_url, check_endpoint
from app.platform.connections import read_connections
from app.platform.encryption import FILE as SECRETS_FILE
from app.platform.encryption import read_keys
from app.platform.issuers import read_issuers
from app.platform.processes import MAX_API_PROCESSES
from app.platform.roles import read_rules
from core.kernels.folders import levels_that_fit

Seconds = Annotated[float, Gt(0)]
Days = Annotated[float, Gt(0)]
Bytes = Annotated[int, Gt(0)]

MIB = 1024**2

_SCHEMES = {
    "database_url": ("sqlite", "postgresql", "postgresql+psycopg", "postgres"),
    "broker_url": ("redis", "rediss", "redis+socket"),
    "blob_url": ("file", "s3", "gs", "az"),
}


def _read(path: Path) -> str:
    """Raises ValueError, which names the file but not its content."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ValueError(f"cannot be read from the file {path}: {why}") from None


def checked_build(given: str) -> str:
    """Empty is `unknown`, as in an image built without a name. Raises ValueError."""
    if not re.fullmatch(r"[A-Za-z0-9._+-]{0,64}", given):
        raise ValueError("must be at most 64 letters, digits and . _ + -")
    return given or "unknown"


def checked_scheduler(given: str) -> str:
    """Raises ValueError."""
    try:
        is_whole = (urlsplit(given).port or 0) > 0  # a port beyond 65535 raises
    except ValueError:
        is_whole = False
    is_named = re.fullmatch(r"tls://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]+", given)
    if not (is_whole and is_named):
        raise ValueError(f"must be an address such as tls://host:8786, got {given[:100]!r}")
    return given


def _check_folder_url(given: str) -> None:
    """Raise ValueError for an unusable folder."""
    parts = urlsplit(given)
    if parts.netloc or not parts.path:
        raise ValueError("must be a file:///… URL with a path and without a host")


MAX_ROOT_PATH = 200
_OWN_PATHS = ("v1", "console", "docs", "health", "metrics", "openapi.json")


def checked_root_path(given: str) -> str:
    """Return a prefix without a final slash; empty for none. Raises ValueError.

    Letters, digits and `._~-` between single slashes are allowed, so that the prefix needs no quoting and cannot
    contain another host. It must not begin like a path of the service, because it would then be ambiguous whether a
    proxy has removed it.
    """
    path = given.removesuffix("/")
    if not path:
        return ""
    steps = path.split("/")[1:]
    if (
        len(path) > MAX_ROOT_PATH
        or not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", path)
        or {".", ".."} & set(steps)
        or steps[0] in _OWN_PATHS
    ):
        raise ValueError(
            f"must be a path such as /ranking: at most {MAX_ROOT_PATH} letters, digits and ._~- between "
            f"single slashes, not starting like a path of the service, got {given[:100]!r}"
        )
    return path


class Settings(BaseSettings):
    """The settings, read once at start. By default everything is in `state_dir`."""

    model_config = SettingsConfigDict(env_prefix="RANKWRIGHT_", extra="ignore", frozen=True)

    state_dir: Path = Field(
        default=Path(".rankwright"),
        description="Folder of the embedded state: database, blobs, broker socket and first key.",
    )
    database_url_file: Path | None = Field(
        default=None,
        description="File with the URL of the database, instead of `RANKWRIGHT_DATABASE_URL`.",
    )
    database_password_file: Path | None = Field(
        default=None,
        description="File with the password of the database, which is inserted into the URL. Any characters are "
        "allowed.",
    )
    database_url: SecretStr | None = Field(
        default=None,
        validate_default=True,
        description="SQLAlchemy URL of SQLite or PostgreSQL. Default: SQLite in the state folder.",
    )
    broker_url_file: Path | None = Field(
        default=None,
        description="File with the URL of the broker, instead of `RANKWRIGHT_BROKER_URL`.",
    )
    broker_password_file: Path | None = Field(
        default=None,
        description="File with the password of the broker, which is inserted into the URL. Any characters are "
        "allowed.",
    )
    broker_url: SecretStr | None = Field(
        default=None,
        validate_default=True,
        description="redis://, rediss:// (TLS) or redis+socket:// URL of Redis or Valkey. Default: the private server "
        "of `serve`.",
    )
    blob_url: str | None = Field(
        default=None,
        description="Where uploads, tables and artifacts are stored: the file:// URL of a folder that API and workers "
        "share, or a bucket, as s3://bucket/prefix, gs://bucket/prefix or az://container/prefix. Default: `blobs` in "
        "the state folder.",
    )
    blob_endpoint: str | None = Field(
        default=None,
        description="URL of the server of the bucket (`s3`, `az`), if it is not the cloud provider's own.",
    )
    blob_credentials_file: Path | None = Field(
        default=None,
        description="File with the credentials of the bucket. `s3`: an AWS credentials file with the section "
        "`[default]`; `gs`: the JSON key of a service account; `az`: a connection string. A changed file is used "
        "without a restart. Default: the identity of the machine or pod.",
    )
    blob_ca_file: Path | None = Field(
        default=None,
        description="PEM file with certificate authorities to trust for the bucket, besides the authorities of the "
        "system.",
    )
    blob_cache_dir: Path | None = Field(
        default=None,
        description="Folder on this machine for the files of a bucket: those being written, and a cache. It may be "
        "empty at each start. Default: `blob-cache` in the state folder.",
    )
    blob_cache_bytes: Bytes = Field(
        default=10 * 1024 * MIB,
        description="Bytes that the cache of a bucket may have on this machine. Files in use are not deleted, and do "
        "not count while a job runs.",
    )
    blob_upload_bytes: Bytes = Field(
        default=80 * MIB,
        description="Memory of a process for uploads to a bucket. One needs 20 MiB, or more above 4.9 GiB; others "
        "wait.",
    )

    build: str = Field(
        default="unknown",
        description="What this code was built from, such as a commit. `/health`, OpenAPI, metrics and `--version` "
        "show it. An image sets it.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Lowest level that is logged."
    )
    log_format: Literal["text", "json"] = Field(
        default="text",
        description="`text`: one line of text per record. `json`: one JSON object per record.",
    )

    database_pool: Annotated[int, Ge(1)] = Field(
        default=10, description="Number of database connections that a process keeps open."
    )
    processes: Annotated[int, Ge(1), Le(MAX_API_PROCESSES)] = Field(
        default=1,
        description="API processes that `serve` and `api` run on one port. Each has its own limits, caches and "
        "database connections.",
    )
    worker_slots: Annotated[int, Ge(1)] = Field(
        default=1,
        description="Jobs that one worker process runs at once, each in its own process.",
    )
    worker_metrics_port: Annotated[int, Ge(1), Le(65535)] | None = Field(
        default=None,
        description="Port on which a worker serves `GET /metrics` with its claims and fits, for Prometheus. Default: "
        "none.",
    )
    worker_metrics_host: str = Field(
        default="127.0.0.1",
        description="Address on which a worker serves its metrics. It needs no key.",
    )
    warm_up: bool = Field(
        default=True,
        description="Whether a fit process imports the numerical libraries before its first job, and a worker "
        "compiles missing kernels beside its jobs.",
    )
    kernel_cache: str | None = Field(
        default=None,
        description="Folders of compiled kernels, separated by colons. The first writable one receives new kernels. "
        "Default: the user's cache folder, else beside the code. If none is writable, `kernels` in the "
        "state folder.",
    )
    kernel_cpu: str | None = Field(
        default=None,
        description="Processor levels, separated by commas, such as `x86-64-v3,aarch64`. Kernels are compiled for the "
        "first that this machine has. Default: its own processor.",
    )
    job_threads: Annotated[int, Ge(1)] | None = Field(
        default=None,
        description="Number of threads of one fit. Default: the cores divided by the slots.",
    )
    job_memory_bytes: Bytes | None = Field(
        default=None,
        description="Bytes of memory that one job may use, including what a first fit of its kind loads. Default: the "
        "memory of the machine or container, less a quarter and at least 512 MiB, divided by the slots.",
    )
    dask_address: str | None = Field(
        default=None,
        description="Dask scheduler, such as `tls://host:8786`, for tables that would need more than a job's memory. "
        "Default: none.",
    )
    roles_file: Path | None = Field(
        default=None,
        description="JSON file with the roles of people and service accounts, by issuer and group. It is read again "
        "within a second after a change. API and dispatcher need it. Default: none.",
    )
    connections_file: Path | None = Field(
        default=None,
        description="JSON file with the object stores and databases from which datasets may be read. It is read again "
        "within a second after a change. API, workers and dispatcher need it. Default: none.",
    )
    source_seconds: Seconds = Field(
        default=1800.0, description="Maximum time to read the rows of one source, in seconds."
    )
    source_bytes: Bytes = Field(
        default=4096 * MIB,
        description="Maximum size of what is read from one source, in bytes: of all files together, or of the rows of "
        "a query as Parquet.",
    )
    secrets_keys_file: Path | None = Field(
        default=None,
        description="File with the keys that encrypt stored secrets, newest first: one in each line, 32 random bytes "
        "as base64. Older keys only decrypt. Default: `secrets-keys` in the state folder, which `serve` "
        "creates; without that file, the service has no webhooks.",
    )
    oidc_file: Path | None = Field(
        default=None,
        description="JSON file with the identity providers whose users and service accounts may use the "
        "service. Default: none, only API keys are accepted.",
    )
    oidc_stale_seconds: Annotated[float, Ge(60)] = Field(
        default=3600.0,
        description="How long the keys of an identity provider, and a person's browser session, are used without "
        "confirmation by the provider, in seconds. A quarter of it is the time between two confirmations of a session.",
    )
    oidc_skew_seconds: Annotated[float, Ge(0), Le(600)] = Field(
        default=60.0,
        description="Allowed difference between the clocks of this machine and of an identity provider, in seconds.",
    )
    audit_key_file: Path | None = Field(
        default=None,
        description="File with the keys that seal the audit log: one per line, at least 32 characters each, the newest "
        "first. The first key seals, the others verify older seals. Default: `audit-key` in the state "
        "folder, which `serve` creates; without that file the log is not sealed.",
    )
    dask_secret_file: Path | None = Field(
        default=None,
        description="PEM file with the private key and the certificate of the Dask cluster. Each of its processes "
        "presents this certificate and requires it. Default: `dask.pem` in the state folder, which "
        "`serve` creates.",
    )
    dask_seconds: Annotated[float, Ge(5)] = Field(
        default=30.0,
        description="How long a Dask worker or scheduler may be silent before the attempt at the job ends, in "
        "seconds.",
    )
    webhook_networks: str | None = Field(
        default=None,
        description="Internal networks to which webhooks may be sent, also by http, in CIDR notation, separated by "
        "commas, such as `10.1.0.0/16,fd00:1::/64`. Default: none; webhooks are sent only to public "
        "addresses over https.",
    )
    webhook_proxy: str | None = Field(
        default=None,
        description="URL of an HTTP proxy through which webhooks are sent by CONNECT, such as `http://proxy:3128`. It "
        "looks up names and must refuse internal addresses. Default: none.",
    )
    job_timeout_seconds: Seconds = Field(
        default=3600.0, description="Timeout of a job that does not set one, in seconds."
    )
    max_job_seconds: Seconds = Field(
        default=86_400.0,
        description="Maximum timeout, and maximum budget of `auto`, that a job may set, in seconds.",
    )
    job_max_attempts: Annotated[int, Ge(1)] = Field(
        default=3,
        description="Maximum number of attempts at a job whose workers die, before it fails.",
    )
    fan_out_cells: Annotated[int, Ge(0)] = Field(
        default=2_000_000,
        description="Size of a job, as rows × features × fits, from which its fits are shared among workers. A "
        "smaller job stays in one process.",
    )

    lease_seconds: Seconds = Field(
        default=60.0, description="Time in seconds that a worker owns a job without a heartbeat."
    )
    heartbeat_seconds: Seconds = Field(
        default=10.0,
        validate_default=True,
        description="Time between two heartbeats of a running job, in seconds. It must be less than the lease.",
    )
    checkpoint_seconds: Annotated[float, Ge(0)] = Field(
        default=60.0,
        description="Time between two checkpoints of a fit that can resume, in seconds. 0: only when a worker stops.",
    )
    stop_seconds: Seconds = Field(
        default=5.0,
        description="How long a worker that was asked to stop waits for the checkpoints of its fits, in seconds.",
    )
    reap_seconds: Seconds = Field(
        default=15.0,
        description="Time between two checks for lost leases, in seconds.",
    )
    poll_seconds: Seconds = Field(
        default=1.0,
        description="Time between two checks of the queue by an idle worker, in seconds.",
    )
    blob_grace_seconds: Seconds = Field(
        default=86400.0,
        description="Age, in seconds, after which a blob without a database row is removed.",
    )

    keep_events_days: Days | None = Field(
        default=30.0,
        description="Days after the end of a job until its events, except the last, are removed.",
    )
    keep_jobs_days: Days | None = Field(
        default=90.0,
        description="Days after which finished jobs that nothing needs are removed.",
    )
    keep_audit_days: Days | None = Field(
        default=400.0,
        description="Days after which entries of the audit log are removed, and the history of aliases that no longer "
        "exist.",
    )
    keep_scores_days: Days | None = Field(
        default=None, description="Days after which batch scores are removed. Default: never."
    )
    keep_uploads_days: Days | None = Field(
        default=7.0,
        description="Days without a new part after which an open upload of several files is removed.",
    )
    keep_invalid_datasets_days: Days | None = Field(
        default=None,
        description="Days after which invalid and unchanged datasets are removed. Default: never.",
    )
    keep_unused_datasets_days: Days | None = Field(
        default=None,
        description="Days after which datasets that nothing was made from are removed. Default: never.",
    )

    quota_queued_jobs: Annotated[int, Ge(0)] | None = Field(
        default=None,
        description="Maximum number of queued jobs of an owner. Default: as many as are free of "
        "`RANKWRIGHT_MAX_QUEUED_JOBS`.",
    )
    quota_running_jobs: Annotated[int, Ge(1)] | None = Field(
        default=None,
        description="Maximum number of running jobs of an owner. Each part of a job counts. Further jobs wait. "
        "Default: all slots of the workers but one if several owners have keys, else no limit.",
    )
    quota_bytes: Annotated[int, Ge(0)] | None = Field(
        default=None,
        description="Bytes that an owner may have in files (uploads, tables, models, scores) and in database rows "
        "that the owner can delete. Default: no limit.",
    )
    max_queued_jobs: Annotated[int, Ge(1)] = Field(
        default=10_000, description="Maximum number of queued jobs of all owners."
    )
    max_requests: Annotated[int, Ge(1)] = Field(
        default=1000,
        description="Requests with a key that one API process has open at once, including requests that wait for jobs. "
        "An owner may have at most as many as are free. The same number without a key may wait for their "
        "callers; there an address may have at most as many as are free.",
    )
    max_uploads: Annotated[int, Ge(1)] = Field(
        default=32,
        description="Uploads that one API process receives at once. An owner may have at most as many as are free.",
    )
    min_free_bytes: Annotated[int, Ge(0)] = Field(
        default=256 * MIB,
        description="Free space, in bytes, below which the service accepts nothing new and starts no job.",
    )

    root_path: str = Field(
        default="",
        description="Path prefix under which a proxy serves API and console, such as `/ranking`. Default: "
        "`X-Forwarded-Prefix` of a trusted proxy, else none.",
    )
    drain_seconds: Annotated[float, Ge(0)] = Field(
        default=0.0,
        description="Seconds that an API process continues to respond after it was asked to stop. Meanwhile "
        "`/health/ready` returns 503.",
    )

    files_dir: Path | None = Field(
        default=None,
        description="Folder of files that become datasets without being sent. It has a folder for each owner, by "
        "name. A key with the scope `train` can name any file below its owner's folder. API and workers "
        "need it at the same path. Default: none.",
    )
    max_upload_bytes: Bytes = Field(
        default=4096 * MIB, description="Maximum size of an uploaded table, in bytes."
    )
    max_dataset_bytes: Bytes = Field(
        default=1024 * 1024 * MIB,
        description="Maximum total size of the files of one dataset, in bytes.",
    )
    max_body_bytes: Bytes = Field(
        default=8 * MIB, description="Largest body of a request that is not an upload, in bytes."
    )
    max_streamed_bytes: Bytes = Field(
        default=1024 * MIB,
        description="Largest table that `POST …/score` accepts, in bytes, as sent and decompressed. A table larger "
        "than `RANKWRIGHT_MAX_BODY_BYTES` is scored from a file, block by block.",
    )
    served_model: str | None = Field(
        default=None,
        description="Model that `/invocations` and `/ping` at the root serve: a name, `name:version` or `name@alias`. "
        "Default: none.",
    )
    served_owner: str | None = Field(
        default=None,
        description="Owner whose `RANKWRIGHT_SERVED_MODEL` the root serves to callers without a key. Anyone who "
        "reaches the port can then score with it, and do nothing else. Default: a key is needed.",
    )
    terse_errors: bool = Field(
        default=False,
        description="Whether errors about rows to score hide what was sent and what the model expects. They then have "
        "code, title and request id, but no feature names and no values.",
    )
    max_score_bytes: Bytes = Field(
        default=64 * MIB,
        description="Largest table that is scored in memory, in bytes, decompressed and as numbers. For a table in a "
        "file, the memory of one batch of Arrow.",
    )
    max_rows: Annotated[int, Gt(0)] = Field(
        default=200_000_000, description="Maximum number of rows in a table."
    )
    max_columns: Annotated[int, Gt(0)] = Field(
        default=2_000, description="Maximum number of columns in a table."
    )
    max_categories: Annotated[int, Ge(2), Le(65_535)] = Field(
        default=10_000, description="Maximum number of categories in a categorical column."
    )
    max_category_length: Annotated[int, Gt(0)] = Field(
        default=255, description="Maximum length of a category, in characters."
    )
    head_seconds: Seconds = Field(
        default=10.0,
        description="Time limit, in seconds, for the head of a request to arrive, and for a body without a key.",
    )
    outage_seconds: Annotated[float, Ge(0)] = Field(
        default=600.0,
        description="How long, in seconds, loaded models keep scoring while the database is unavailable, for keys "
        "that it accepted before. The time counts from its last response about key and model. 0: not at "
        "all.",
    )
    idle_seconds: Annotated[int, Ge(1), Le(3600)] = Field(
        default=75,
        description="Seconds until an idle connection is closed.",
    )
    body_seconds: Seconds = Field(
        default=30.0,
        description="How late a body may be, in seconds, behind a minimum rate: 1 KiB/s up to 64 KiB, and more "
        "beyond, as the square root of its size.",
    )
    rate_per_second: Annotated[float, Gt(0)] | None = Field(
        default=None,
        description="Requests per second that one key may send to one API process. Default: no limit.",
    )
    rate_burst: Annotated[int, Ge(1)] = Field(
        default=100,
        description="Burst size: requests that one key may send at once if its rate is limited.",
    )
    max_unknown_keys: Annotated[int, Ge(1)] = Field(
        default=60,
        description="Invalid keys, tokens, sessions and sign-in links that one address may send to one API process in "
        "a minute, each counted once a minute. More return 429; valid ones are accepted all the same.",
    )
    max_waiters: Annotated[int, Ge(0)] = Field(
        default=200,
        description="Requests that wait for a job (`Prefer: wait`, event streams) in one API process. An owner may "
        "have at most as many as are free.",
    )
    model_cache: Annotated[int, Ge(1)] = Field(
        default=100, description="Maximum number of models that one API process keeps in memory."
    )
    model_cache_bytes: Bytes = Field(
        default=1 << 30,
        description="Maximum memory for these models, in bytes, roughly counted. One model is always kept.",
    )

    @field_validator(
        "job_memory_bytes",
        "worker_metrics_port",
        "blob_endpoint",
        "blob_credentials_file",
        "blob_ca_file",
        "roles_file",
        "connections_file",
        "secrets_keys_file",
        "oidc_file",
        "audit_key_file",
        "webhook_networks",
        "webhook_proxy",
        mode="before",
    )
    @classmethod
    def _unset_if_empty(cls, value: object) -> object:
        """compose.yml can pass a variable on, but cannot leave it out."""
        return None if value == "" else value

    @field_validator("heartbeat_seconds")
    @classmethod
    def _within_the_lease(cls, value: float, info: ValidationInfo) -> float:
        """Raise ValueError for a heartbeat not shorter than the lease: every job would be taken from its worker."""
        lease = info.data.get("lease_seconds")
        if lease is not None and value >= lease:
            raise ValueError(f"must be less than lease_seconds ({lease:g}), got {value:g}")
        return value

    @field_validator("dask_address")
    @classmethod
    def _a_scheduler(cls, value: str | None) -> str | None:
        return None if not value else checked_scheduler(value)

    @field_validator("served_owner")
    @classmethod
    def _serves_a_model(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and not info.data.get("served_model"):
            raise ValueError(
                f"requires RANKWRIGHT_SERVED_MODEL, got only the owner {value[:100]!r}"
            )
        return value or None

    @field_validator("build")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        return checked_build(value)

    @field_validator("root_path")
    @classmethod
    def _a_prefix(cls, value: str) -> str:
        return checked_root_path(value)

    @field_validator("kernel_cpu")
    @classmethod
    def _known_levels(cls, value: str | None) -> str | None:
        levels_that_fit(value or "", None)
        return value

    @field_validator("state_dir")
    @classmethod
    def _fits_a_url(cls, value: Path) -> Path:
        """Raise ValueError for what an SQLite URL cannot express: a ? would end the path, and cannot be quoted."""
        if "?" in str(value.absolute()):
            raise ValueError(f"must be a path without '?', got {value.absolute()}")
        return value

    @field_validator("database_url", "broker_url", mode="before")
    @classmethod
    def _from_file(cls, value: object, info: ValidationInfo) -> object:
        """Return the URL from its file, if the setting for that file is set."""
        path: Path | None = info.data.get(f"{info.field_name}_file")
        if path is None:
            return value
        if value is not None:
            raise ValueError(f"must not be set together with {info.field_name}_file")
        return _read(path).strip()

    @field_validator("database_url", "broker_url", "blob_url")
    @classmethod
    def _known_scheme(
        cls, value: SecretStr | str | None, info: ValidationInfo
    ) -> SecretStr | str | None:
        """Raise ValueError for an unusable URL, but never with it: it may have a password."""
        if value is None:
            return None
        text = value if isinstance(value, str) else value.get_secret_value()
        schemes = _SCHEMES[info.field_name or ""]
        scheme, separator, _ = text.partition("://")
        if not separator or scheme not in schemes:
            got = f"{scheme}://" if separator else "no URL"
            raise ValueError(f"must be a URL of {', '.join(schemes)}, got {got}")
        if info.field_name == "blob_url" and scheme != "file":
            check_bucket_url(text)
        elif info.field_name == "blob_url":
            _check_folder_url(text)
        if info.field_name == "broker_url":
            checked = parse_qs(urlsplit(text).query, keep_blank_values=True).get(
                "ssl_cert_reqs", ["required"]
            )
            if checked not in (["required"], ["none"]):
                raise ValueError(
                    f"ssl_cert_reqs must be required or none, got {checked[-1][:20]!r}"
                )
        return value

    @field_validator("roles_file")
    @classmethod
    def _usable_roles(cls, value: Path | None) -> Path | None:
        if value is not None:
            read_rules(value)
        return value

    @field_validator("connections_file")
    @classmethod
    def _usable_connections(cls, value: Path | None) -> Path | None:
        if value is not None:
            read_connections(value)
        return value

    @field_validator("audit_key_file")
    @classmethod
    def _usable_audit_keys(cls, value: Path | None) -> Path | None:
        if value is not None:
            audit_keys.read_keys(value)
        return value

    @field_validator("webhook_networks")
    @classmethod
    def _usable_networks(cls, value: str | None) -> str | None:
        parse_networks(value or "")
        return value

    @field_validator("webhook_proxy")
    @classmethod
    def _usable_proxy(cls, value: str | None) -> str | None:
        if value is not None:
            proxy = parse_url(value)
            if proxy.scheme != "http" or proxy.target != "/":
                raise ValueError(
                    "must be the URL of a proxy, such as http://proxy:3128, without a path"
                )
        return value

    @field_validator("secrets_keys_file")
    @classmethod
    def _usable_keys(cls, value: Path | None) -> Path | None:
        if value is not None:
            read_keys(value)
        return value

    @field_validator("oidc_file")
    @classmethod
    def _usable_issuers(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is None:
            return None
        people = [each for each in read_issuers(value) if each.client_id is not None]
        # the key has its own error if it is set to a wrong value
        if people and info.data.get("secrets_keys_file", value) is None:
            raise ValueError(
                "requires RANKWRIGHT_SECRETS_KEYS_FILE, because people sign in with the client_id of "
                f"{people[0].issuer}"
            )
        return value

    @field_validator("blob_endpoint", "blob_credentials_file", "blob_ca_file")
    @classmethod
    def _of_a_bucket(cls, value: Path | str | None, info: ValidationInfo) -> Path | str | None:
        """Raise ValueError for a bucket's setting, never with a secret."""
        url: str | None = info.data.get("blob_url")
        if value is None or "blob_url" not in info.data:  # its own error is enough
            return value
        scheme = "file" if url is None else urlsplit(url).scheme
        if scheme == "file":
            raise ValueError("must not be set unless blob_url is the URL of a bucket")
        if info.field_name == "blob_endpoint":
            check_endpoint(str(value), scheme)
        elif info.field_name == "blob_credentials_file":
            try:
                options_of(scheme, Path(value))
            except BadCredentials as error:
                raise ValueError(str(error)) from None
        elif "-----BEGIN CERTIFICATE-----" not in _read(Path(value)):
            raise ValueError(f"must be a PEM file with certificates, got {value}")
        return value

    @field_validator("database_url", "broker_url")
    @classmethod
    def _with_password(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        """Return the URL with the password from its file."""
        setting = f"{(info.field_name or '').removesuffix('_url')}_password_file"
        path: Path | None = info.data.get(setting)
        if path is None:
            return value
        parts = urlsplit("" if value is None else value.get_secret_value())
        user, _, host = parts.netloc.rpartition("@")
        if not host:
            raise ValueError(f"must be a URL with a host if {setting} is set")
        if ":" in user:
            raise ValueError(f"must be a URL without a password if {setting} is set")
        password = _read(path).rstrip("\r\n")
        if not password or "\n" in password:
            raise ValueError(f"needs a password: the file {path} must contain one line of text")
        place = f"{user}:{quote(password, safe='')}@{host}"
        return SecretStr(urlunsplit(parts._replace(netloc=place)))

    @property
    def sqlalchemy_url(self) -> str:
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.state_dir.absolute() / 'rankwright.db'}"

    @property
    def database_file(self) -> Path | None:
        scheme, _, path = self.sqlalchemy_url.partition(":///")
        return Path(path.partition("?")[0]) if scheme == "sqlite" and path else None

    @property
    def dask_secret(self) -> Path:
        """The Dask cluster's key and certificate."""
        return self.dask_secret_file or self.state_dir.absolute() / "dask.pem"

    @property
    def own_audit_key(self) -> Path:
        """The file that `rankwright serve` creates."""
        return self.state_dir.absolute() / audit_keys.FILE

    def read_audit_keys(self) -> AuditKeys:
        """Return the keys that seal the audit log, if any. Raises BadAuditKeys."""
        file = self.audit_key_file or self.own_audit_key
        if self.audit_key_file is None and not file.exists():
            return AuditKeys()
        return audit_keys.read_keys(file)

    @property
    def networks_of_webhooks(self) -> Networks:
        """Internal networks to which webhooks may be sent."""
        return parse_networks(self.webhook_networks or "")

    @property
    def proxy_of_webhooks(self) -> HttpUrl | None:
        """None if webhooks are sent directly."""
        return None if self.webhook_proxy is None else parse_url(self.webhook_proxy)

    @property
    def own_secrets_keys(self) -> Path:
        """The file that `rankwright serve` creates."""
        return self.state_dir.absolute() / SECRETS_FILE

    def read_secrets_keys(self) -> tuple[bytes, ...]:
        """Return the keys of stored secrets, newest first. Raises BadKeys."""
        file = self.secrets_keys_file or self.own_secrets_keys
        if self.secrets_keys_file is None and not file.exists():
            return ()
        return read_keys(file)

    @property
    def celery_broker_url(self) -> str:
        """By default the private broker's socket."""
        if self.broker_url is not None:
            return self.broker_url.get_secret_value()
        return f"redis+socket://{self.state_dir.absolute() / 'broker.sock'}"

    @property
    def bucket_url(self) -> str | None:
        """None if a folder has the blobs."""
        return None if (self.blob_url or "file:").startswith("file:") else self.blob_url

    @property
    def blob_dir(self) -> Path:
        """The local folder of the blob store, or of a bucket's cache."""
        if self.bucket_url is not None:
            return self.blob_cache_dir or self.state_dir.absolute() / "blob-cache"
        if self.blob_url is None:
            return self.state_dir.absolute() / "blobs"
        return Path(unquote(urlsplit(self.blob_url).path))
