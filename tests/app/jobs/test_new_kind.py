"""A kind of job that one file declares goes from POST to result, is retried, listed and deleted like any other."""

from __future__ import annotations

import httpx
import pytest

from app.jobs import kinds
from app.jobs.routes import output_routers
from tests.app.live_service import Service
from tests.app.refusals import refused


@pytest.fixture
def echoes(service: Service, monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    """A client of a service that knows the kind."""
    monkeypatch.setitem(kinds.KINDS, "echo", kinds.Entry("tests.app.jobs.echo_kind"))
    for router in output_routers(["echo"]):
        service.app.router.routes[:0] = router.routes
    return service.client(service.key())


def test_a_kind_of_one_file(service: Service, echoes: httpx.Client) -> None:
    refused(echoes.post("/v1/echoes", json={"text": " "}), 422, "invalid", "got ' '")
    refused(echoes.post("/v1/echoes", json={"words": "a"}), 422, "invalid")
    checked = echoes.post("/v1/echoes/validate", json={"text": "a"})
    assert checked.json() == {"valid": True}

    answer = echoes.post("/v1/echoes", json={"text": "hello"})
    echo, address = answer.json(), answer.headers["Location"]
    assert (answer.status_code, echo["status"], echo["length"]) == (202, "processing", None)
    refused(echoes.delete(address), 409, "echo_in_use")
    first = f"/v1/jobs/{echo['job_id']}"
    assert echoes.get(first).json()["output"] == {"kind": "echo", "id": echo["id"]}
    echoes.post(f"{first}/cancel")
    assert echoes.get(address).json()["status"] == "cancelled"
    again = echoes.post(f"{first}/retry").json()["id"]
    refused(echoes.post(f"{first}/retry"), 409, "job_not_retryable", again)

    assert service.work() == 1
    done = echoes.get(address).json()
    assert (done["status"], done["length"], done["job_id"]) == ("ready", 5, again)
    assert [each["id"] for each in echoes.get("/v1/echoes").json()["data"]] == [echo["id"]]
    assert echoes.delete(address).status_code == 204
    refused(echoes.get(address), 404, "not_found", echo["id"])


def test_what_is_known_of_a_kind_in_advance_is_what_it_declares() -> None:
    for name, entry in kinds.KINDS.items():
        kind = kinds.kind_of(name)
        output = None if kind.output is None else kind.output.code
        assert kind.name == name
        assert (name, entry.has_end_hook) == (name, kind.on_end is not kinds.no_end_hook)
        assert (name, entry.output) == (name, "model" if name in ("train", "import") else output)
