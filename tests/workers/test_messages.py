"""What may lie in the broker beside wake-ups, and must not keep them from a worker."""

from __future__ import annotations

import json

import pytest
from kombu import Consumer, Message, Queue
from servers import ValkeyServer

import workers.celery_app  # noqa: F401 - its channel is what is tested
from app.platform.broker import QUEUE, WAKE_TASK, Producer, make_celery

PROPERTIES = {"delivery_tag": "t", "delivery_info": {"exchange": "", "routing_key": QUEUE}}


@pytest.mark.parametrize(
    "rubbish",
    [
        b"",
        b"\xff\xfe",
        b"{}",
        b"[1, 2]",
        b"null",
        json.dumps({"body": "", "properties": PROPERTIES | {"delivery_tag": None}}).encode(),
        json.dumps({"body": "!", "properties": PROPERTIES | {"body_encoding": "no"}}).encode(),
    ],
)
def test_a_message_that_cannot_be_read_is_dropped(valkey: ValkeyServer, rubbish: bytes) -> None:
    heard: list[str] = []

    def hear(message: Message) -> None:
        heard.append(message.headers["task"])
        message.ack()

    valkey.client.lpush(QUEUE, rubbish)
    producer = Producer(valkey.broker_url)
    producer.wake()
    producer.close()
    with (
        make_celery(valkey.broker_url).connection() as connection,
        Consumer(connection.default_channel, [Queue(QUEUE)], on_message=hear, accept=["json"]),
    ):
        for _ in range(3):
            if not heard:
                connection.drain_events(timeout=10)
    assert heard == [WAKE_TASK]
    assert valkey.client.llen(QUEUE) == 0
