"""Foreign messages in the broker, which must not keep wake-ups from a worker."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from app.platform.broker import QUEUE, Producer
from tests.servers import ValkeyServer
from tests.waiting import eventually

PROPERTIES = {"delivery_tag": "t", "delivery_info": {"exchange": "", "routing_key": QUEUE}}
UNREADABLE = [
    b"",
    b"\xff\xfe",
    b"{}",
    b"[1, 2]",
    b"null",
    json.dumps({"body": "", "properties": PROPERTIES | {"delivery_tag": None}}).encode(),
    json.dumps({"body": "!", "properties": PROPERTIES | {"body_encoding": "no"}}).encode(),
]

# A worker's Celery without its slots; it says of each wake-up that it came, and whose the handlers of signals are.
PROGRAM = """
import signal, sys, threading
from types import SimpleNamespace
from workers import tasks

def wake():
    theirs = [name for name in ("SIGTERM", "SIGINT", "SIGHUP") if signal.getsignal(getattr(signal, name)) is not ours]
    print("woken", *theirs, flush=True)

def ours(*_):
    pass

for name in ("SIGTERM", "SIGINT", "SIGHUP"):
    signal.signal(getattr(signal, name), ours)
tasks.RESTART_SECONDS = 0.0
slots = SimpleNamespace(
    worker_id="wrk_test", settings=SimpleNamespace(worker_slots=1), stopping=threading.Event(), wake=wake
)
app = tasks.make_app(sys.argv[1], slots)
threading.Thread(target=tasks.consume, args=(app, slots), daemon=True).start()
while True:
    signal.pause()
"""


def test_a_message_that_cannot_be_read_ends_no_worker(valkey: ValkeyServer, tmp_path: Path) -> None:
    """In a process of its own: a thread of Celery ends with its process alone."""
    heard = tmp_path / "heard"
    with heard.open("w") as out:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, valkey.broker_url], stdout=out)
    producer = Producer(valkey.broker_url)

    def is_heard(n: int) -> bool:
        return len(heard.read_text().splitlines()) == n

    try:
        for n, rubbish in enumerate(UNREADABLE, 1):
            valkey.client.lpush(QUEUE, rubbish)
            producer.wake()
            eventually(partial(is_heard, n))
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        producer.close()
    assert set(heard.read_text().splitlines()) == {"woken"}
    assert valkey.client.llen(QUEUE) == 0
