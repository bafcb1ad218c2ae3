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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from app.jobs import dispatcher as dispatch
from app.jobs import queue
from app.jobs import queue_repository as outbox_rows
from app.jobs import repository as worker_rows
from app.jobs import service as jobs
from app.jobs.dispatcher import Dispatcher, publish_after_commit, publish_pending
from app.operations.housekeeping import run_housekeeping
from app.platform import migrate
from app.platform.blobs import BlobStore
from app.platform.broker import QUEUE, WAKE_TASK, BrokerAway, Producer
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.tables import Outbox, Worker
from tests.app.queue_steps import OWNER, change, claimed, submit
from tests.sentences import Sentences
from tests.servers import PostgresServer, ValkeyServer, eventually

LATER = 4e9
DAY = 86400.0


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


def owed(db: Database) -> int:
    with db.read() as session:
        rows = session.scalars(select(Outbox.job_id).where(Outbox.published_at.is_(None)))
        return len(rows.all())


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
        thread.join(30)
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
                with pytest.raises(BrokerAway, match="CERTIFICATE_VERIFY_FAILED"):
                    Producer(refused).wake()
            assert not received
            broker.client.config_set("requirepass", "secret")
            for trusted in (f"{url}/3?ssl_ca_certs={certificate}", f"{url}/4?ssl_cert_reqs=none"):
                Producer(trusted).wake()
            assert b"secret" in b"".join(received)

    def test_a_broker_that_was_never_there(self, tmp_path: Path) -> None:
        producer = Producer(f"redis+socket://{tmp_path / 'none'}")
        with pytest.raises(BrokerAway, match="the broker is unavailable"):
            producer.wake()

    def test_it_rests_after_a_failure_and_then_finds_the_broker_again(
        self, broker: ValkeyServer
    ) -> None:
        producer = Producer(broker.broker_url)
        producer.wake()
        broker.stop()
        with pytest.raises(BrokerAway, match="unavailable:"):
            producer.wake()
        broker.start()
        with pytest.raises(BrokerAway, match="a moment ago"):
            producer.wake()
        eventually(lambda: wakes(producer))
        assert messages(broker) == 1

    def test_a_hung_broker_raises_in_the_end(self, broker: ValkeyServer) -> None:
        producer = Producer(broker.broker_url)
        producer.wake()
        broker.signal(signal.SIGSTOP)
        try:
            with pytest.raises(BrokerAway, match="Timeout"):
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
        with pytest.raises(BrokerAway, match="maxmemory"):
            producer.wake()


def wakes(producer: Producer) -> bool:
    try:
        producer.wake()
    except BrokerAway:
        return False
    return True


class TestPublish:
    def test_what_is_owed_is_sent_once_and_marked(
        self, db: Database, valkey: ValkeyServer, producer: Producer
    ) -> None:
        submit(db), submit(db)
        assert publish_pending(db, producer) == 2
        assert publish_pending(db, producer) == 0
        assert messages(valkey) == 2
        with db.read() as session:
            assert session.scalars(select(Outbox.tries)).all() == [1, 1]

    def test_a_job_that_runs_already_needs_no_wake_up(
        self, db: Database, valkey: ValkeyServer, producer: Producer
    ) -> None:
        submit(db), submit(db)
        claimed(db)
        assert publish_pending(db, producer) == 2
        assert messages(valkey) == 1

    def test_a_job_that_backs_off_is_sent_when_its_time_comes(
        self, db: Database, valkey: ValkeyServer, producer: Producer
    ) -> None:
        job = submit(db)
        change(db, job.id, not_before=LATER)
        assert publish_pending(db, producer) == 0
        change(db, job.id, not_before=1.0)
        assert publish_pending(db, producer) == 1
        assert messages(valkey) == 1

    def test_what_is_owed_anew_while_it_is_sent_stays_owed(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        with db.read() as session:
            read = outbox_rows.unpublished(session, 10)
        db.writing(queue.give_back, claim)
        with db.write() as session:
            outbox_rows.mark_published(session, read)
        assert owed(db) == 1
        assert read[0].job_id == job.id

    def test_without_a_broker_a_submit_succeeds_and_the_wake_up_stays_owed(
        self, db: Database, broker: ValkeyServer
    ) -> None:
        producer = Producer(broker.broker_url)
        broker.stop()
        job = submit(db)
        publish_after_commit(producer, job.id)
        started = submit(db)
        change(db, started.id, priority=1)
        assert claimed(db).job_id == started.id
        with pytest.raises(BrokerAway):
            publish_pending(db, producer)
        assert owed(db) == 1  # the one that runs is settled all the same
        assert db.reading(jobs.find, OWNER, job.id).state == "queued"

    def test_the_api_wakes_a_worker_right_after_its_commit(
        self, db: Database, valkey: ValkeyServer, producer: Producer
    ) -> None:
        publish_after_commit(producer, submit(db).id)
        assert messages(valkey) == 1


class TestDispatcher:
    def test_it_catches_up_when_the_broker_is_back(
        self,
        db: Database,
        broker: ValkeyServer,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level("INFO")
        broker.stop()
        ids = [submit(db).id for _ in range(3)]
        producer = Producer(broker.broker_url)
        with running(Dispatcher(db, Settings(), producer, threading.Event.wait)):
            eventually(lambda: "the broker is unavailable" in caplog.text)
            assert owed(db) == 3
            broker.start()
            eventually(lambda: owed(db) == 0)
        assert messages(broker) == 3
        assert "the broker is back" in caplog.text
        assert {claimed(db).job_id for _ in ids} == set(ids)

    def test_it_says_that_the_broker_is_back_once_a_wake_up_got_through(
        self, db: Database, broker: ValkeyServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO")
        broker.stop()
        submit(db)
        with running(Dispatcher(db, Settings(), Producer(broker.broker_url), threading.Event.wait)):
            eventually(lambda: "the broker is unavailable" in caplog.text)
            claimed(db)  # by a worker that looked by itself: nothing is owed now
            eventually(lambda: owed(db) == 0)
        assert "the broker is back" not in caplog.text

    def test_more_than_a_batch_goes_out_in_one_go(
        self,
        db: Database,
        valkey: ValkeyServer,
        producer: Producer,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(dispatch, "OUTBOX_SECONDS", 3600.0)
        monkeypatch.setattr(dispatch, "publish_pending", partial(publish_pending, limit=10))
        with db.write() as session:
            for _ in range(25):
                jobs.enqueue(session, Settings(), owner=OWNER, kind="train", name="x", spec={})
        with running(Dispatcher(db, Settings(reap_seconds=3600.0), producer, threading.Event.wait)):
            eventually(lambda: owed(db) == 0)
        assert messages(valkey) == 25

    def test_a_dead_workers_job_is_offered_again(
        self, db: Database, valkey: ValkeyServer, producer: Producer
    ) -> None:
        settings = Settings(lease_seconds=0.2, heartbeat_seconds=0.1, reap_seconds=0.05)
        job = submit(db)
        stale = claimed(db, settings)
        with running(Dispatcher(db, settings, producer, threading.Event.wait)):
            eventually(lambda: db.reading(jobs.find, OWNER, job.id).state == "queued")
            eventually(lambda: owed(db) == 0)
        assert messages(valkey) == 1
        assert claimed(db).token == stale.token + 1

    def test_it_keeps_house_beside_its_work(
        self, db: Database, producer: Producer, tmp_path: Path
    ) -> None:
        with db.write() as session:
            worker_rows.register(session, "wrk_old", host="h", version="1", slots=1)
            session.get_one(Worker, "wrk_old").seen_at = 1.0
        beside = partial(run_housekeeping, db, BlobStore(tmp_path), Settings())
        with running(Dispatcher(db, Settings(), producer, beside)):
            eventually(lambda: is_gone(db, "wrk_old"))

    def test_it_is_heard_from_while_it_works(
        self, db: Database, producer: Producer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(worker_rows, "DISPATCHER_BEAT_SECONDS", 0.01)
        with running(Dispatcher(db, Settings(), producer, threading.Event.wait)):
            (first,) = eventually(lambda: db.reading(worker_rows.dispatchers))
            assert db.reading(worker_rows.alive, 60.0) == []  # it is no worker
            db.writing(worker_rows.deregister, first.id)  # pruned while the machine slept
            (again,) = eventually(lambda: db.reading(worker_rows.dispatchers))
            assert again.id == first.id
        assert db.reading(worker_rows.dispatchers) == []

    def test_no_error_ends_it(
        self,
        db: Database,
        valkey: ValkeyServer,
        producer: Producer,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        def fail(*_: object) -> int:
            raise RuntimeError("of nobody's making")

        monkeypatch.setattr(dispatch, "publish_pending", fail)
        with running(Dispatcher(db, Settings(), producer, threading.Event.wait)):
            eventually(lambda: "of nobody's making" in caplog.text)
            monkeypatch.setattr(dispatch, "publish_pending", publish_pending)
            submit(db)
            eventually(lambda: messages(valkey) == 1)

    def test_it_survives_a_database_that_goes_and_comes(
        self,
        valkey: ValkeyServer,
        producer: Producer,
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
            with running(Dispatcher(db, Settings(), producer, threading.Event.wait)):
                submit(db)
                eventually(lambda: messages(valkey) == 1)
                server.stop()
                eventually(lambda: said("the database is unavailable"))
                server.start()
                eventually(lambda: said("the database is back"))
                submit(db)
                eventually(lambda: messages(valkey) == 2)
        finally:
            db.close()
            server.close()
