"""Wake-ups through a real broker that comes and goes; blobs that no row names."""

from __future__ import annotations

import json
import selectors
import signal
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.jobs import repository as worker_rows
from app.jobs import service as jobs
from app.jobs.dispatcher import Dispatcher, Reaper
from app.operations.housekeeping import run_housekeeping
from app.platform import broker as broker_module
from app.platform import migrate
from app.platform.blobs import FolderStore
from app.platform.broker import QUEUE, WAKE_TASK, BrokerAway, Producer
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.tables import Worker
from tests.app.queue_steps import OWNER, claimed, submit
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences
from tests.servers import PostgresServer, ValkeyServer
from tests.waiting import eventually, patience

SHORT = Settings(lease_seconds=0.2, heartbeat_seconds=0.1, reap_seconds=0.05)


@pytest.fixture
def broker() -> Iterator[ValkeyServer]:
    """A broker that the test may end."""
    server = ValkeyServer()
    yield server
    server.close()


def messages(valkey: ValkeyServer) -> int:
    count = valkey.client.llen(QUEUE)
    assert isinstance(count, int)
    return count


def is_gone(db: Database, worker_id: str) -> bool:
    with db.read() as session:
        return session.get(Worker, worker_id) is None


@contextmanager
def tls_relay(socket_path: Path, certificate: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Pass what comes by TLS on to a server's unix socket; yields the port, and the bytes that have come.

    The certificate is for 127.0.0.1, is its own authority, and is written to the file.
    """
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=broker -days 2 -addext"
    files = ["subjectAltName=IP:127.0.0.1", "-keyout", str(certificate), "-out", str(certificate)]
    files += ["-addext", "keyUsage=critical,digitalSignature,keyCertSign"]
    subprocess.run([*make.split(), *files], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    received: list[bytes] = []

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with (
                suppress(OSError),
                context.wrap_socket(self.request, server_side=True) as caller,
                socket.socket(socket.AF_UNIX) as server,
            ):
                server.connect(str(socket_path))
                ready = selectors.DefaultSelector()
                for own, other in ((caller, server), (server, caller)):
                    ready.register(own, selectors.EVENT_READ, (own, other))
                while True:
                    for key, _ in ready.select():
                        own, other = key.data
                        if not (data := own.recv(65536)):
                            return
                        if own is caller:
                            received.append(data)
                        other.sendall(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay) as relay:
        relay.daemon_threads = True
        thread = threading.Thread(target=relay.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield relay.server_address[1], received
        finally:
            relay.shutdown()
            thread.join()


@contextmanager
def running(dispatcher: Dispatcher) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=dispatcher.run, args=(stop,))
    thread.start()
    try:
        yield
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join(patience())
    assert not thread.is_alive()


class TestProducer:
    def test_a_wake_up_says_only_that_there_is_work(
        self, valkey: ValkeyServer, producer: Producer
    ) -> None:
        producer.wake()
        message = json.loads(valkey.client.lindex(QUEUE, 0))
        assert message["headers"]["task"] == WAKE_TASK
        assert message["headers"]["argsrepr"] == "()"
        assert message["headers"]["kwargsrepr"] == "{}"
        assert message["content-type"] == "application/json"

    def test_threads_may_share_it(self, valkey: ValkeyServer, producer: Producer) -> None:
        def send() -> None:
            for _ in range(20):
                producer.wake()

        threads = [threading.Thread(target=send) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert messages(valkey) == 240

    @pytest.mark.parametrize("url", ["", "amqp://localhost", "memory://", "localhost:6379"])
    def test_another_kind_of_broker_is_refused(self, url: str, sentences: Sentences) -> None:
        with sentences.raises(ValueError):
            Producer(url)

    def test_a_password_goes_only_to_a_server_whose_certificate_is_verified(
        self, broker: ValkeyServer, tmp_path: Path
    ) -> None:
        certificate = tmp_path / "broker.pem"
        with tls_relay(broker.socket, certificate) as (port, received):
            # Each its own database: Celery shares connections between URLs that differ in parameters alone.
            url = f"rediss://:secret@127.0.0.1:{port}"
            elsewhere = f"rediss://:secret@localhost:{port}/2?ssl_ca_certs={certificate}"
            for refused in (f"{url}/0", f"{url}/1?ssl_cert_reqs=required", elsewhere):
                with raises(BrokerAway, "CERTIFICATE_VERIFY_FAILED"):
                    Producer(refused).wake()
            assert not received
            broker.client.config_set("requirepass", "secret")
            for trusted in (f"{url}/3?ssl_ca_certs={certificate}", f"{url}/4?ssl_cert_reqs=none"):
                Producer(trusted).wake()
            assert b"secret" in b"".join(received)

    def test_a_broker_without_memory_is_not_well(self, broker: ValkeyServer) -> None:
        producer = Producer(broker.broker_url)
        producer.ping()
        broker.client.config_set("maxmemory-policy", "noeviction")
        broker.client.config_set("maxmemory", 1)
        with pytest.raises(BrokerAway):
            producer.ping()
        broker.client.config_set("maxmemory", 0)
        producer.ping()

    def test_a_broker_that_was_never_there(self, tmp_path: Path) -> None:
        producer = Producer(f"redis+socket://{tmp_path / 'none'}")
        with pytest.raises(BrokerAway):
            producer.wake()

    @long_form
    def test_it_rests_after_a_failure_and_then_finds_the_broker_again(
        self, broker: ValkeyServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = time.monotonic()
        monkeypatch.setattr(broker_module, "time", SimpleNamespace(monotonic=lambda: now))
        producer = Producer(broker.broker_url)
        producer.wake()
        broker.stop()
        with pytest.raises(BrokerAway):
            producer.wake()
        broker.start()
        with pytest.raises(BrokerAway):
            producer.wake()
        monkeypatch.undo()
        eventually(lambda: wakes(producer))
        assert messages(broker) == 1

    @long_form
    def test_a_hung_broker_raises_in_the_end(self, broker: ValkeyServer) -> None:
        producer = Producer(broker.broker_url)
        producer.wake()
        broker.signal(signal.SIGSTOP)
        try:
            with pytest.raises(BrokerAway):
                producer.wake()
        finally:
            broker.signal(signal.SIGCONT)

    def test_a_wiped_broker_takes_the_next_wake_up(
        self, valkey: ValkeyServer, producer: Producer
    ) -> None:
        producer.wake()
        valkey.client.flushall()
        producer.wake()
        assert messages(valkey) == 1

    def test_a_full_broker_is_away(self, broker: ValkeyServer) -> None:
        producer = Producer(broker.broker_url)
        broker.client.config_set("maxmemory", "1")
        with raises(BrokerAway, "maxmemory"):
            producer.wake()


def wakes(producer: Producer) -> bool:
    try:
        producer.wake()
    except BrokerAway:
        return False
    return True


class TestDispatcher:
    def test_it_keeps_house_beside_its_work(self, db: Database, tmp_path: Path) -> None:
        with db.write() as session:
            worker_rows.register(session, "wrk_old", host="h", version="1", slots=1)
            session.get_one(Worker, "wrk_old").seen_at = 1.0
        beside = partial(run_housekeeping, db, FolderStore(tmp_path), Settings())
        with running(Dispatcher(db, Settings(), beside)):
            eventually(lambda: is_gone(db, "wrk_old"))

    def test_it_is_heard_from_while_it_works(
        self, db: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(worker_rows, "DISPATCHER_BEAT_SECONDS", 0.01)
        with running(Dispatcher(db, Settings(), threading.Event.wait)):
            (first,) = eventually(lambda: db.reading(worker_rows.dispatchers))
            assert db.reading(worker_rows.alive, 60.0) == []  # it is no worker
            db.writing(worker_rows.deregister, first.id)  # pruned while the machine slept
            (again,) = eventually(lambda: db.reading(worker_rows.dispatchers))
            assert again.id == first.id
        assert db.reading(worker_rows.dispatchers) == []

    def test_no_error_ends_it(
        self,
        db: Database,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        def fail(*_: object) -> int:
            raise RuntimeError("of nobody's making")

        job = submit(db)
        claimed(db, SHORT)
        monkeypatch.setattr(Reaper, "reap", fail)
        with running(Dispatcher(db, SHORT, threading.Event.wait)):
            eventually(lambda: "of nobody's making" in caplog.text)
            monkeypatch.undo()
            eventually(lambda: db.reading(jobs.find, OWNER, job.id).state == "queued")

    @long_form
    def test_it_survives_a_database_that_goes_and_comes(
        self,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level("INFO")
        server = PostgresServer()
        url = server.create("mine")
        migrate.upgrade(url)
        db = Database(url)

        def said(text: str) -> bool:
            return any(text in one.getMessage() for one in caplog.records)

        try:
            with running(Dispatcher(db, SHORT, threading.Event.wait)):
                eventually(lambda: db.reading(worker_rows.dispatchers))
                server.stop()
                eventually(lambda: said("the database is unavailable"))
                server.start()
                eventually(lambda: said("the database is available again"))
                job = submit(db)
                claimed(db, SHORT)
                eventually(lambda: db.reading(jobs.find, OWNER, job.id).state == "queued")
        finally:
            db.close()
            server.close()
