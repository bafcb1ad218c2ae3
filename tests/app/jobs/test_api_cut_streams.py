"""A stream of events that is cut again and again tells each event once, in order."""

from __future__ import annotations

import random
import re
import socket
import threading

from app.jobs import queue
from app.platform.tables import Job
from tests.app.live_service import Service
from tests.long_form import LONG_FORM, long_form
from tests.waiting import patience

CUTS = 1000 if LONG_FORM else 40
EVENT = re.compile(rb"id: (\d+)\nevent: \w+\ndata: .*\n\n")


def read_some(service: Service, secret: str, path: str, last: int, most: int) -> bytes:
    """The first `most` bytes of the stream's body, or all of it; then hang up, in the middle of an event or not."""
    host, port = service.url.removeprefix("http://").split(":")
    head = (
        f"GET {path} HTTP/1.0\r\nAuthorization: Bearer {secret}\r\n"
        f"Accept: text/event-stream\r\nLast-Event-ID: {last}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=patience()) as connection:
        connection.sendall(head.encode())
        answer = b""
        while (at := answer.find(b"\r\n\r\n")) < 0 or len(answer) < at + 4 + most:
            data = connection.recv(4096)
            if not data:
                break
            answer += data
    return answer[at + 4 :][:most]


@long_form
def test_cut_again_and_again_there_is_no_gap_and_no_repeat(service: Service) -> None:
    secret = service.key()
    client = service.client(secret)
    dataset_id = service.upload(client)
    body = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost", "n_rounds": 5}}
    job_id = client.post("/v1/jobs", json=body).json()["id"]
    claim = service.context.db.writing(queue.claim, service.settings, "w")
    assert claim is not None
    reading_done = threading.Event()

    def tell() -> None:
        """Make events while they are read, the last one only when the cuts are done."""
        step = 0
        while not reading_done.is_set():
            progress = {"fraction": 0.5, "step": (step := step + 1), "of": 10**6, "detail": ""}
            service.context.db.writing(queue.heartbeat, service.settings, claim, progress)
            reading_done.wait(0.005)
        service.context.db.writing(queue.fail, claim, {"code": "x", "title": "x", "detail": "x"})

    teller = threading.Thread(target=tell)
    teller.start()
    rng = random.Random(0)
    heard: list[int] = []
    path = f"/v1/jobs/{job_id}/events"
    for _ in range(CUTS):
        last = heard[-1] if heard else 0
        some = read_some(service, secret, path, last, rng.randrange(400))
        heard += [int(number) for number in EVENT.findall(some)]
    reading_done.set()
    teller.join()
    whole = read_some(service, secret, path, heard[-1], 10**9)
    heard += [int(number) for number in EVENT.findall(whole)]
    assert heard == list(range(1, len(heard) + 1))
    with service.context.db.read() as session:
        job = session.get(Job, job_id)
        assert job is not None
        assert job.event_seq == len(heard)
