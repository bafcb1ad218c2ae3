"""An alias that moves while a request runs: the answer is that of one version, on both databases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, event, select, update

from app.platform.database import open_database
from app.platform.tables import ModelAlias
from tests.app.live_service import NAMES, Service, table
from tests.long_form import DATABASES, LONG_FORM, long_form

ROW = dict.fromkeys(NAMES, 0.25)
ALIAS = "churn@live"
ALIAS_PATH = "/v1/models/churn/aliases/live"
# The query of a route, where it needs one.
QUERIES: dict[str, dict[str, Any]] = {
    "/v1/models/{ref}": {"include": "metrics,roc,operating_points,operating_point", "fpr": 0.1},
    "/v1/models/{ref}/operating-point": {"fpr": 0.1},
    "/v1/models/{ref}/metric-estimates": {"metric": "auc"},
    "/v1/models/{ref}/partial-dependence": {"feature": NAMES[0]},
    "/v1/models/{ref}/variable-dependence": {"feature": NAMES[0]},
    "/v1/models/{ref}/score": ROW,
}
KINDS = {
    "/v1/models/{ref}/curves/{kind}": ("gains", "histogram"),
}
VARYING = re.compile(
    rb'"(?:request_id|id)": ?"(?:req|[0-9a-f])[^"]*"|\d{4}-\d\d-\d\d[ T]\d\d:\d\d[:\d.]*Z?'
)


class Moving:
    """Two versions of a model, and an alias that another connection moves from the first to the second."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.client = client = service.client(service.key())
        self.targets = []
        self._other = open_database(service.settings)
        for seed, rounds in enumerate((3, 12)):
            dataset_id = service.upload(client, table(seed=seed))
            algorithm = {"name": "rankboost", "n_rounds": rounds}
            model_id = service.train(client, dataset_id, algorithm=algorithm)["output"]["id"]
            old = client.get(ALIAS_PATH)
            answer = client.put(
                ALIAS_PATH,
                json={"model_id": model_id, "guarantee": {"flagged": 0.2}},
                headers={"If-Match": old.headers["ETag"]} if old.is_success else {},
            )
            assert answer.is_success, answer.text
            with self._other.read() as session:
                cutoff = session.scalars(select(ModelAlias.cutoff)).one()
            self.targets.append({"model_id": model_id, "cutoff": cutoff})

    def point_at(self, version: int) -> None:
        """Move the alias by a connection of its own."""
        with self._other.write() as session:
            session.execute(update(ModelAlias).values(**self.targets[version]))

    @contextmanager
    def moving_after(self, moment: int) -> Iterator[list[str]]:
        """Move the alias after the service has read it and run so many statements in all since; yield these. What has
        been read is recorded in the audit log afterwards: on SQLite nothing else can be written then.
        """
        seen: list[str] = []
        recording = False

        def count(_connection: Any, _cursor: Any, text: str, *_: Any) -> None:
            nonlocal recording
            recording = recording or text == "BEGIN IMMEDIATE"
            if recording:
                return
            if seen or ("FROM model" in text and "model_aliases" in text):
                seen.append(text)
            if len(seen) == moment:
                self.point_at(1)

        engine: Engine = self.service.context.db.engine
        event.listen(engine, "after_cursor_execute", count)
        try:
            yield seen
        finally:
            event.remove(engine, "after_cursor_execute", count)

    def check(
        self,
        ask: Callable[[], httpx.Response],
        read: Callable[[httpx.Response], Any] | None = None,
    ) -> bool:
        """Ask at each version, and with the alias moving at each moment of the request: what `read` finds in the answer
        is always that of one of the two. Return True if they differ.
        """
        read = read or _content
        self.point_at(1)
        after = read(ask())
        self.point_at(0)
        before = read(ask())
        moment = 1
        while True:
            self.point_at(0)
            with self.moving_after(moment) as seen:
                answer = ask()
            assert read(answer) in (before, after), (moment, seen[:moment])
            if len(seen) < moment:
                return bool(before != after)
            moment += 1 if LONG_FORM else 2

    def close(self) -> None:
        self._other.close()


@pytest.fixture
def moving(service_on_both: Service) -> Iterator[Moving]:
    found = Moving(service_on_both)
    yield found
    found.close()


def _content(answer: httpx.Response) -> Any:
    """Return what an answer says, without what differs between any two requests."""
    return answer.status_code, answer.headers.get("ETag"), VARYING.sub(b"", answer.content)


def reads(service: Service) -> Iterator[str]:
    """Every GET that takes a reference to a model: of the API, and of other protocols."""
    skipped = re.compile(
        r"/console/|.*/versions/\{version\}"
    )  # a version of an alias does not exist
    for route in service.app.routes:
        path, methods = getattr(route, "path", ""), getattr(route, "methods", None) or ()
        if "GET" in methods and path.count("{ref}") and not skipped.match(path):
            yield path


@long_form
@pytest.mark.parametrize("service_on_both", DATABASES, indirect=True)
def test_a_read_is_of_one_version(moving: Moving) -> None:
    paths = sorted(set(reads(moving.service)))
    differing = 0
    for path in paths:
        for kind in KINDS.get(path, ("",)):
            at = path.format(ref=ALIAS, kind=kind)
            ask = partial(moving.client.get, at, params=QUERIES.get(path))
            differing += moving.check(ask)
    assert len(paths) > 25
    assert differing > 18


BODIES: dict[str, dict[str, Any]] = {
    "/v1/models/{ref}/score": {"rows": [ROW]},
    "/v1/models/{ref}/rank": {"rows": [ROW, ROW | {NAMES[0]: 2.0}]},
    "/v1/models/{ref}/explain": {"rows": [ROW]},
    "/v1/models/{ref}/invocations": {"inputs": [ROW]},
    "/oip/v2/models/{ref}/infer": {
        "inputs": [{"name": n, "shape": [1], "datatype": "FP64", "data": [0.5]} for n in NAMES]
    },
}


def test_rows_are_scored_by_one_version(moving: Moving) -> None:
    for path, body in BODIES.items():
        ask = partial(moving.client.post, path.format(ref=ALIAS), json=body)
        assert moving.check(ask), path


CREATIONS: dict[str, dict[str, Any]] = {
    "/v1/evaluations": {"model": ALIAS},
    "/v1/comparisons": {"models": [ALIAS, "churn:3"]},
    "/v1/batch-scores": {"model": ALIAS},
}
IDS = re.compile(rb"(evl|cmp|bat|job)_[0-9a-f]+")


# On SQLite nobody can move an alias while another transaction writes.
@long_form
@pytest.mark.parametrize("service_on_both", ["postgres"], indirect=True)
def test_a_job_is_of_one_version(moving: Moving) -> None:
    later = moving.service.upload(moving.client, table(seed=2), name="later")
    moving.service.train(moving.client, moving.service.upload(moving.client, table(seed=3)))

    def finish(accepted: httpx.Response) -> Any:
        moving.service.work()
        assert accepted.is_success, accepted.text
        finished = moving.client.get(accepted.headers["Location"])
        assert finished.json()["status"] == "ready", finished.text
        return IDS.sub(b"", _content(finished)[2])

    for path, body in CREATIONS.items():
        ask = partial(moving.client.post, path, json=body | {"dataset_id": later})
        assert moving.check(ask, finish), path
