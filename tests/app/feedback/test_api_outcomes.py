"""POST /v1/outcomes: formats, errors of each row, counts, and what is stored."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import pyarrow as pa
import pytest
from sqlalchemy import func, select

from app.feedback import known, outcome_service
from app.feedback.known import KnownRows
from app.feedback.outcome_repository import Segment
from app.feedback.outcomes import INLINE_ROWS, MAX_ROWS, Outcomes
from app.feedback.segments import hash_ids
from app.platform import catalogue
from app.platform.sql import read_clock
from app.platform.tables import AliasFeedback, OutcomeSegment
from tests.app.feedback.recording import add_decisions
from tests.app.live_service import OWNER, STRANGER, Service
from tests.sentences import Sentences

CSV, NDJSON = "text/csv", "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"
PARQUET = "application/vnd.apache.parquet"
TABLE = {"id": ["c1", "17"], "label": [True, False], "event_at": ["2026-01-02", "2026-01-03"]}


def record(
    service: Service,
    ids: list[str],
    owner: str = OWNER,
    at: float = 1.7e9,
    callers: list[str] | None = None,
) -> list[str]:
    """Store decisions about these entities; returns the ids of the decisions."""
    named = zip(ids, callers or ["key_1"] * len(ids), strict=True)
    rows = [{"id": id_, "caller": of, "at": at + i} for i, (id_, of) in enumerate(named)]
    made = add_decisions(service, rows, owner=owner)
    service.app.state.known_rows = KnownRows()
    return made


def stored(service: Service, owner: str = OWNER) -> list[dict[str, Any]]:
    """Return the outcomes of an owner."""
    table = outcome_service.read_outcomes(service.context.db.reading, service.blobs, owner)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def n_segments(service: Service) -> int:
    with service.context.db.read() as session:
        return session.scalar(select(func.count()).select_from(OutcomeSegment)) or 0


def send(client: httpx.Client, *rows: Mapping[str, Any], **headers: str) -> httpx.Response:
    return client.post("/v1/outcomes", json={"rows": list(rows)}, headers=headers)


def test_counts_say_what_was_new(service: Service) -> None:
    client = service.client(service.key(scopes=["outcomes"]))
    (decision_id, _) = record(service, ["c1", "c2"])
    first = send(
        client,
        {"id": "c1", "label": True, "event_at": "2026-01-02T10:00:00Z"},
        {"decision_id": decision_id, "label": 0, "source": "review", "weight": 2, "amount": -5.5},
        {"id": "c9", "label": True, "event_at": "2026-01-02T10:00:00Z"},
    )
    assert first.status_code == 200
    assert first.json() == {
        "rows": 3,
        "matched": 2,
        "unmatched": 1,
        "corrected": 0,
        "duplicates": 0,
        "replayed": 0,
    }
    second = send(
        client,
        {"id": "c1", "label": True, "event_at": "2026-01-02T10:00:00Z"},
        {"decision_id": decision_id, "label": None},
    )
    assert second.json() == {
        "rows": 2,
        "matched": 2,
        "unmatched": 0,
        "corrected": 1,
        "duplicates": 1,
        "replayed": 0,
    }
    rows = stored(service)
    assert [row["label"] for row in rows] == ["true", "0", "true", None]
    assert (rows[1]["source"], rows[1]["weight"], rows[1]["amount"]) == ("review", 2.0, -5.5)
    assert rows[0]["id_hash"] == hash_ids(OWNER, ["c1"])[0]


def test_an_outcome_waits_for_its_decision(service: Service) -> None:
    client = service.client(service.key())
    row = {"id": "c1", "label": True, "event_at": "2026-01-02T10:00:00Z"}
    assert send(client, row).json()["matched"] == 0
    record(service, ["c1"])
    assert send(client, row | {"label": False}).json()["matched"] == 1


def new_counts(answer: httpx.Response) -> tuple[int, int, int]:
    """Return the numbers of corrections, duplicates and replays."""
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return found["corrected"], found["duplicates"], found["replayed"]


def test_a_correction_through_another_process_is_seen(service: Service) -> None:
    client, state = service.client(service.key()), service.app.state
    row = {"id": "c1", "event_at": "2026-01-02T10:00:00Z"}
    send(client, row | {"label": True})
    here, state.known_rows = state.known_rows, KnownRows()
    assert new_counts(send(client, row | {"label": False})) == (1, 0, 0)
    state.known_rows = here
    assert new_counts(send(client, row | {"label": True})) == (0, 0, 1)
    assert [each["label"] for each in stored(service)] == ["true", "false"]


@pytest.mark.parametrize("named", ["id", "decision_id"])
@pytest.mark.parametrize("second", [False, None])
def test_a_replay_does_not_undo_a_correction(
    service: Service, named: str, second: bool | None
) -> None:
    """Only a row with `known_at` changes an outcome back."""
    client = service.client(service.key())
    (decision_id, _) = record(service, ["c1", "c2"])
    row = {named: decision_id if named == "decision_id" else "c1", "event_at": "2026-01-02"}
    first = row | {"label": True}
    assert new_counts(send(client, first)) == (0, 0, 0)
    assert new_counts(send(client, row | {"label": second})) == (1, 0, 0)
    for _ in range(2):
        assert new_counts(send(client, first)) == (0, 0, 1)
    service.app.state.known_rows = KnownRows()
    assert new_counts(send(client, first, first | {"weight": 2}, first)) == (1, 0, 2)
    with service.context.db.read() as session:
        now = datetime.fromtimestamp(read_clock(session), UTC).isoformat()
    assert new_counts(send(client, first | {"known_at": now})) == (1, 0, 0)
    assert [each["label"] for each in stored(service)] == [
        "true",
        None if second is None else "false",
        "true",
        "true",
    ]


@pytest.mark.parametrize(
    ("ahead", "known", "status"),
    [(0.5, None, 200), (290, None, 200), (310, None, 422), (0.5, 0.5, 200), (1, 0.5, 422)],
)
def test_an_event_may_be_a_little_ahead_of_the_clock(
    service: Service, ahead: float, known: float | None, status: int
) -> None:
    client = service.client(service.key())
    with service.context.db.read() as session:
        now = read_clock(session)

    def text(seconds: float) -> str:
        return datetime.fromtimestamp(now + seconds, UTC).isoformat()

    row = {"id": "c1", "label": True, "event_at": text(ahead)}
    if known is not None:
        row["known_at"] = text(known)
    answer = send(client, row)
    assert answer.status_code == status
    if status == 422:
        assert [each["pointer"] for each in answer.json()["errors"]] == ["/rows/0/event_at"]
    else:
        (found,) = stored(service)
        assert found["has_known_at"] is (known is not None)
        assert found["event_at"] == pytest.approx(now + ahead, abs=1e-5)


def test_another_owner_s_decisions_and_outcomes_do_not_count(service: Service) -> None:
    record(service, ["c1"])
    row = {"id": "c1", "label": True, "event_at": "2026-01-02T10:00:00Z"}
    assert send(service.client(service.key()), row).json()["matched"] == 1
    theirs = service.client(service.key(owner=STRANGER))
    answer = send(theirs, row).json()
    assert (answer["matched"], answer["duplicates"]) == (0, 0)
    assert len(stored(service)) == len(stored(service, STRANGER)) == 1


@pytest.mark.parametrize(("size", "reads"), [(known.MAX_BYTES, 0), (1, 1)])
def test_small_owners_do_not_drop_the_index_of_another(
    service: Service, monkeypatch: pytest.MonkeyPatch, size: int, reads: int
) -> None:
    row = {"id": "c1", "label": True, "event_at": "2026-01-02T10:00:00Z"}
    send(service.client(service.key()), row)
    read: list[str] = []

    def read_outcomes(segments: Sequence[Segment], _: object) -> Iterator[Outcomes]:
        read.extend(each.id for each in segments)
        return iter(())

    monkeypatch.setattr(known, "MAX_BYTES", size)
    reader = known.Reader(service.context.db.reading, lambda _: iter(()), read_outcomes)
    outcomes = Outcomes([None], ["c1"], ["1"], [1.0], [2.0], [None], [None], [None], [True])
    rows = KnownRows()
    rows.compare(OWNER, outcomes, reader)
    assert len(read) == 1
    for number in range(9):
        rows.compare(f"other{number}", outcomes, reader)
    rows.compare(OWNER, outcomes, reader)
    assert len(read) == 1 + reads


def as_arrow(file: bool = False) -> bytes:
    table, sink = pa.table(TABLE), io.BytesIO()
    make = pa.ipc.new_file if file else pa.ipc.new_stream
    with make(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


LINES = "".join(
    json.dumps(dict(zip(TABLE, row, strict=True))) + "\n"
    for row in zip(*TABLE.values(), strict=True)
).encode()
ROWS = b"id,label,event_at\nc1,true,2026-01-02\n17,false,2026-01-03\n"
BODIES: dict[str, tuple[str, str | bytes, dict[str, str]]] = {
    "csv": (CSV, ROWS, {}),
    "csv of Germany": (
        CSV,
        b"id;label;event_at\nc1;true;02.01.2026\n17;false;03.01.2026\n",
        {},
    ),
    "gzip": (CSV, gzip.compress(ROWS), {"Content-Encoding": "gzip"}),
    "ndjson": (NDJSON, LINES, {}),
    "arrow": (ARROW, as_arrow(), {}),
    "arrow file": (ARROW_FILE, as_arrow(file=True), {}),
    "json": (
        "application/json",
        json.dumps({"columns": list(TABLE), "data": list(zip(*TABLE.values(), strict=True))}),
        {},
    ),
    "json in gzip": (
        "application/json",
        gzip.compress(
            json.dumps(
                {
                    "rows": [
                        {"id": "c1", "label": 1, "event_at": "2026-01-02"},
                        {"id": 17, "label": 0.0, "event_at": "2026-01-03"},
                    ]
                }
            ).encode()
        ),
        {"Content-Encoding": "gzip"},
    ),
}


@pytest.mark.parametrize("form", BODIES)
def test_every_format_is_read_alike(service: Service, form: str) -> None:
    kind, body, headers = BODIES[form]
    client = service.client(service.key())
    answer = client.post("/v1/outcomes", content=body, headers={"Content-Type": kind, **headers})
    assert answer.status_code == 200, answer.text
    rows = stored(service)
    assert [(row["id"], row["label"] in ("true", "1"), row["event_at"]) for row in rows] == [
        ("c1", True, 1767312000.0),
        ("17", False, 1767398400.0),
    ]


def test_many_rows_are_a_file_and_few_are_none(service: Service) -> None:
    client = service.client(service.key())
    lines = [f"c{i},1,2026-01-02" for i in range(INLINE_ROWS + 1)]
    body = "\n".join(["id,label,event_at", *lines]).encode()
    for _ in range(2):
        answer = client.post("/v1/outcomes", content=body, headers={"Content-Type": CSV})
        assert answer.status_code == 200
    assert answer.json()["duplicates"] == INLINE_ROWS + 1
    with service.context.db.read() as session:
        (segment,) = session.scalars(select(OutcomeSegment)).all()
        assert segment.content is None
        assert segment.segment_key is not None
        assert segment.segment_bytes == catalogue.find(session, segment.segment_key).bytes
    send(client, {"id": "c", "label": 1, "event_at": "2026-01-02"})
    assert len(stored(service)) == INLINE_ROWS + 2
    assert len(list(service.blobs.list("outcomes"))) == 1


def test_a_repeated_request_stores_nothing(service: Service) -> None:
    client = service.client(service.key())
    row = {"id": "c1", "label": True, "event_at": "2026-01-02"}
    first = send(client, row, **{"Idempotency-Key": "k1"})
    again = send(client, row, **{"Idempotency-Key": "k1"})
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    other = send(client, row | {"label": False}, **{"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert n_segments(service) == 1


def test_a_check_stores_nothing(service: Service) -> None:
    client = service.client(service.key())
    good = {"rows": [{"id": "c1", "label": True, "event_at": "2026-01-02"}]}
    answer = client.post("/v1/outcomes/validate", json=good)
    assert (answer.status_code, answer.json()) == (200, {"valid": True})
    bad = client.post("/v1/outcomes/validate", json={"rows": [{"id": "c1", "label": 1}]})
    assert bad.status_code == 422
    assert n_segments(service) == 0


DEC = "dec_0198f0c2a4d37c1e8a4b5c6d7e8f9012"
BAD_ROWS: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"label": 1}, "/rows/1"),
    "empty id": ({"id": " ", "label": 1, "event_at": "2026-01-01"}, "/rows/1"),
    "long id": ({"id": "x" * 256, "label": 1, "event_at": "2026-01-01"}, "/rows/1/id"),
    "id with NUL": ({"id": "a\0b", "label": 1, "event_at": "2026-01-01"}, "/rows/1/id"),
    "list as id": ({"id": [1], "label": 1, "event_at": "2026-01-01"}, "/rows/1/id"),
    "no event": ({"id": "c1", "label": 1}, "/rows/1/event_at"),
    "number as time": ({"id": "c1", "label": 1, "event_at": 1.7e9}, "/rows/1/event_at"),
    "no such day": ({"id": "c1", "label": 1, "event_at": "2026-02-30"}, "/rows/1/event_at"),
    "in the future": (
        {"decision_id": DEC, "label": 1, "known_at": "2999-01-01"},
        "/rows/1/known_at",
    ),
    "event in the future": (
        {"decision_id": DEC, "label": 1, "event_at": "2999-01-01"},
        "/rows/1/event_at",
    ),
    "known before it happened": (
        {"id": "c1", "label": 1, "event_at": "2026-01-02", "known_at": "2026-01-01"},
        "/rows/1/event_at",
    ),
    "empty decision": ({"decision_id": "", "label": 1}, "/rows/1"),
    "long decision": ({"decision_id": "x" * 256, "label": 1}, "/rows/1/decision_id"),
    "decision with NUL": ({"decision_id": "a\0b", "label": 1}, "/rows/1/decision_id"),
    "list as decision": ({"decision_id": [7], "label": 1}, "/rows/1/decision_id"),
    "no label": ({"decision_id": DEC}, "/rows/1"),
    "unknown label": ({"decision_id": DEC, "label": "churnd"}, "/rows/1/label"),
    "object as label": ({"decision_id": DEC, "label": {}}, "/rows/1/label"),
    "weight of nothing": ({"decision_id": DEC, "label": 1, "weight": 0}, "/rows/1/weight"),
    "text as amount": ({"decision_id": DEC, "label": 1, "amount": "much"}, "/rows/1/amount"),
    "true as weight": ({"decision_id": DEC, "label": 1, "weight": True}, "/rows/1/weight"),
    "long source": ({"decision_id": DEC, "label": 1, "source": "s" * 65}, "/rows/1/source"),
    "unknown member": ({"decision_id": DEC, "label": 1, "lable": 1}, "/rows/1/lable"),
}


def test_a_bad_row_is_named_and_nothing_is_stored(service: Service, sentences: Sentences) -> None:
    for row, pointer in BAD_ROWS.values():
        client = service.client(service.key())
        answer = send(client, {"decision_id": DEC, "label": 1}, row)
        assert answer.status_code == 422, answer.text
        problem = answer.json()
        assert [error["pointer"] for error in problem["errors"]] == [pointer]
        sentences(problem["errors"][0])
        assert n_segments(service) == 0


def test_all_unknown_labels_are_named(service: Service) -> None:
    client = service.client(service.key())
    labels = ["churnd", 1, "staid"]
    answer = send(client, *({"decision_id": DEC, "label": each} for each in labels))
    assert answer.status_code == 422
    pointers = [each["pointer"] for each in answer.json()["errors"]]
    assert pointers == ["/rows/0/label", "/rows/2/label"]


JSON = "application/json"
REFUSED: list[tuple[str, bytes, int, str | None]] = [
    *(
        (JSON, body, 422, None)
        for body in (
            b"[]",
            b"{}",
            b"null",
            b'{"rows": 1}',
            b'{"rows": []}',
            b'{"rows": [1]}',
            b'{"rows": [], "id": "x"}',
            b'{"columns": ["id", "label"], "data": [["c1"]]}',
            b'{"columns": ["id", 1], "data": []}',
            b'{"columns": ["id", "id", "label"], "data": [["c1", "c1", 1]]}',
            b'{"columns": ["id"], "data": [["c1"]]}',
            b'{"columns": ["label"], "data": [[1]]}',
        )
    ),
    (JSON, b"{", 400, "malformed_json"),
    (JSON, b'{"rows":[' + b",".join([b"{}"] * (MAX_ROWS + 1)) + b"]}", 422, "too_many_rows"),
    (CSV, b"decision_id,label\n" + b",1\n" * (MAX_ROWS + 1), 422, "too_many_rows"),
    (CSV, b"id,lable\nc1,1\n", 422, "invalid_outcome"),
    *((kind, b"PAR1", 415, "unsupported_media_type") for kind in (PARQUET, "text/plain", "")),
]


def test_bodies_that_are_refused(service: Service) -> None:
    client = service.client(service.key())
    for kind, body, status, code in REFUSED:
        answer = client.post("/v1/outcomes", content=body, headers={"Content-Type": kind})
        assert answer.status_code == status, body[:80]
        assert code in (None, answer.json()["code"]), body[:80]
    assert n_segments(service) == 0


def test_errors_of_a_table_have_line_and_column(service: Service, sentences: Sentences) -> None:
    client = service.client(service.key())
    body = b"id,label,event_at\nc1,1,2026-01-02\nc2,maybe,2026-01-02\nc3,1,soon\n,1,2026-01-02\n"
    answer = client.post("/v1/outcomes", content=body, headers={"Content-Type": CSV})
    assert answer.status_code == 422
    found = [(each.get("line"), each.get("column")) for each in answer.json()["errors"]]
    assert found == [(4, "event_at"), (5, None)]
    sentences(answer.json())
    answer = client.post(
        "/v1/outcomes",
        content=body.replace(b"c3,1,soon\n,1,2026-01-02\n", b""),
        headers={"Content-Type": CSV},
    )
    assert [(e.get("line"), e.get("column")) for e in answer.json()["errors"]] == [(3, "label")]
    assert n_segments(service) == 0


def test_a_dialect_is_for_tables(service: Service) -> None:
    client = service.client(service.key())
    answer = client.post("/v1/outcomes?delimiter=comma", json={"rows": []})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"] == "delimiter"
    answer = client.post(
        "/v1/outcomes?decimal=comma",
        content=b"id;label;event_at;amount\nc1;1;2026-01-02;1,5\n",
        headers={"Content-Type": CSV},
    )
    assert answer.status_code == 200, answer.text
    assert stored(service)[0]["amount"] == 1.5


@pytest.mark.parametrize("content_type", [CSV, JSON])
def test_values_are_read_as_those_of_every_table(service: Service, content_type: str) -> None:
    rows = [
        ("2026-01-02T10:00:00.1234567Z", "$1,50", "2"),
        ("02.01.2026 10:00", "\u22121.5", ""),
        ("2026-01-02 10:00:00 UTC", "NA", "-"),
        ("2026-01-02", "1e2", "0.5"),
    ]
    names = ["event_at", "amount", "weight"]
    client = service.client(service.key())
    if content_type == CSV:
        lines = [";".join(["id", "label", *names]), *(";".join(["c1", "1", *row]) for row in rows)]
        answer = client.post(
            "/v1/outcomes?decimal=comma",
            content="\n".join(lines).replace("\u22121.5", "\u22121,5"),
            headers={"Content-Type": f"{CSV}; charset=utf-8"},
        )
    else:
        given = [dict(zip(names, row, strict=True)) for row in rows]
        given[0]["amount"] = "$1.50"
        answer = send(client, *({"id": "c1", "label": True, **row} for row in given))
    assert answer.status_code == 200, answer.text
    found = stored(service)
    morning = datetime(2026, 1, 2, 10, tzinfo=UTC).timestamp()
    times = [morning + 0.123456, morning, morning, morning - 36_000.0]
    assert [row["event_at"] for row in found] == pytest.approx(times, abs=1e-7)
    assert [row["amount"] for row in found] == [1.5, -1.5, None, 100.0]
    assert [row["weight"] for row in found] == [2.0, None, None, 0.5]


def test_a_model_s_own_labels_are_accepted(service: Service, client: httpx.Client) -> None:
    row = {"decision_id": DEC, "label": "yes"}
    assert send(client, row).status_code == 422
    service.train(client, service.upload(client))
    assert send(client, row).status_code == 422  # its decisions are not recorded
    settings: Any = {"keep": 1.0}
    with service.context.db.write() as session:
        session.add(
            AliasFeedback(
                owner=OWNER, name="churn", alias="live", revision=1, settings=settings, at=1.0
            )
        )
    assert send(client, row, {"decision_id": DEC, "label": "no"}).status_code == 200
    assert send(client, {"decision_id": DEC, "label": "Yes"}).status_code == 422


def test_only_a_key_for_outcomes_may_send_them(service: Service) -> None:
    for scope in ("read", "train", "score", "admin"):
        client = service.client(service.key(scopes=[scope]))
        row = {"id": "c1", "label": True, "event_at": "2026-01-02"}
        assert send(client, row).status_code == 403
        assert n_segments(service) == 0


def test_more_decisions_than_can_be_looked_up(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.feedback.known.MAX_DECISIONS", 1)
    monkeypatch.setattr("app.feedback.known.MAX_OUTCOMES", 0)
    record(service, ["c1", "c2"])
    client = service.client(service.key())
    row = {"id": "c1", "label": True, "event_at": "2026-01-02"}
    for _ in range(2):
        found = send(client, row).json()
    assert found == {
        "rows": 1,
        "matched": None,
        "unmatched": None,
        "corrected": None,
        "duplicates": None,
        "replayed": None,
    }
    assert len(stored(service)) == 2
