"""A stored upload that is read again over HTTP: with other fields, from every kind of dataset; and what is refused."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from rankwright import Client

from app.access.repository import stored_bytes
from tests.app.live_service import OWNER, STRANGER, Service, table
from tests.app.refusals import CSV, everything, refused
from tests.long_form import long_form
from tests.sentences import Sentences

ROWS = "".join(
    f"{n % 7},{n * 3 % 11},{'ab'[n % 2]},c{n // 4},{'xyz'[n % 3]},{n % 5 == 0}\n" for n in range(60)
)
SHOP = "age,income,branch,customer,sort,left\n" + ROWS
NOWHERE = "ds_0198f0c2a4d37c1e8a4b5c6d7e8f9012"


def upload(service: Service, client: httpx.Client, body: str | bytes, **fields: str) -> Any:
    answer = client.post("/v1/datasets", params=fields, content=body, headers=CSV)
    assert answer.status_code == 202, answer.text
    service.work()
    return client.get(f"/v1/datasets/{answer.json()['id']}").json()


def read_again(client: httpx.Client, dataset_id: str, **changes: Any) -> httpx.Response:
    body = json.dumps(changes)  # escapes a lone surrogate
    headers = {"Content-Type": "application/json"}
    return client.post(f"/v1/datasets/{dataset_id}/read", content=body, headers=headers)


def reread(service: Service, client: httpx.Client, dataset_id: str, **changes: Any) -> Any:
    answer = read_again(client, dataset_id, **changes)
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"/v1/datasets/{answer.json()['id']}"
    service.work()
    return client.get(answer.headers["Location"]).json()


def test_from_the_stored_bytes_a_new_dataset(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    fields = {"name": "shop", "label": "left", "positive": "True", "drop": "branch"}
    first = upload(service, client, SHOP, **fields, categorical="age", missing="0,none")
    assert first["status"] == "ready"
    other = reread(service, client, first["id"], positive="False", group="customer")
    assert (other["status"], other["positive"], other["negative"]) == ("ready", "false", "true")
    assert (other["positives"], other["negatives"]) == (first["negatives"], first["positives"])
    assert other["group"] == "customer"
    assert other["id"] != first["id"]
    assert (other["series_id"], other["version"]) == (first["id"], 2)
    assert (other["parent_id"], other["mode"]) == (first["id"], "replace")
    kept = ("name", "label", "drop", "categorical", "missing", "upload_sha256", "sha256", "bytes")
    assert {name: other[name] for name in kept} == {name: first[name] for name in kept}
    assert client.get(f"/v1/datasets/{first['id']}").json() == first
    # What it is does not depend on how it came.
    whole = upload(service, client, SHOP, **fields | {"positive": "False"}, group="customer",
                   categorical="age", missing="0,none")  # fmt: skip
    own = {"id", "series_id", "version", "parent_id", "mode", "job_id", "created_at"}
    assert whole["version"] == 3
    assert {n: v for n, v in whole.items() if n not in own} == {
        n: v for n, v in other.items() if n not in own
    }


def test_a_name_and_a_version_identify_a_dataset(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    first = upload(service, client, SHOP, name="shop", label="left")["id"]
    apart = upload(service, client, SHOP, name="shop", label="left")
    assert (apart["version"], apart["series_id"]) == (2, apart["id"])
    other_client = service.client(service.key(owner=STRANGER))
    assert upload(service, other_client, SHOP, name="shop", label="left")["version"] == 1
    renamed = reread(service, client, first, name="branches")
    assert (renamed["version"], renamed["series_id"]) == (1, renamed["id"])
    assert (renamed["parent_id"], renamed["mode"]) == (None, None)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: read_again(client, first, group="customer"), range(4)))
    assert {each.status_code for each in made} == {202}
    assert sorted(each.json()["version"] for each in made) == [3, 4, 5, 6]
    assert {each.json()["series_id"] for each in made} == {first}
    service.work()
    versions = client.get(f"/v1/datasets/{first}/versions").json()["data"]
    assert [each["version"] for each in versions] == [6, 5, 4, 3, 1]
    newest = versions[0]["id"]
    assert client.delete(f"/v1/datasets/{newest}").status_code == 204
    assert client.delete(f"/v1/trash/{newest}").status_code == 204
    assert reread(service, client, first)["version"] == 7


def test_the_bytes_stay_while_one_dataset_names_them(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    first = service.upload(client)
    made = read_again(client, first, positive="no").json()
    assert client.delete(f"/v1/datasets/{first}").status_code == 204
    assert client.delete(f"/v1/trash/{first}").status_code == 204
    refused(read_again(client, first), 404, "not_found")
    service.work()
    assert client.get(f"/v1/datasets/{made['id']}").json()["positive"] == "no"
    with service.context.db.read() as session:
        held = stored_bytes(session, OWNER)
    again = reread(service, client, made["id"])
    with service.context.db.read() as session:
        assert stored_bytes(session, OWNER) == 2 * held  # each dataset counts for the quota
    with service.setting(quota_bytes=2 * held):
        refused(read_again(client, again["id"]), 429, "quota_exceeded", "bytes")


def test_an_invalid_dataset_becomes_a_valid_one(service: Service, client: httpx.Client) -> None:
    invalid = upload(service, client, SHOP, name="shop", label="sort", group="customer")
    assert invalid["status"] == "invalid"
    suggestion = next(e["suggestion"] for e in invalid["errors"] if e["suggestion"])
    mended = reread(service, client, invalid["id"], **suggestion)
    assert (mended["status"], mended["label"], mended["group"]) == ("ready", "sort", "customer")
    assert mended["negative"] == f"not {suggestion['positive']}"
    latin = "größe,left\n1,ja\n2,nein\n3,ja\n4,nein\n".encode("latin-1")
    garbled = upload(service, client, latin)
    assert garbled["status"] == "invalid"
    assert (
        reread(service, client, garbled["id"], encoding="latin-1")["columns"][0]["name"] == "größe"
    )


def test_what_stays_and_what_goes(service: Service, client: httpx.Client) -> None:
    for before, changes, expected in (
        # The positive value belongs to its label.
        (
            {"label": "left", "positive": "False"},
            {"label": "branch"},
            {"positive": "b", "label": "branch"},
        ),
        ({"label": "left", "positive": "False"}, {"label": "left"}, {"positive": "false"}),
        ({"label": "left", "positive": "False"}, {"positive": None}, {"positive": "true"}),
        # A column has one role, and rows have groups or queries.
        (
            {"drop": "customer,branch"},
            {"group": "customer"},
            {"drop": ["branch"], "group": "customer"},
        ),
        (
            {"categorical": "age,income"},
            {"numeric": "age"},
            {"categorical": ["income"], "numeric": ["age"]},
        ),
        ({"query": "customer"}, {"group": "customer"}, {"query": None, "group": "customer"}),
        ({"group": "customer"}, {"query": "branch"}, {"query": "branch", "group": None}),
        ({"group": "branch"}, {"label": "branch"}, {"group": None, "label": "branch"}),
        (
            {"label": "branch", "positive": "a"},
            {"group": "branch"},
            {"group": "branch", "label": "left", "positive": "true"},
        ),
        # Null is the default of an upload, and what is not given stays.
        ({"drop": "branch", "missing": ","}, {"drop": None}, {"drop": None, "missing": []}),
        ({"strict": "true"}, {"strict": False, "group": "customer"}, {"strict": False}),
        ({"strict": "true"}, {"strict": "false"}, {"strict": False}),
        ({}, {"strict": "true"}, {"strict": True}),
        ({"strict": "true"}, {"group": "customer"}, {"strict": True}),
        # Another kind drops what it does not have.
        (
            {"label": "left"},
            {"kind": "multilabel", "labels": "left,branch"},
            {"kind": "multilabel", "label": None},
        ),
        (
            {"kind": "multilabel", "labels": "left,branch"},
            {"kind": None, "label": "branch"},
            {"kind": "bipartite", "labels": None, "label": "branch"},
        ),
        (
            {"positive": "True"},
            {"kind": "graded", "label": "age"},
            {"kind": "graded", "positive": None},
        ),
    ):
        first = upload(service, client, SHOP, **before)
        assert first["status"] == "ready", first["errors"]
        made = reread(service, client, first["id"], **changes)
        assert made["status"] == "ready", made["errors"]
        assert {name: made[name] for name in expected} == expected


def test_names_with_commas_and_quotes_stay(service: Service, client: httpx.Client) -> None:
    body = '"a,b","say ""x""",left\n' + "".join(f"{n},{n % 3},{n % 2}\n" for n in range(20))
    first = upload(service, client, body, categorical='"a,b","say ""x"""')
    made = reread(service, client, first["id"], positive="0")
    assert made["categorical"] == first["categorical"] == ["a,b", 'say "x"']


def test_a_table_of_several_files(service: Service, client: httpx.Client) -> None:
    upload_id = client.post("/v1/uploads", params={"name": "shop", "label": "left"}).json()["id"]
    head, *rows = SHOP.splitlines()
    for number, part in enumerate((rows[:25], rows[25:]), start=1):
        body = "\n".join([head, *part, ""])
        answer = client.put(f"/v1/uploads/{upload_id}/parts/{number}", content=body, headers=CSV)
        assert answer.status_code == 201
    first = client.post(f"/v1/uploads/{upload_id}/close", json={"parts": 2}).json()["id"]
    service.work()
    refused(client.post(f"/v1/datasets/{first}/read/validate", json={}), 422, "invalid", "2 parts")
    made = read_again(client, first, group="customer", positive="False").json()
    assert client.delete(f"/v1/datasets/{first}").status_code == 204
    service.work()
    shown = client.get(f"/v1/datasets/{made['id']}").json()
    assert (shown["status"], shown["rows"], shown["group"]) == ("ready", 60, "customer")
    assert (shown["positive"], shown["positives"]) == ("false", 48)
    whole = upload(service, client, SHOP, label="left", positive="False", group="customer")
    assert shown["columns"] == whole["columns"]


def test_versions(service: Service, client: httpx.Client) -> None:
    """A table that replaced another is one of its own; rows that were appended are none. What was read again is the
    newest version.
    """
    first = service.upload(client)
    address = f"/v1/datasets/{first}/versions"
    replaced = client.post(f"{address}?mode=replace", content=table(seed=1), headers=CSV).json()
    service.work()
    made = reread(service, client, replaced["id"], positive="no")
    assert (made["rows"], made["series_id"], made["positive"]) == (120, first, "no")
    rows: dict[str, Any] = {"content": table(seed=2), "headers": CSV}
    stale = client.post(f"/v1/datasets/{replaced['id']}/versions", **rows)
    refused(stale, 409, "not_the_newest_version", made["id"])
    more = client.post(f"/v1/datasets/{made['id']}/versions", **rows).json()
    refused(read_again(client, more["id"]), 409, "appended_version", made["id"])


@long_form
def test_a_typed_file_and_items(service: Service, client: httpx.Client) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": list(range(40)), "y": ["no", "yes"] * 20}), sink)
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    first = client.post("/v1/datasets", content=sink.getvalue(), headers=headers).json()["id"]
    service.work()
    assert reread(service, client, first, positive="no")["positives"] == 20
    refused(read_again(client, first, decimal="comma"), 422, "invalid", "text/csv")
    items = upload(service, client, "film,length\na,1\nb,2\nc,4\n", kind="preferences", item="film")
    pairs = "better,worse\na,b\n"
    client.put(f"/v1/datasets/{items['id']}/pairs", content=pairs, headers=CSV)
    service.work()
    made = reread(service, client, items["id"], name="others")
    assert (made["status"], made["item"], made["pairs"]) == ("ready", "film", None)


def test_once_under_one_key(service: Service, client: httpx.Client) -> None:
    first = service.upload(client)
    address, key = f"/v1/datasets/{first}/read", {"Idempotency-Key": "once"}
    made = client.post(address, json={"positive": "no"}, headers=key)
    again = client.post(address, json={"positive": "no"}, headers=key)
    assert (again.status_code, again.json()) == (202, made.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    refused(client.post(address, json={}, headers=key), 422, "idempotency_key_reused")
    assert len(client.get("/v1/datasets").json()["data"]) == 2


def test_who_waits_gets_the_dataset_that_was_read(service: Service, client: httpx.Client) -> None:
    first = service.upload(client)
    with service.at_work():
        answer = client.post(
            f"/v1/datasets/{first}/read", json={"positive": "no"}, headers={"Prefer": "wait=60"}
        )
    assert (answer.status_code, answer.json()["status"]) == (201, "ready")


def test_checking_keeps_nothing(service: Service, client: httpx.Client) -> None:
    first = upload(service, client, SHOP)["id"]
    counts, files = everything(service)
    address = f"/v1/datasets/{first}/read/validate"
    assert client.post(address, json={"label": "branch"}).json()["positives"] == 30
    refused(client.post(address, json={"label": "sort"}), 422, "invalid_table")
    # Only that rows were read is noted.
    assert everything(service) == (
        counts | {"audit_entries": counts["audit_entries"] + 1},
        files,
    )


def test_what_cannot_be_said(small: Service, dataset_id: str, sentences: Sentences) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"mode": "append"}, "/mode"),
        ({"kind": "sorted"}, "/kind"),
        ({"delimiter": "dot"}, "/delimiter"),
        ({"label": ""}, "/label"),
        ({"label": "a\0"}, "/label"),
        *(({field: "a\ud800"}, f"/{field}") for field in ("name", "positive", "drop", "kind")),
        ({"group": "left", "label": "left"}, "/label"),
        ({"group": "age", "query": "income"}, "/group"),
        ({"labels": "a,b"}, "/labels"),
        ({"drop": ["age"]}, "/drop"),
        ({"positive": 1}, "/positive"),
        ({"strict": "yes"}, "/strict"),
        ({"drop": "a,a"}, "/drop"),
    ]
    for body, pointer in cases:
        client = small.client(small.key())
        problem = refused(read_again(client, dataset_id, **body), 422, "invalid")
        sentences(problem["errors"][0])
        assert problem["errors"][0]["pointer"] == pointer


def test_what_is_no_request(small: Service, dataset_id: str) -> None:
    client = small.client(small.key())
    for other in ("ds_x", NOWHERE):
        refused(read_again(client, other), 404, "not_found")
    for body in (b"", b"[]", b"{", b'"x"'):
        answer = client.post(
            f"/v1/datasets/{dataset_id}/read",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code in (400, 422), answer.text


def test_what_is_told_of_a_table_needs_the_scope_read(service: Service) -> None:
    client = service.client(service.key(scopes=["read", "train"]))
    first = upload(service, client, SHOP)
    train_only = service.client(service.key(scopes=["train"]))
    before = everything(service)
    for dataset_id in (first["id"], NOWHERE):
        refused(read_again(train_only, dataset_id, label="sort"), 403, "forbidden", "'read'")
    address = f"/v1/datasets/{first['id']}/read"
    answer = train_only.post(f"{address}/validate", json={"label": "sort"})
    refused(answer, 403, "forbidden", "'read'")
    assert everything(service) == before
    assert reread(service, client, first["id"], group="customer")["status"] == "ready"


def test_the_client(service: Service) -> None:
    with Client(service.url, service.key()) as client, service.at_work():
        first = client.upload(SHOP.encode(), label="left", drop=["branch"], media_type="text/csv")
        made = first.read_again(group="customer", categorical=["age", "income"], reset=["drop"])
        assert (made.data.status, made.data.group, made.data.drop) == ("ready", "customer", None)
        assert made.data.categorical == ["age", "income"]


def test_a_label_of_many_values_from_its_refusal_to_a_version(service_on_both: Service) -> None:
    """The refusal counts the values; some of them are named; and rows that are appended later know them."""
    service = service_on_both
    client = service.client(service.key())
    invalid = upload(service, client, SHOP, label="sort", drop="left")
    values = next(each["values"] for each in invalid["errors"] if each["values"])
    assert values == [{"value": v, "count": 20, "positive": False} for v in "xyz"]
    assert (invalid["label_values"], invalid["positive_guessed"]) == (None, None)
    made = reread(service, client, invalid["id"], positive="x,z")
    assert (made["status"], made["positives"], made["negative"]) == ("ready", 40, "y")
    assert [each["positive"] for each in made["label_values"]] == [True, False, True]
    assert made["positive_guessed"] is False
    more = client.post(
        f"/v1/datasets/{made['id']}/versions",
        content="age,income,branch,customer,sort\n1,2,a,c1,z\n1,2,a,c1,x\n1,2,a,c1,y\n",
        headers=CSV,
    ).json()
    service.work()
    second = client.get(f"/v1/datasets/{more['id']}").json()
    assert (second["status"], second["positives"], second["negatives"]) == ("ready", 42, 21)
    again = client.post(
        f"/v1/datasets/{second['id']}/versions",
        content="age,income,branch,customer,sort\n1,2,a,c1,z\n1,2,a,c1,w\n",
        headers=CSV,
    ).json()
    service.work()
    refusal = client.get(f"/v1/datasets/{again['id']}").json()["errors"]
    assert [each["line"] for each in refusal] == [3]  # z is known, w is not


def test_a_guess_is_told(service: Service, client: httpx.Client) -> None:
    rows = "".join(f"{n},{'ja' if n % 6 == 0 else 'nein'}\n" for n in range(60))
    made = upload(service, client, "a,left\n" + rows)
    assert (made["positive"], made["positive_guessed"]) == ("nein", True)
    assert made["label_values"] == [
        {"value": "nein", "count": 50, "positive": True},
        {"value": "ja", "count": 10, "positive": False},
    ]
