"""Preparation of `serve`: migrates the tables, and creates a key for the first user.

`python -m app.serve.prepare` is a separate process, so that the supervisor need not import all this. It prints one JSON
object: `{"key": …, "link": …}`, each null if none was created, or `{"error": …}`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from app.platform.audit_keys import make_key
from app.platform.encryption import make_keys
from app.platform.errors import ServiceError
from app.platform.logging import configure_logging
from app.platform.processes import child_environment, python_command
from app.platform.settings import Settings
from app.serve import ServeError

if TYPE_CHECKING:
    from app.platform.database import Database

OWNER = "default"


class Prepared(NamedTuple):
    """The first key's secret if it is new, and the token of a sign-in link if one was created."""

    key: str | None
    link: str | None


class Preparation:
    """Runs `main` in a separate process while the caller does other work, and at the latest waits for it at the end of
    the `with` block.
    """

    def __init__(self, settings: Settings, *, link: bool) -> None:
        self._process = subprocess.Popen(
            python_command("app.serve.prepare", *(["--link"] if link else [])),
            # For people: successes are not logged here, unless they ask for it.
            env={"RANKWRIGHT_LOG_LEVEL": "WARNING"}
            | child_environment()
            | {"RANKWRIGHT_STATE_DIR": str(settings.state_dir.absolute())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            process_group=0,  # a Ctrl-C must not interrupt a migration
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # waits for it
            pass

    def result(self) -> Prepared:
        """Wait for the process and return its result. Raises ServeError."""
        said, _ = self._process.communicate()
        try:
            answer = json.loads(said)
        except ValueError:
            raise ServeError(
                f"the tables could not be prepared (exit code {self._process.returncode})"
            ) from None
        if "error" in answer:
            raise ServeError(answer["error"])
        return Prepared(answer["key"], answer["link"])


def main(arguments: list[str]) -> None:
    """Migrate, create the first key and, with `--link`, a sign-in link; print the result as JSON."""
    from alembic.util import CommandError

    from app.platform.database import Database
    from app.platform.installation import Incomplete, check_files
    from app.platform.migrate import describe_failure, upgrade
    from app.platform.sql import DBAPIError
    from app.platform.stores import open_store

    settings = Settings()
    configure_logging(settings)
    try:
        check_files()
        open_store(settings).check_writable()
        if settings.dask_address is not None and settings.dask_secret_file is None:
            make_cluster_secret(settings.dask_secret)
        if settings.audit_key_file is None:
            make_key(settings.own_audit_key)
        if settings.secrets_keys_file is None:
            make_keys(settings.own_secrets_keys)
        upgrade(settings.sqlalchemy_url)
        db = Database(settings.sqlalchemy_url, pool_size=1)
        try:
            path = settings.state_dir / "api-key"
            key = first_key(db, path)
            link = console_link(db, path) if "--link" in arguments else None
        finally:
            db.close()
    except ServeError as error:
        print(json.dumps({"error": str(error)}))  # noqa: T201
    except (Incomplete, ServiceError, OSError, DBAPIError, CommandError) as error:
        print(json.dumps({"error": describe_failure(error)}))  # noqa: T201 - the answer
    else:
        print(json.dumps({"key": key, "link": link}))  # noqa: T201


def first_key(db: Database, path: Path) -> str | None:
    """Create a key with every scope, and write it to a file that only its user can read; returns its secret, or None if
    there is a key already.

    The file is never written again after the first key exists, because the user may have deleted it for safety.
    """
    from app.access import repository
    from app.access import service as keys

    if db.reading(repository.list_page, OWNER, limit=1, after=None).data:
        return None
    with keys.by_command(OWNER, "rankwright serve"):
        _, secret = db.writing(keys.create, OWNER, "first key", keys.SCOPES)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as file:
        file.write(secret + "\n")
    fresh.replace(path)
    return secret


def make_cluster_secret(path: Path) -> None:
    """Write a new private key and its certificate to a file that only this user can read, unless it exists.

    Raises `ServeError`.
    """
    if path.exists():
        return
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        subprocess.run(
            # As in deploy/make-secrets. It never ends: whoever has the file is a member of the cluster.
            [
                *(
                    "openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:P-256",
                    "-nodes",
                ),
                *("-subj", "/CN=rankwright", "-days", "36500"),
                *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
                *("-keyout", str(fresh), "-out", str(fresh)),
            ],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise ServeError(
            "RANKWRIGHT_DASK_ADDRESS needs the program openssl, which makes the cluster's key, or "
            "RANKWRIGHT_DASK_SECRET_FILE"
        ) from None
    except subprocess.CalledProcessError as error:
        raise ServeError(f"openssl cannot make {path}: {error.stderr.strip()[-300:]}") from error
    fresh.replace(path)


def console_link(db: Database, path: Path) -> str | None:
    """Return the token of a sign-in link for the key in the file; None: no file, or the key is no longer valid."""
    from app.access import sessions

    try:
        secret = path.read_text().strip()
    except (OSError, ValueError):
        return None
    return db.writing(sessions.make_link, secret)


if __name__ == "__main__":
    main(sys.argv[1:])
