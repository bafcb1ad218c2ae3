"""One attempt at a delivery, to real receivers on loopback: limits, addresses, TLS, proxy, signatures."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from app.platform import addresses
from app.platform.addresses import parse_networks, parse_url
from app.webhooks import sending
from app.webhooks.delivery_repository import MAX_RESPONSE
from app.webhooks.secrets import new_secret
from app.webhooks.sending import Outcome, Sender, SendError
from tests.app.webhooks.receivers import Answer, Certificates, Proxy, Received, Receiver, status
from tests.waiting import patience

LOOPBACK = parse_networks("127.0.0.0/8,::1/128")
SECRET, OLD = new_secret(), new_secret()
BODY = json.dumps({"type": "job.succeeded", "data": {"id": "job_1", "ü": 1}}).encode()


def send(sender: Sender, url: str, secrets: Sequence[str] = (SECRET,)) -> Outcome:
    return sender.send(url, "evt_1", BODY, secrets).outcome


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().serve() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("tls") / "made"
    return Certificates.make(folder, "receiver.example", "other.example", "127.0.0.1")


def patient(*given: Any, **options: Any) -> Sender:
    """A sender that waits for a busy machine, unless told how long."""
    return Sender(*given, **{"seconds": patience()} | options)


SENDER = patient(LOOPBACK)
HURRIED = patient(LOOPBACK, seconds=0.3)


def test_a_delivery_arrives_as_the_library_of_standard_webhooks_expects(receiver: Receiver) -> None:
    assert send(SENDER, receiver.url, (SECRET, OLD)) == Outcome(204)
    [found] = receiver.received
    assert (found.path, found.body) == ("/hook?a=1", BODY)
    assert found.headers["content-type"] == "application/json"
    assert found.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert found.id == "evt_1"
    for secret in (SECRET, OLD):
        assert Webhook(secret).verify(found.body, dict(found.headers)) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(found.body, dict(found.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(found.body + b" ", dict(found.headers))


@pytest.mark.parametrize(
    ("code", "is_success"),
    [(200, True), (204, True), (299, True), (300, False), (302, False), (410, False), (500, False)],
)
def test_the_status_decides(receiver: Receiver, code: int, is_success: bool) -> None:
    receiver.answer = status(code, b"x")
    outcome = send(SENDER, receiver.url)
    assert (outcome.status, outcome.error) == (code, None)
    assert outcome.is_success is is_success


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    with Receiver().serve() as inner:
        for code in (301, 302, 303, 307, 308):
            receiver.answer = status(code, Location=inner.url)
            assert not send(SENDER, receiver.url).is_success
        assert inner.received == []


def test_the_answer_of_an_allowed_internal_network_is_not_kept(receiver: Receiver) -> None:
    receiver.answer = status(500, b"inside")
    assert send(SENDER, receiver.url).response is None


def large(_: Received, connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    for _number in range(15_000):
        connection.sendall(b"x" * 65_536)


def drip(head: bytes) -> Answer:
    def answer(_: Received, connection: socket.socket) -> None:
        connection.sendall(head)
        for _number in range(10_000):
            connection.sendall(b"x")
            time.sleep(0.02)

    return answer


def says(whole: bytes) -> Answer:
    return lambda _, connection: connection.sendall(whole)


def endless(piece: bytes) -> Answer:
    def answer(_: Received, connection: socket.socket) -> None:
        while True:
            connection.sendall(piece)

    return answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (large, Outcome(200)),
        (drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"), Outcome(200)),
        (drip(b"HTTP/1.1 200 OK\r\nX: "), Outcome(error=SendError.TIMEOUT)),
        (drip(b""), Outcome(error=SendError.TIMEOUT)),
        (endless(b"HTTP/1.1 100 Continue\r\n\r\n"), Outcome(error=SendError.ANSWER)),
        (endless(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000), Outcome(error=SendError.ANSWER)),
        (says(b""), Outcome(error=SendError.CONNECT)),
        (says(b"SSH-2.0\r\n\r\n"), Outcome(error=SendError.ANSWER)),
        (says(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), Outcome(error=SendError.ANSWER)),
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), Outcome(200)),
    ],
    ids=range(10),
)
def test_a_hostile_answer_ends_the_attempt(
    receiver: Receiver, answer: Answer, expected: Outcome
) -> None:
    receiver.answer = answer
    ends_by_time = answer.__qualname__.startswith("drip")
    seconds = 1.0 if ends_by_time else patience()
    assert send(patient(LOOPBACK, seconds=seconds), receiver.url) == expected


def test_a_receiver_that_never_answers_ends_the_attempt(receiver: Receiver) -> None:

    def wait(*_: object) -> None:
        receiver.ended.wait()

    receiver.answer = wait
    assert send(HURRIED, receiver.url) == Outcome(error=SendError.TIMEOUT)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and reads nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert send(HURRIED, url) == Outcome(error=SendError.TIMEOUT)
        assert send(HURRIED, url.replace("http", "https")) == Outcome(error=SendError.TIMEOUT)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
    assert send(SENDER, url) == Outcome(error=SendError.CONNECT)


def test_a_resolver_that_does_not_answer_ends_the_attempt() -> None:
    held = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        held.wait()
        return []

    attempt = patient(LOOPBACK, resolve=resolve, seconds=0.2).send(
        "https://slow.example/", "evt_1", BODY, [SECRET]
    )
    assert attempt.outcome == Outcome(error=SendError.TIMEOUT)
    assert attempt.lookup is not None
    assert attempt.lookup.is_alive()
    held.set()
    attempt.lookup.join()


def named(*found: str) -> sending.Resolve:
    return lambda host, port: found


@pytest.mark.parametrize(
    "found",
    [
        (),
        ("127.0.0.1",),
        ("1.1.1.1", "127.0.0.1"),
        ("127.0.0.1", "1.1.1.1"),
        ("1.1.1.1", "2606:4700::1111", "fd00::1"),
        ("::ffff:10.0.0.1",),
        ("64:ff9b::7f00:1",),
        ("169.254.169.254",),
        ("fe80::1%eth0",),
    ],
)
def test_one_internal_answer_of_dns_refuses_the_host(
    monkeypatch: pytest.MonkeyPatch, found: tuple[str, ...]
) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("it has connected")

    monkeypatch.setattr(socket, "create_connection", connect)
    sender = patient(resolve=named(*found))
    assert send(sender, "https://mixed.example/") == Outcome(error=SendError.ADDRESS)


def test_the_checked_address_is_connected_and_names_are_looked_up_at_each_attempt(
    receiver: Receiver,
) -> None:
    answers = iter([["127.0.0.1"], ["10.0.0.1"], ["127.0.0.1"], ["127.0.0.1", "1.1.1.1"]])
    asked = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return next(answers)

    sender = patient(LOOPBACK, resolve=resolve)
    url = f"http://rebound.example:{receiver.port}/"
    outcomes = [send(sender, url) for _ in range(4)]
    refused = Outcome(error=SendError.ADDRESS)
    assert outcomes == [Outcome(204), refused, Outcome(204), refused]
    assert asked == [("rebound.example", receiver.port)] * 4
    assert receiver.received[0].headers["host"] == f"rebound.example:{receiver.port}"


def test_an_address_that_takes_no_connection_leaves_time_for_the_next() -> None:
    with Receiver(host="::1").serve() as receiver:
        sender = patient(LOOPBACK, resolve=named("127.0.0.1", "::1"))
        assert send(sender, f"http://two.example:{receiver.port}/") == Outcome(204)
        assert send(SENDER, receiver.url) == Outcome(204)
        assert receiver.received[1].headers["host"] == f"[::1]:{receiver.port}"


def test_a_public_address_of_this_machine_is_refused(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_SPECIAL_IPV4", ())  # as if 127.0.0.1 were public
    monkeypatch.setattr(sending, "is_allowed", lambda *_: True)
    sender = patient(resolve=named("127.0.0.1"))
    url = f"https://here.example:{receiver.port}/"
    assert send(sender, url) == Outcome(error=SendError.ADDRESS)
    assert receiver.received == []


@pytest.mark.parametrize("url", ["http://example.com/", "https://127.0.0.1/", "https://x.com/#"])
def test_a_url_that_settings_no_longer_allow_is_not_contacted(url: str) -> None:
    assert send(patient(resolve=named("1.1.1.1")), url) == Outcome(error=SendError.URL)


def test_tls_is_verified_for_the_name_of_the_url(certificates: Certificates) -> None:
    tls = certificates.server("receiver.example")
    with Receiver(tls=tls).serve() as receiver:
        sender = patient(LOOPBACK, resolve=named("127.0.0.1"), tls=certificates.client)
        good = f"https://receiver.example:{receiver.port}/"
        assert send(sender, good) == Outcome(204)
        refused = Outcome(error=SendError.TLS)
        assert send(sender, good.replace("receiver", "other")) == refused
        assert send(sender, receiver.url) == refused  # an address that the certificate lacks
        assert send(patient(LOOPBACK, resolve=named("127.0.0.1")), good) == refused  # unknown CA
    with Receiver().serve() as plain:
        url = f"https://receiver.example:{plain.port}/"
        assert send(sender, url) == refused
    with Receiver(tls=certificates.server("127.0.0.1")).serve() as numbered:
        assert send(sender, numbered.url) == Outcome(204)


def test_the_file_ssl_cert_file_adds_authorities(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.trusted))
    sending._default_tls.cache_clear()
    with Receiver(tls=certificates.server("127.0.0.1")).serve() as receiver:
        assert send(patient(LOOPBACK), receiver.url) == Outcome(204)
    sending._default_tls.cache_clear()


@pytest.fixture
def through(certificates: Certificates) -> Iterator[tuple[Proxy, Receiver, Sender]]:
    """A proxy, a receiver behind it, and a sender that uses the proxy."""
    with (
        Receiver(tls=certificates.server("receiver.example")).serve() as receiver,
        Proxy(receiver.port).serve() as proxy,
    ):
        url = parse_url(f"http://127.0.0.1:{proxy.port}")

        def resolve(host: str, port: int) -> list[str]:
            raise AssertionError("the proxy looks names up")

        yield proxy, receiver, patient(proxy=url, resolve=resolve, tls=certificates.client)


def test_a_proxy_connects_and_tls_is_verified_through_it(
    through: tuple[Proxy, Receiver, Sender],
) -> None:
    proxy, receiver, sender = through
    receiver.answer = status(200, "grüß".encode() + b"\0" * 2000)
    outcome = send(sender, "https://receiver.example/hook")
    assert outcome.status == 200
    assert outcome.response is not None  # of a public receiver
    assert outcome.response.startswith("grüß")
    assert len(outcome.response.encode()) == MAX_RESPONSE
    assert proxy.asked == ["receiver.example:443"]
    assert receiver.received[0].headers["host"] == "receiver.example"
    assert send(sender, "https://other.example/") == Outcome(error=SendError.TLS)
    # IPv6 in brackets
    assert send(sender, "https://[2606:4700::1111]/") == Outcome(error=SendError.TLS)
    assert proxy.asked[-1] == "[2606:4700::1111]:443"


def test_a_proxy_is_never_asked_for_http_or_an_internal_address(
    through: tuple[Proxy, Receiver, Sender],
) -> None:
    proxy, _, sender = through
    for url in ("http://receiver.example/", "https://127.0.0.1/", "https://[::1]/"):
        assert send(sender, url) == Outcome(error=SendError.URL)
    assert proxy.asked == []


def test_a_proxy_that_refuses_or_is_down(through: tuple[Proxy, Receiver, Sender]) -> None:
    proxy, receiver, sender = through
    for code in (403, 407, 502):
        proxy.code = code
        assert send(sender, "https://receiver.example/") == Outcome(error=SendError.PROXY)
    assert receiver.received == []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        sender = patient(proxy=parse_url(f"http://127.0.0.1:{port}"), seconds=0.2)
        assert send(sender, "https://a.example/") == Outcome(error=SendError.TIMEOUT)
    assert send(sender, "https://a.example/") == Outcome(error=SendError.PROXY)


def test_no_proxy_of_the_environment_is_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert send(SENDER, receiver.url) == Outcome(204)


def test_nothing_is_decompressed(through: tuple[Proxy, Receiver, Sender]) -> None:
    _, receiver, sender = through
    bomb = gzip.compress(bytes(10_000_000))
    receiver.answer = status(200, bomb, Content_Encoding="gzip")
    assert send(sender, "https://receiver.example/") == Outcome(200)
    assert receiver.received[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        ("120", 120.0, 120.0),
        ("0", 0.0, 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0, 0.0),
        ("Wed, 21 Oct 2135 07:28:00 GMT", 1e9, 1e10),
    ],
)
def test_retry_after(receiver: Receiver, given: str, low: float, high: float) -> None:
    receiver.answer = status(503, Retry_After=given)
    found = send(SENDER, receiver.url).retry_after
    assert found is not None
    assert low <= found <= high


@pytest.mark.parametrize("given", ["-1", "1.5", "soon", "9" * 41, "٣", "Wed, 99 Oct 2015"])
def test_a_retry_after_that_is_none_is_ignored(receiver: Receiver, given: str) -> None:
    head = f"HTTP/1.1 503 x\r\nRetry-After: {given}\r\nContent-Length: 0\r\n\r\n"
    receiver.answer = says(head.encode())
    assert send(SENDER, receiver.url).retry_after is None


def test_signatures_are_those_of_the_standard() -> None:
    secret = "whsec_" + base64.b64encode(b"k" * 24).decode()
    headers = dict(sending.signature_headers("msg_1", 1_700_000_000, b"{}", [secret]))
    assert headers["webhook-timestamp"] == "1700000000"
    at = time.time()
    fresh = dict(sending.signature_headers("msg_1", int(at), b"{}", [secret]))
    assert Webhook(secret).verify(b"{}", fresh) == {}


def test_the_default_context_verifies() -> None:
    context = sending._default_tls()
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_the_system_resolver_answers_with_addresses() -> None:
    assert "127.0.0.1" in sending.resolve("localhost", 443)
    with pytest.raises(OSError):  # noqa: PT011 - each system has its own words
        sending.resolve("no-such-host.invalid", 443)
