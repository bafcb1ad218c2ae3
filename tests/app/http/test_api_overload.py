"""Overload: the service refuses at once what it cannot take, says why and when to retry, and keeps nothing of it."""

from __future__ import annotations

import asyncio
import gzip
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from app.http.limits import FairSemaphore
from app.platform import failpoints, processes, resources
from app.platform.errors import TooMany, Unavailable
from app.platform.settings import Settings
from tests.app.live_service import OWNER, STRANGER, Service, running, table
from tests.app.refusals import CSV, everything, job, refused
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences
from tests.waiting import eventually, patience

BODY = table(30).encode()
JSON = {"Content-Type": "application/json"}
QUOTA_BYTES = 50_000
_OWNERS = count(1)


@pytest.fixture(scope="module")
def tight(start: Callable[..., Service]) -> Service:
    """A service with small quotas."""
    return start(quota_queued_jobs=2, quota_bytes=QUOTA_BYTES, max_uploads=1)


@pytest.fixture
def client(tight: Service) -> Iterator[httpx.Client]:
    """A client of an owner who has nothing yet."""
    yield tight.client(tight.key(f"owner{next(_OWNERS)}"))
    tight.work()


def upload(client: httpx.Client, body: bytes = BODY, *, key: str | None = None) -> httpx.Response:
    params = {"label": "left", "positive": "yes"}
    headers = CSV if key is None else CSV | {"Idempotency-Key": key}
    return client.post("/v1/datasets", params=params, content=body, headers=headers)


@contextmanager
def sending(service: Service, owner: str = OWNER) -> Iterator[None]:
    """An upload that is under way for the length of a block, and never done."""
    address = urlsplit(service.url)
    taken = service.context.uploads.taken
    with socket.create_connection((address.hostname or "", address.port or 0)) as slow:
        slow.sendall(
            f"POST /v1/datasets?label=left HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\n"
            f"Authorization: Bearer {service.key(owner)}\r\nContent-Length: 1000\r\n\r\nage".encode()
        )
        eventually(lambda: service.context.uploads.taken > taken)
        yield
    eventually(lambda: service.context.uploads.taken == taken)


@long_form
def test_every_door_to_the_queue_keeps_the_quota(tight: Service, client: httpx.Client) -> None:
    dataset_id = tight.upload(client, BODY.decode())
    model_id = tight.train(client, dataset_id)["output"]["id"]
    cancelled = client.post("/v1/jobs", json=job(dataset_id)).json()["id"]
    client.post(f"/v1/jobs/{cancelled}/cancel")
    first = upload(client, key="one")
    assert first.status_code == 202
    assert client.post("/v1/jobs", json=job(dataset_id)).status_code == 202
    before = everything(tight)
    on = {"model": model_id, "dataset_id": dataset_id}
    for answer in (
        upload(client),
        upload(client, key="two"),
        client.post("/v1/jobs", json=job(dataset_id)),
        client.post(f"/v1/jobs/{cancelled}/retry"),
        client.post("/v1/evaluations", json=on),
        client.post("/v1/batch-scores", json=on),
        client.post(
            "/v1/comparisons", json={"models": [model_id, "churn"], "dataset_id": dataset_id}
        ),
    ):
        if answer.status_code == 422:  # a model is compared with others alone
            continue
        problem = refused(answer, 429, "quota_exceeded", 2)
        assert problem["errors"][0]["quota"] == "queued_jobs"
        assert int(answer.headers["Retry-After"]) > 0
    assert everything(tight) == before
    metrics = client.get("/metrics").text.splitlines()
    assert 'rankwright_owners_at_quota{quota="queued_jobs"} 1.0' in metrics
    lane = 'rankwright_queue_oldest_seconds{kind="ingest",priority="normal"}'
    oldest = next(line for line in metrics if line.startswith(lane))
    assert float(oldest.split()[1]) > 0
    replay = upload(client, key="one")
    assert (replay.status_code, replay.headers["Idempotent-Replayed"]) == (202, "true")
    stranger = tight.client(tight.key(STRANGER))
    assert upload(stranger).status_code == 202


def test_an_upload_too_many_is_refused_before_it_is_sent(
    tight: Service, client: httpx.Client
) -> None:
    with sending(tight):
        answer = upload(client)
        refused(
            answer,
            503,
            "too_many_uploads",
            1,
        )
        assert int(answer.headers["Retry-After"]) > 0
    assert upload(client).status_code == 202


def test_one_owner_takes_no_more_places_than_are_left_free(sentences: Sentences) -> None:
    semaphore = FairSemaphore(32, "uploads", Unavailable)
    taken: Counter[str] = Counter()
    for owner in ("one", "two", "three"):
        while semaphore.refusal(owner) is None:
            permit = semaphore.acquire(owner)
            taken[owner] += 1
    assert taken == {"one": 16, "two": 8, "three": 4}
    assert semaphore.taken == 28
    refusal = semaphore.refusal("three")
    assert isinstance(refusal, TooMany)
    assert refusal.code == "too_many_uploads"
    sentences(refusal)
    semaphore.release("three", permit)
    assert semaphore.refusal("three") is None
    assert semaphore.refusal("four") is None
    with semaphore.hold("four"):
        assert semaphore.taken == 28
    assert semaphore.taken == 27
    with pytest.raises(RuntimeError), semaphore.hold("four"):
        raise RuntimeError
    assert semaphore.taken == 27


@pytest.mark.parametrize(("most", "alone"), [(0, 0), (1, 1), (2, 1), (3, 2), (200, 100)])
def test_one_owner_alone_has_half_of_the_places(most: int, alone: int) -> None:
    semaphore = FairSemaphore(most, "uploads", Unavailable)
    for _ in range(alone):
        semaphore.acquire("one")
    with pytest.raises(TooMany if alone < most else Unavailable):
        semaphore.acquire("one")


def test_owners_who_wait_take_turns() -> None:
    """However many of the first owner's requests wait, the next one's is served before the second of them."""

    async def serve() -> list[str]:
        semaphore = FairSemaphore(3, "computations", TooMany)
        served: list[str] = []

        async def compute(owner: str) -> None:
            async with semaphore.turn(owner, 30):
                served.append(owner)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for owner in ["one"] * 5 + ["two"] * 3 + ["three"] * 2:
                group.create_task(compute(owner))
        assert semaphore.taken == 0
        return served

    served = asyncio.run(serve())
    assert served[:3] == ["one", "one", "two"]  # one place of three is left to the next owner
    assert sorted(served[3:6]) == ["one", "three", "two"]
    assert Counter(served) == {"one": 5, "two": 3, "three": 2}


def test_who_waits_in_vain_leaves_no_trace() -> None:
    async def wait() -> None:
        semaphore = FairSemaphore(1, "computations", TooMany)
        with semaphore.hold("one"):
            for owner in ("one", "two"):
                with raises(TooMany, 1, "computations"):
                    async with semaphore.turn(owner, 0.001):
                        pass
            gone = asyncio.create_task(semaphore.turn("two", 30).__aenter__())
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.wait([gone])
        async with semaphore.turn("three", 0):
            assert semaphore.taken == 1
        late = asyncio.create_task(semaphore.turn("two", 30).__aenter__())
        with semaphore.hold("one"):
            await asyncio.sleep(0)
        late.cancel()  # at the moment in which its turn came
        await asyncio.wait([late])
        assert semaphore.taken == 0

    asyncio.run(wait())


@long_form
def test_who_has_a_share_of_the_places_leaves_one_to_others(settings: Settings) -> None:
    """By the service: uploads, waits for jobs, streams of events, and requests of any kind."""
    small = {"max_uploads": 2, "max_waiters": 2, "max_requests": 6}
    with ExitStack() as stack:
        service = stack.enter_context(running(settings.model_copy(update=small)))
        one, other = (service.client(service.key(owner)) for owner in (OWNER, STRANGER))
        dataset_id, others = service.upload(one), service.upload(other)
        waits = {"Prefer": "wait=60"}
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(one.post, "/v1/jobs", json=job(dataset_id), headers=waits)
            eventually(lambda: service.context.waiters.taken == 1)
            answer = one.post("/v1/jobs", json=job(dataset_id), headers=waits)
            assert answer.status_code == 202
            assert "Preference-Applied" not in answer.headers
            read = one.get(answer.headers["Location"], headers=waits)
            assert (read.status_code, read.headers["Retry-After"]) == (200, "1")
            events = f"{answer.headers['Location']}/events"
            stream = {"Accept": "text/event-stream"}
            refused(one.get(events, headers=stream), 429, "too_many_waiters", 1)
            following = threads.submit(other.post, "/v1/jobs", json=job(others), headers=waits)
            eventually(lambda: service.context.waiters.taken == 2)
            service.work()
            assert (waiting.result().status_code, following.result().status_code) == (201, 201)
        assert one.get(events, headers=stream).text.count("event: ") > 1
        eventually(lambda: not service.context.waiters.taken)
        stack.enter_context(sending(service))
        refused(upload(one), 429, "too_many_uploads", 1, 2)
        assert upload(other).status_code == 202
        eventually(lambda: service.context.requests.taken == 1)
        permits = [service.context.requests.acquire(OWNER) for _ in range(2)]
        refused(one.get("/v1/jobs"), 429, "too_many_requests", 3, 6)
        assert other.get("/v1/jobs").status_code == 200
        for permit in permits:
            service.context.requests.release(OWNER, permit)
        assert one.get("/v1/jobs").status_code == 200
        service.work()


def test_a_request_too_many_is_refused_and_health_is_told(settings: Settings) -> None:
    with running(settings.model_copy(update={"max_requests": 1})) as service:
        client = service.client(service.key())
        with sending(service):
            answer = client.get("/v1/jobs")
            refused(answer, 503, "too_many_requests", 1)
            assert int(answer.headers["Retry-After"]) > 0
            assert client.get("/health/live").status_code == 200
        assert client.get("/v1/jobs").status_code == 200


SIGN_IN = b"POST /console/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"


def connected(service: Service) -> socket.socket:
    address = urlsplit(service.url)
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=patience())


def test_bodies_without_a_key_take_no_place_from_callers_with_one(settings: Settings) -> None:
    """An address holds half of the places for those, and other addresses the rest."""
    with ExitStack() as stack:
        service = stack.enter_context(running(settings.model_copy(update={"max_requests": 4})))
        for _ in range(2):
            slow = stack.enter_context(connected(service))
            slow.sendall(SIGN_IN + b"Content-Length: 9\r\n\r\n")
        one = service.client()
        form = {"key": service.key()}
        eventually(lambda: one.post("/console/sign-in", data=form).status_code == 429)
        other = one.post("/console/sign-in", data=form, headers={"X-Forwarded-For": "10.0.0.9"})
        assert other.status_code == 303
        assert service.client(form["key"]).get("/v1/jobs").status_code == 200
        assert one.get("/health/ready").status_code == 200
        slow.close()
        eventually(lambda: one.post("/console/sign-in", data=form).status_code == 303)


def test_a_body_without_a_key_comes_as_fast_as_a_head(settings: Settings) -> None:
    with (
        running(settings.model_copy(update={"head_seconds": 0.2})) as service,
        connected(service) as slow,
    ):
        slow.sendall(SIGN_IN + b"Content-Length: 9\r\n\r\n")
        assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_an_address_has_half_of_the_connections(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.server.descriptor_limit", lambda: 8)
    with ExitStack() as stack:
        service = stack.enter_context(running(settings))
        held = [stack.enter_context(connected(service)) for _ in range(2)]
        for line in held:
            line.sendall(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert line.recv(4096).startswith(b"HTTP/1.1 200 ")
        with connected(service) as more:
            answer = more.recv(4096)
        assert answer.startswith(b"HTTP/1.1 429 ")
        assert b"too_many_connections" in answer
        assert b"\r\nRetry-After: " in answer
        held.pop().close()
        eventually(lambda: is_answered(service))


def is_answered(service: Service) -> bool:
    try:
        return httpx.get(f"{service.url}/health/live", verify=False).status_code == 200
    except httpx.TransportError:
        return False


def test_a_process_opens_as_many_files_as_it_may() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        assert processes.descriptor_limit() == 512
        processes.raise_descriptor_limit()
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised[1] == before[1]
        assert processes.descriptor_limit() == raised[0] > 512
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_disk_that_is_nearly_full_refuses_before_the_body(
    tight: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_id = tight.upload(client, BODY.decode())
    before = everything(tight)
    monkeypatch.setattr(resources, "free_bytes", lambda folder: 1000)
    for answer in (
        upload(client),
        upload(client, key="k"),
        client.post("/v1/jobs", json=job(dataset_id)),
    ):
        refused(answer, 507, "out_of_space", 1000)
        assert int(answer.headers["Retry-After"]) > 0
    assert client.get(f"/v1/datasets/{dataset_id}").status_code == 200
    monkeypatch.undo()
    assert everything(tight) == before


class Growing:
    """An upload of unknown length that comes bit by bit."""

    def __init__(self, client: httpx.Client, path: str = "datasets", **headers: str) -> None:
        address = urlsplit(str(client.base_url))
        self._socket = socket.create_connection(
            (address.hostname, address.port), timeout=patience()
        )
        lines = {"Authorization": client.headers["Authorization"], "Content-Type": "text/csv"}
        given = "".join(f"{name}: {value}\r\n" for name, value in (lines | headers).items())
        head = f"POST /v1/{path}?label=left HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        self._socket.sendall((head + given + "\r\n").encode())

    def grow(self, n_bytes: int) -> None:
        """Send some more; the service may answer and hang up before all of it has gone."""
        with suppress(ConnectionError):
            self._socket.sendall(b"%x\r\n" % n_bytes + b"\n" * n_bytes + b"\r\n")

    def refusal(self) -> bytes:
        """Return the answer to a body that is not complete, until the service hangs up."""
        heard = b""
        with self._socket, suppress(ConnectionError):
            while more := self._socket.recv(1 << 16):
                heard += more
        return heard


def test_a_quota_is_kept_while_a_body_comes(tight: Service, client: httpx.Client) -> None:
    first = upload(client, key="one")
    assert first.status_code == 202
    tight.work()
    before = everything(tight)
    growing = Growing(client)
    growing.grow(4 << 20)
    heard = growing.refusal()
    assert heard.startswith(b"HTTP/1.1 429 ")
    assert b"quota_exceeded" in heard
    assert f" {QUOTA_BYTES} stored bytes".encode() in heard
    assert b"connection: close" in heard.lower()
    # A key that was never used names no replay, and opens no way around the quota.
    refused(upload(client, b"\n" * QUOTA_BYTES, key="new"), 429, "quota_exceeded")
    growing = Growing(client, **{"Idempotency-Key": "new"})
    growing.grow(4 << 20)
    assert growing.refusal().startswith(b"HTTP/1.1 429 ")
    assert everything(tight) == before
    assert upload(client, key="one").headers["Idempotent-Replayed"] == "true"


@long_form
def test_uploads_under_way_at_once_are_counted_together(
    settings: Settings, sentences: Sentences
) -> None:
    with running(settings.model_copy(update={"quota_bytes": 1500})) as service:
        client = service.client(service.key())
        body = b"age,left\n" + b"1,yes\n" * 90
        with sending(service):  # 1000 bytes
            problem = refused(upload(client, body), 429, "quota_exceeded")
            sentences(problem)
            assert upload(service.client(service.key(STRANGER)), body).status_code == 202
        assert upload(client, body).status_code == 202
        service.work()


def test_free_space_is_kept_while_a_body_comes(
    tight: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(tight)
    free = tight.settings.min_free_bytes + 10_000
    looks: list[int] = []

    def free_bytes(folder: Path) -> int:
        looks.append(free)
        return free

    monkeypatch.setattr(resources, "free_bytes", free_bytes)
    answer = upload(client, b"\n" * 10_001)
    refused(answer, 507, "out_of_space", 10001)
    looks.clear()
    growing = Growing(client, "datasets/validate")
    growing.grow(1 << 10)
    # Once when the upload is admitted, and once with its first bytes.
    eventually(lambda: len(looks) == 2 * len(resources.folders(tight.settings)))
    free = tight.settings.min_free_bytes - 1
    growing.grow(4 << 20)
    assert growing.refusal().startswith(b"HTTP/1.1 507 ")
    monkeypatch.undo()
    assert everything(tight) == before


@pytest.mark.parametrize("seam", ["adopt", "accept"])
def test_a_disk_that_fills_up_while_an_upload_comes(
    tight: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch, seam: str
) -> None:
    before = everything(tight)
    monkeypatch.setattr(failpoints, "armed", failpoints.parse(f"{seam}=full"))
    refused(upload(client), 507, "out_of_space")
    monkeypatch.undo()
    assert everything(tight)[0] == before[0]
    left = everything(tight)[1] - before[1]
    assert all((tight.blobs.root / name).is_dir() for name in left)
    assert upload(client).status_code == 202


def test_what_takes_memory_here_is_done_a_few_at_a_time(
    tight: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.dependencies.COMPUTATION_WAIT_SECONDS", 0.01)
    dataset_id = tight.upload(client, BODY.decode())
    score = f"/v1/models/{tight.train(client, dataset_id)['output']['id']}/score"
    rows = b'{"columns":["age","income","score 1"],"data":[[1,1,1]]}'
    asked = (
        ("/v1/datasets/validate?label=left", BODY, CSV),
        (score, gzip.compress(rows), JSON | {"Content-Encoding": "gzip"}),
    )
    with tight.computing():
        for path, body, headers in asked:
            answer = client.post(path, content=body, headers=headers)
            refused(answer, 429, "too_many_computations")
        assert client.post(score, content=rows, headers=JSON).status_code == 200
    assert [client.post(path, content=body, headers=h).status_code for path, body, h in asked] == [
        *(200, 200)
    ]


def test_what_is_only_checked_is_given_up_where_it_is_too_large(
    tight: Service, client: httpx.Client
) -> None:
    address = urlsplit(tight.url)
    head = (
        "POST /v1/datasets/validate?label=left HTTP/1.1\r\nHost: here\r\nContent-Type: text/csv\r\n"
        f"Authorization: {client.headers['Authorization']}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    most = tight.settings.max_body_bytes
    with socket.create_connection(
        (address.hostname, address.port), timeout=patience()
    ) as connection:
        connection.sendall(head.encode() + b"%x\r\n" % (most + 1) + b"a" * (most + 1) + b"\r\n")
        answer = connection.recv(4096)  # though more might come
    assert answer.startswith(b"HTTP/1.1 413 ")
