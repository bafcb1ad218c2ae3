"""docker-compose.yml at work: every service as the file says it, on private servers; and changed files, which fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import backing
import compose_file
import dockerfile
import pytest
from containers import Container, Host
from redis import Redis

ROOT = Path(__file__).parents[2]
SECRETS = {"POSTGRES_PASSWORD": "elephant", "REDIS_PASSWORD": "dictionary"}

pytestmark = pytest.mark.xdist_group("deploy")


@pytest.fixture(scope="module")
def document() -> compose_file.Document:
    return compose_file.load(ROOT / "docker-compose.yml", SECRETS)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    host = Host(
        dockerfile.read(ROOT / "Dockerfile"), ROOT, tmp_path_factory.mktemp("deploy") / "image"
    )
    host.build()
    return host


@pytest.fixture(scope="module")
def servers(host: Host, document: compose_file.Document) -> Iterator[dict[str, Container]]:
    """PostgreSQL and Valkey, up and healthy."""
    with ExitStack() as stack:
        start = {"postgres": backing.postgres, "redis": backing.redis}
        yield {
            name: stack.enter_context(run(host, compose_file.service(document, name)))
            for name, run in start.items()
        }


def test_the_broker_keeps_what_it_is_told_and_asks_for_its_password(
    host: Host, servers: dict[str, Container]
) -> None:
    client = Redis(
        port=host.ports["6379"], password=SECRETS["REDIS_PASSWORD"], decode_responses=True
    )
    options = ("appendonly", "appendfsync", "maxmemory-policy", "maxmemory", "requirepass")
    assert client.config_get(*options) == {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
        "maxmemory": str(256 * 1024**2),
        "requirepass": SECRETS["REDIS_PASSWORD"],
    }
