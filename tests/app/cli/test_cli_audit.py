"""`rankwright audit list` and `export`, and the client's export, against a running service."""

from __future__ import annotations

import json

from rankwright import Client

from app.operations import seal_repository
from app.platform.audit_keys import AuditKeys
from tests.app.cli.conftest import Run
from tests.app.live_service import Service


def test_the_log_is_listed_and_exported(service: Service, run: Run) -> None:
    secret = service.key(name="lister")
    client = service.client(secret)
    for name in ("a", "b"):
        assert client.post("/v1/keys", json={"name": name, "scopes": ["read"]}).is_success
    reader = service.client(service.key(scopes=["read"]))
    assert reader.delete("/v1/models/m").status_code == 403
    service.app.state.denials.write()
    listed = json.loads(run("audit", "list", "--json").stdout)
    assert [each["outcome"] for each in listed] == ["denied", "done", "done"]
    assert run("audit", "list", "--limit", "1", "--outcome", "done").stdout.count("POST") == 1
    assert "lister" in run("audit", "list", "--principal", "LISTER").stdout
    assert run("audit", "export").stdout == ""  # nothing is sealed yet
    service.context.db.writing(seal_repository.seal_some, AuditKeys())
    lines = [json.loads(line) for line in run("audit", "export").stdout.splitlines()]
    assert [each["id"] for each in lines] == [each["id"] for each in listed[::-1]]
    after = lines[0]["position"]
    assert run("audit", "export", "--after", after).stdout.count("\n") == 2
    assert run("audit", "export", "--after", lines[-1]["position"]).stdout == ""
    with Client(service.url, secret) as sync:
        exported = list(sync.export_audit(after, outcome="done"))
    assert [each.id for each in exported] == [lines[1]["id"]]
    for wrong in (("--after", "-1"), ("--after", "x"), ("--every", "0")):
        run("audit", "export", *wrong, code=2)
    run("audit", "list", "--outcome", "lost", code=2)
