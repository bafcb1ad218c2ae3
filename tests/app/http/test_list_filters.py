"""Filters of lists: by time, by tag, by a part of a name; with pages, and on both databases."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from sqlalchemy import select, text, tuple_

from app.platform.database import Database
from app.platform.ids import new_id
from app.platform.sql import RowFilter
from app.platform.tables import (
    BatchScore,
    Comparison,
    ComparisonModel,
    Evaluation,
    Job,
    Measurement,
    Model,
    ModelAlias,
)
from tests.app.live_service import OWNER, STRANGER, Service
from tests.app.queue_steps import add_dataset, add_model, change, submit
from tests.long_form import LONG_FORM, long_form

NAMES = ("churn", "Churn_2", "cost%", "Ärger", "back\\slash")
TAGS: tuple[dict[str, str], ...] = (
    {"team": "risk", "stage": "prod"},
    {"team": "risk: old"},
    {'Tëam\'s "own"': "ja:nein"},
    {"stage": ""},
    {"cost:centre": "7:a", ":": "b"},
)
"""Of the entry with the same number."""
T0 = 1_700_000_000
"""2023-11-14T22:13:20Z, when the first entry was created. Each of the others is half a second younger."""


def fill(db: Database) -> None:
    """Write five entries of each list, and those of somebody else."""
    for owner in (OWNER, STRANGER):
        for number, (name, tags) in enumerate(zip(NAMES, TAGS, strict=True)):
            at = T0 + number / 2
            add_dataset(db, name=name, owner=owner, created_at=at)
            job = submit(db, owner=owner, name=name, tags=tags)
            change(db, job.id, created_at=at, spec={"seen": "new"})
            compared = submit(db, owner="nobody")  # a job that is in no list
            change(db, compared.id, spec={"seen": {}})
            model = add_model(db, owner=owner, name=name, tags=tags, job_id=job.id)
            with db.write() as session:
                session.get_one(Model, model.id).created_at = at
                common: dict[str, Any] = {"owner": owner, "job_id": job.id, "created_at": at}
                dataset = {"dataset_id": new_id("ds"), "dataset_name": "spring"}
                of_model = {"model_id": model.id, "model_name": name, "model_version": 1}
                evaluated: dict[str, Any] = {"windows": [], "level": 0.95, "warnings": []}
                session.add(
                    Evaluation(
                        id=new_id("evl"),
                        kind="bipartite",
                        **common,
                        **dataset,
                        **of_model,
                        **evaluated,
                    )
                )
                of_job = common | {"job_id": compared.id}
                comparison = Comparison(id=new_id("cmp"), **of_job, **dataset, **evaluated)
                session.add(comparison)
                session.flush()
                session.add(
                    ComparisonModel(
                        comparison_id=comparison.id,
                        position=0,
                        model_id=model.id,
                        name=name,
                        version=1,
                    )
                )
                session.add(
                    BatchScore(
                        id=new_id("bat"),
                        **common,
                        **of_model,
                        read_options={"keep": []},
                        summary={"flagged": number or None},
                    )
                )


LISTS = ("datasets", "jobs", "models", "evaluations", "comparisons", "batch-scores")


def found(client: httpx.Client, kind: str, query: Mapping[str, Any], limit: int = 3) -> list[int]:
    """Return the numbers of the entries that a list has, page by page; the newest is the first."""
    numbers: list[int] = []
    after: dict[str, str] = {}
    while True:
        answer = client.get(f"/v1/{kind}", params={"limit": limit, **query, **after})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        for entry in page["data"]:
            compared = entry["models"][0]["name"] if kind == "comparisons" else None
            numbers.append(NAMES.index(compared or entry.get("name") or entry["model_name"]))
        if not page["has_more"]:
            return numbers
        after = {"after": page["next"]}


def test_lists_are_filtered(service_on_both: Service) -> None:
    service = service_on_both
    fill(service.context.db)
    client = service.client(service.key())
    for kind in LISTS:
        for query, expected in (
            ({}, [4, 3, 2, 1, 0]),
            (
                {
                    "created_after": "2023-11-14T22:13:20.500Z",
                    "created_before": "2023-11-15T00:13:22+02:00",
                },
                [3, 2, 1],
            ),
            ({"search": "CHURN"}, [1, 0]),
            ({"search": "n_2"}, [1]),
            ({"search": "%"}, [2]),
            ({"search": "k\\S"}, [4]),
            ({"search": "Ärg"}, [3]),
            ({"search": "ärg"}, []),  # a letter beyond A to Z is as it is written
            ({"created_after": "2023-11-14T22:13:21Z"}, [4, 3, 2]),
            ({"created_before": "2023-11-14T22:13:21Z"}, [1, 0]),
            ({"created_after": "2023-11-14T22:13:21Z", "search": "churn"}, []),
        )[: None if kind == "jobs" or LONG_FORM else 3]:
            assert found(client, kind, query) == expected, (kind, query)
    for kind in ("evaluations", "comparisons"):
        assert found(client, kind, {"search": "Spring"}) == [4, 3, 2, 1, 0]
    for kind in ("jobs", "models"):
        for tags, expected in (
            (["team:risk"], [0]),
            (["team"], [1, 0]),
            (["team:risk: old"], [1]),
            (["stage:"], [3]),
            (["stage:prod", "team:risk"], [0]),
            (["stage", "team:risk: old"], []),
            (['Tëam\'s "own":ja:nein'], [2]),
            (["TEAM"], []),
            (["$.team"], []),
            (["cost:centre"], [4]),  # a name with a colon, and any value
            (["cost:centre:7:a"], [4]),
            (["cost:centre:7"], []),
            (["cost"], []),
            ([":"], [4]),
            (["::b", "cost:centre"], [4]),
        ):
            assert found(client, kind, {"tag": tags}) == expected, (kind, tags)
        assert found(client, kind, {"tag": "team", "search": "_"}) == [1]


def test_lists_are_sorted(service_on_both: Service) -> None:
    """By each order, both ways, page by page; entries that are equal stand by their ids, and none is lost."""
    service, limit = service_on_both, {"limit": 200}
    fill(service.context.db)
    client = service.client(service.key())
    with service.context.db.write() as session:
        models = session.scalars(select(Model).where(Model.owner == OWNER)).all()
        for model in models:
            number = NAMES.index(model.name)
            if number != 3:
                area = {"value": (0.9, 0.5, 0.7, 0.0, 0.7)[number], "low": 0.0, "high": 1.0}
                session.add(
                    Measurement(
                        id=Measurement.id_of(model.id, "validation"),
                        model_id=model.id,
                        part="validation",
                        metrics={"auc": area},
                    )
                )
    batches = client.get("/v1/batch-scores").json()["data"]
    assert [each["flagged"] for each in batches] == [4, 3, 2, 1, None]
    for kind in LISTS:
        name = "spring" if kind == "comparisons" else None
        for sort in ("created_at", "name", "auc"):
            if sort == "auc" and kind != "models":
                continue
            up = found(client, kind, {"sort": sort})
            down = found(client, kind, {"sort": f"-{sort}"})
            assert up == found(client, kind, {"sort": sort, **limit}), (kind, sort)
            assert sorted(up) == [0, 1, 2, 3, 4]
            if sort == "created_at":
                assert (up, down) == ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0])
            elif sort == "auc":
                assert (up[0], down[0], up[3:], down[3:]) == (1, 0, [0, 3], [1, 3])
                assert {*up[1:3]} == {2, 4}
                assert up[1:3] == down[2:0:-1]
            else:
                assert down == up[::-1], (kind, sort)
                if name is None and kind != "models":  # by letters, whatever the locale is
                    assert up == [4, 0, 1, 2, 3]
        # With a filter, and with a cursor of another order or of none.
        some = {"sort": "name", "search": "churn"}
        assert found(client, kind, some, 1) == found(client, kind, some, 9)
        page = client.get(f"/v1/{kind}", params={"limit": 2, "sort": "name"}).json()
        for after, sort in ((page["next"], "-name"), (page["next"], None), ("x", "name")):
            query = {"after": after, "sort": sort} if sort else {"after": after}
            answer = client.get(f"/v1/{kind}", params=query)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_cursor")
        texts = (["name", 1, "a"], ["name", "a\0", "a"], ["name", "\ud800", "a"], ["name"])
        for bad in (*texts, ["name", "a", 2**31, "a"]):
            after = base64.urlsafe_b64encode(json.dumps(bad).encode()).decode().rstrip("=")
            answer = client.get(f"/v1/{kind}", params={"after": after, "sort": "name"})
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_cursor"), bad
        # A time beyond 31 bits of seconds is a time.
        late = base64.urlsafe_b64encode(b'["created_at",3e9,"a"]').decode().rstrip("=")
        answer = client.get(f"/v1/{kind}", params={"after": late, "sort": "created_at"})
        assert (answer.status_code, answer.json()["data"]) == (200, [])


@long_form
def test_failures_are_listed_until_something_settles_them(service_on_both: Service) -> None:
    db = service_on_both.context.db
    client = service_on_both.client(service_on_both.key())
    clock = iter(range(T0, T0 + 100))

    def ended(kind: str, name: str, state: str = "failed", **values: Any) -> str:
        job = submit(db, owner=values.pop("owner", OWNER), kind=kind, name=name)
        change(db, job.id, created_at=next(clock), state=state, **values)
        return job.id

    def listed(**query: Any) -> list[str]:
        pages: dict[str, Any] = {"kind": "all", "unresolved": True, "limit": 2} | query
        answer = client.get("/v1/jobs", params=pages).json()
        rest = listed(**query | {"after": answer["next"]}) if answer["has_more"] else []
        return [*(job["id"] for job in answer["data"]), *rest]

    left = [
        ended("train", "alone"),
        ended("calibrate", "alone", "timed_out"),
        ended("importance", "other"),
    ]
    ended("train", "stopped", "cancelled")
    ended("train", "alone", owner=STRANGER)
    ended(
        "train", "alone", "succeeded", owner=STRANGER
    )  # another's success settles nothing of ours
    ended("calibrate", "other", "succeeded")  # nor does that of another kind
    ended("train", "mended")
    ended("train", "mended", "succeeded")
    left.append(ended("train", "mended"))  # it broke again
    # Of a chain of retries the last speaks for all, and is gone once one of them has succeeded.
    first = ended("train", "chain")
    left.append(ended("train", "chain", retry_of=first))
    ended("train", "renamed", "succeeded", retry_of=ended("train", "chained"))
    # An output that was deleted takes its failure along, and a table of several files is a table.
    ended("ingest", "deleted")
    for name, later in (("table", None), ("again", "ingest"), ("files", "ingest_files")):
        job = ended("ingest", name)
        add_dataset(db, job, owner=OWNER, name=name, status="invalid")
        if later is None:
            left.append(job)
        else:
            ended(later, name, "succeeded")
    assert listed() == left[::-1]
    assert listed(state="timed_out") == [left[1]]
    assert listed(kind="train") == [left[4], left[3], left[0]]
    assert listed(search="TABLE") == [left[5]]
    assert len(listed(unresolved=False)) == 18
    for query in ("unresolved=perhaps", "kind=al", "kind=all,train"):
        answer = client.get(f"/v1/jobs?{query}")
        assert (answer.status_code, query.split("=")[0] in answer.text) == (422, True)


def test_models_are_listed_whose_alias_stayed_behind(service_on_both: Service) -> None:
    db = service_on_both.context.db
    client = service_on_both.client(service_on_both.key())
    ours = {
        (name, version): add_model(db, owner=OWNER, name=name).id
        for name, version in (("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1), ("c", 2))
    }
    other = add_model(db, owner=STRANGER, name="b").id  # no newer version of ours
    add_model(db, owner=STRANGER, name="b")
    pointing = {("a", "old"): 2, ("a", "new"): 3, ("b", "only"): 1}
    with db.write() as session:
        for (name, alias), version in pointing.items():
            session.add(alias_row(OWNER, name, alias, ours[name, version]))
        session.add(alias_row(STRANGER, "b", "x", other))

    def listed(**query: Any) -> list[str]:
        return [each["id"] for each in client.get("/v1/models", params=query).json()["data"]]

    pointed_at = [("a", 2), ("a", 3), ("b", 1)]
    assert sorted(listed(aliased=True)) == sorted(ours[each] for each in pointed_at)
    assert client.get("/v1/models?aliased=perhaps").status_code == 422
    assert listed(search="ONL") == [ours["b", 1]]
    assert listed(search="x") == []  # the alias of another owner
    assert listed(outdated=True) == [ours["a", 2]]
    assert listed(outdated=True, name="b") == []
    assert len(listed()) == len(ours)
    assert client.get("/v1/models?outdated=perhaps").status_code == 422


def alias_row(owner: str, name: str, alias: str, model_id: str) -> ModelAlias:
    """Return the row of an alias."""
    return ModelAlias(
        owner=owner, name=name, alias=alias, revision=1, model_id=model_id, updated_at=T0
    )


@long_form
def test_a_shown_time_begins_or_ends_a_period_exactly(service_on_both: Service) -> None:
    """A row passes `created_after` its own time and not `created_before` it, whatever the clock's last digits are."""
    db = service_on_both.context.db
    milliseconds = [T0 + number / 1000 for number in (1, 7, 123, 999)]
    moments = [nudged for at in milliseconds for nudged in nudge(at)]
    for at in moments:
        add_dataset(db, owner=OWNER, created_at=at)
    client = service_on_both.client(service_on_both.key())
    shown = [row["created_at"] for row in client.get("/v1/datasets?limit=200").json()["data"]]
    assert len(shown) == len(moments)
    for at in {*shown}:
        for name, passes in (
            ("created_after", [other for other in shown if other >= at]),
            ("created_before", [other for other in shown if other < at]),
        ):
            answer = client.get("/v1/datasets", params={"limit": 200, name: at}).json()
            assert [row["created_at"] for row in answer["data"]] == passes, (name, at)
    finer = {"created_after": "2023-11-14T22:13:20.0071Z"}  # later than those that show .007
    answer = client.get("/v1/datasets", params={"limit": 200, **finer}).json()
    assert [row["created_at"] for row in answer["data"]] == [
        other for other in shown if other >= "2023-11-14T22:13:20.008Z"
    ]


def nudge(at: float) -> Iterator[float]:
    """Yield doubles near a time: beside it, and about where half a microsecond rounds to it."""
    for offset in (0.0, -5e-7, -1e-6, 3e-5, -3e-5, 9.99e-4):
        near = at + offset
        yield from (math.nextafter(near, 0.0), near, math.nextafter(near, math.inf))


@pytest.mark.parametrize("kind", LISTS)
def test_what_is_no_filter_is_refused(service: Service, kind: str) -> None:
    client = service.client(service.key())
    wrong: list[tuple[str, Any]] = [
        ("search", ""),
        ("search", "x" * 256),
        ("created_after", "yesterday"),
        ("created_after", "2023-11-14T22:13:20"),  # in which time zone?
        ("created_before", "0000-01-01T00:00:00Z"),
        ("created_before", "9" * 400),
        ("created_before", "0.5"),  # no seconds since 1970
        ("created_after", "1700000000"),
        ("created_after", "2023-11-14"),
        ("sort", "tags"),
        ("sort", "--name"),
    ]
    if kind != "models":
        wrong.append(("sort", "auc"))
    if kind in ("jobs", "models"):
        wrong += [
            ("tag", ""),
            ("tag", "t" * 512),
            ("tag", ["t"] * 11),
        ]
    else:
        wrong += [("tag", "team:risk")]
    for name, value in wrong:
        answer = client.get(f"/v1/{kind}", params={name: value})
        assert answer.status_code == 422, (name, value, answer.text)
        parameters = {error["parameter"].partition("/")[0] for error in answer.json()["errors"]}
        assert parameters == {name}


def test_a_filter_reads_the_newest_first_by_the_index(service_on_both: Service) -> None:
    """A page ends when it is full: the rows come from the index in their order, and are never all sorted."""
    only = RowFilter("churn", T0, T0 + 1, ("team:risk",))
    with service_on_both.context.db.read() as session:
        on_sqlite = session.get_bind().dialect.name == "sqlite"
        if not on_sqlite:
            session.execute(text("SET LOCAL enable_seqscan = off"))  # the table is nearly empty
            session.execute(text("SET LOCAL enable_bitmapscan = off"))
            session.execute(text("SET LOCAL enable_sort = off"))  # whether an index has the order
        statement = only.apply(select(Job.id).where(Job.owner == OWNER), Job)
        statement = statement.order_by(Job.created_at.desc(), Job.id.desc()).limit(2)
        compiled = statement.compile(session.get_bind(), compile_kwargs={"literal_binds": True})
        explain = "EXPLAIN QUERY PLAN " if on_sqlite else "EXPLAIN "
        rows = session.connection().exec_driver_sql(explain + str(compiled))
        plan = "\n".join(str(row) for row in rows)
        models = select(Model.id).where(Model.owner == OWNER)
        models = models.where(tuple_(Model.name, Model.version, Model.id) > ("a", 1, "b"))
        by_name = models.order_by(Model.name, Model.version, Model.id).limit(2)
        compiled = by_name.compile(session.get_bind(), compile_kwargs={"literal_binds": True})
        rows = session.connection().exec_driver_sql(explain + str(compiled))
        named = "\n".join(str(row) for row in rows)
    assert "uq_models_owner_name_version" in named or "sqlite_autoindex_models" in named
    assert "ix_jobs_owner_created_at_id" in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan
