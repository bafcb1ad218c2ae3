"""Requests that succeed. A generator that knows only the description never makes a table that can be read, and never
finds a model that exists. So most of the time it gets both from here.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet

KEPT = 40  # resources of a kind that are remembered; the older ones have been used enough
WAIT = "wait=20"
RARE = 0.15  # share of the tables with one positive row, of which jobs fail: something to retry
Json = dict[str, Any]
is_id = re.compile(r"[a-z]+_[0-9a-f]{32}").fullmatch
NOTHING: Json = {}
RECEIVER = "https://receiver.invalid/events"
"""A URL of a webhook, whose host never exists."""
PARQUET = "application/vnd.apache.parquet"
ALIAS = "PUT /v1/models/{name}/aliases/{alias}"
FEEDBACK = f"{ALIAS}/feedback"
PROTECTION = f"{ALIAS}/protection"
BREAK_GLASS = "POST /v1/models/{name}/aliases/{alias}/break-glass"
REPLAY = "POST /v1/webhooks/{webhook_id}/deliveries/{event_id}/replay"
GUARDED = "guarded"
"""How the names of aliases begin that may be protected. Others stay free, or no alias could be moved any more."""
MOST_GUARDED = 10  # an alias has 10 open requests at most
ANSWERS = ("application/json", "text/csv", "application/x-ndjson", "*/*;q=0.1, text/csv")


@dataclass
class Request:
    """Values that replace generated ones."""

    body: Any = None
    media_type: str | None = None
    query: Json = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


class World:
    """The things that are known to exist, by kind, and the requests that use them."""

    def __init__(self, random: Random, own_key: str) -> None:
        self.random = random
        self.own_key = own_key
        self._known: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=KEPT))
        self._gone: set[str] = set()
        self._dictionaries = 0
        self._delivery: str | None = None  # whose webhook is in the address that is being made
        self._makers: dict[str, Callable[[], Request | None]] = {
            "POST /v1/datasets": self._dataset,
            "POST /v1/datasets/{dataset_id}/versions": self._version,
            "POST /v1/datasets/{dataset_id}/read": lambda: self._json(
                {"label": "shop", "positive": "north"}
            ),
            "PUT /v1/datasets/{dataset_id}/pairs": self._pairs,
            "POST /v1/uploads": self._upload,
            "PUT /v1/uploads/{upload_id}/parts/{number}": self._part,
            "POST /v1/uploads/{upload_id}/close": lambda: self._json({"parts": 1}, wait=True),
            "POST /v1/jobs": self._job,
            "POST /v1/jobs/{job_id}/retry": lambda: Request(headers={"Prefer": WAIT}),
            "POST /v1/evaluations": self._evaluation,
            "POST /v1/comparisons": self._comparison,
            "POST /v1/batch-scores": self._batch,
            ALIAS: self._alias,
            FEEDBACK: lambda: self._json({"days": self.random.randrange(1, 400)}),
            PROTECTION: lambda: Request(
                {"protected": True}, "application/json", headers={"If-Match": '"1"'}
            ),
            BREAK_GLASS: lambda: self._json({"reason": "Emergency"}),
            "POST /v1/alias-requests": self._alias_request,
            "PUT /v1/models/{name}/reason-codes": self._reason_codes,
            "PUT /v1/models/{ref}/calibration": self._calibration,
            "POST /v1/models/{ref}/score": self._rows_or_table,
            "POST /v1/models/{ref}/rank": self._rows_or_table,
            "POST /v1/models/{ref}/explain": self._rows,
            "GET /v1/models/{ref}/score": self._row_query,
            "POST /v1/decisions": self._decisions,
            "POST /v1/outcomes": self._outcomes,
            "POST /v1/erasures": lambda: self._json({"id": f"c{self.random.randrange(50)}"}),
            "POST /v1/webhooks": lambda: self._json({"url": RECEIVER}),
            "POST /v1/webhooks/{webhook_id}/rotate": Request,
            "POST /v1/webhooks/{webhook_id}/ping": Request,
            REPLAY: Request,
            "POST /v1/keys": self._key,
            "POST /v1/keys/{key_id}/rotate": self._rotation,
        }

    def request(self, label: str) -> Request | None:
        """Return a valid request of the operation, if one is known and the things that it needs exist."""
        maker = self._makers.get(label)
        return maker() if maker is not None else None

    def parameter(self, label: str, name: str) -> str | None:
        """Return something that exists, for a parameter of the address."""
        match name:
            case "dataset_id" if label.endswith("/pairs"):
                return self._any("preferences")
            case "dataset_id":
                return self._any("bipartite")
            case "job_id" if label.endswith("/retry"):
                return self._any("ended")
            case "job_id" if label.endswith("/cancel"):
                return self._last("job")
            case "job_id":
                return self._any("job")
            case "ref":
                return self._any("model")
            case "name" if "algorithms" in label:
                return self.random.choice(("rankboost", "auc_svm", "treerank", "auto"))
            case "name":
                return "fuzzed"
            case "webhook_id" if label == REPLAY:
                self._delivery = self._any("delivery")
                return self._delivery and self._delivery.partition(" ")[0]
            case "event_id":
                return self._delivery and self._delivery.partition(" ")[2]
            case "upload_id":
                return self._last("upload")
            case "number":
                return "1"
            case "alias" if label == ALIAS:
                guarded = f"{GUARDED}{self.random.randrange(MOST_GUARDED)}"
                alias = self.random.choice(
                    ("champion", guarded, f"a{self.random.randrange(10_000)}")
                )
                self._add(GUARDED if alias == guarded else "alias", alias)
                return alias
            case "alias" if label == PROTECTION:
                alias = self._any(GUARDED)
                if alias is not None:
                    self._add("protected", alias)
                return alias
            case "alias" if label == BREAK_GLASS:
                return self._any("protected")
            case "alias" if label == FEEDBACK:
                alias = self._any("alias") or "champion"
                self._add("recorded", alias)
                return alias
            case "alias":
                return self._any("alias")
            case _:
                return self._any(name.removesuffix("_id"))

    def learn(self, body: Any, path: Json) -> None:
        """Remember the things that an answer shows to exist; `path` has the parameters of the request's address."""
        listed = body.get("data") if isinstance(body, dict) else None
        for thing in listed if isinstance(listed, list) else [body]:
            if isinstance(thing, dict) and "event_id" in thing and "webhook_id" in path:
                self._add("delivery", f"{path['webhook_id']} {thing['event_id']}")
            if not (isinstance(thing, dict) and isinstance(thing.get("id"), str)):
                continue
            kind = thing["id"].partition("_")[0]
            match kind:
                case "ds" if thing.get("status") == "ready":
                    self._add(thing["kind"], thing["id"])
                    self._add("dataset", thing["id"])
                case "up" if thing["status"] == "open":
                    self._add("upload", thing["id"])
                case "job":
                    self._add("job", thing["id"])
                    if thing["state"] in ("failed", "cancelled", "timed_out"):
                        self._add("ended", thing["id"])
                    made = thing["output"]
                    if made is not None and made["kind"] == "model":
                        self._add("model", made["id"])
                        self._add(f"model of {thing['name']}", made["id"])
                case "key" if thing["id"] != self.own_key and not thing.get("revoked_at"):
                    self._add("key", thing["id"])
                case "wh":
                    self._add("webhook", thing["id"])
                case "evl" | "cmp" | "bat":
                    name = {"evl": "evaluation", "cmp": "comparison", "bat": "batch_score"}[kind]
                    self._add(name, thing["id"])

    def forget(self, identifiers: Iterable[Any], *, gone: bool) -> None:
        """Forget things that were deleted just now, or did not exist."""
        for identifier in map(str, identifiers):
            # A revoked key can be read, and a name can be used again.
            if gone and is_id(identifier) and not identifier.startswith("key_"):
                self._gone.add(identifier)
            for known in self._known.values():
                for each in [each for each in known if identifier in each.split(" ")]:
                    known.remove(each)

    def is_gone(self, identifiers: Iterable[Any]) -> bool:
        """Return True if one of them was deleted."""
        return not self._gone.isdisjoint(map(str, identifiers))

    def _add(self, kind: str, identifier: str) -> None:
        if identifier not in self._known[kind]:
            self._known[kind].append(identifier)

    def _any(self, kind: str) -> str | None:
        known = self._known[kind]
        return self.random.choice(known) if known else None

    def _last(self, kind: str) -> str | None:
        known = self._known[kind]
        return known[-1] if known else None

    def _dataset(self) -> Request:
        kind = self.random.choice(("bipartite", "bipartite", "bipartite", "preferences"))
        said = {"name": "fuzzed", "kind": kind}
        said |= {"item": "id"} if kind == "preferences" else {"label": "left", "positive": "yes"}
        return self._table(self._columns(kind == "preferences"), said)

    def _upload(self) -> Request:
        return Request(query={"name": "fuzzed", "label": "left", "positive": "yes"})

    def _part(self) -> Request:
        return self._table(self._columns(False))

    def _version(self) -> Request:
        return self._table(self._columns(False), {"mode": "append"})

    def _columns(self, items: bool) -> dict[str, list[Any]]:
        rows = self.random.randrange(30, 80)
        age = [self.random.gauss(40, 10) for _ in range(rows)]
        columns: dict[str, list[Any]] = {
            "age": age,
            "income": [None if self.random.random() < 0.1 else value * 100 for value in age],
            "shop": [self.random.choice(("north", "south", "=1+1", "<b>", "é")) for _ in age],
        }
        if items:
            return columns | {"id": [f"i{number}" for number in range(rows)]}
        rare = self.random.random() < RARE
        left = [not rare and value + self.random.gauss(0, 8) > 40 for value in age[:-2]]
        return columns | {"left": ["yes" if value else "no" for value in [*left, True, False]]}

    def _table(self, columns: dict[str, list[Any]], query: Json = NOTHING) -> Request:
        table, out = pa.table(columns), io.BytesIO()
        media_type = self.random.choice(("text/csv", "application/x-ndjson", PARQUET))
        if media_type == "text/csv":
            lines = [",".join(columns)]
            lines += [
                ",".join("" if cell is None else str(cell) for cell in row)
                for row in zip(*columns.values(), strict=True)
            ]
            out.write("\n".join(lines).encode())
        elif media_type == "application/x-ndjson":
            out.write(b"\n".join(map(orjson.dumps, table.to_pylist())))
        else:
            pyarrow.parquet.write_table(table, out)
        return Request(out.getvalue(), media_type, query, {"Prefer": WAIT})

    def _decisions(self) -> Request | None:
        alias = self._any("recorded")
        if alias is None:
            return None
        columns = self._columns(False)
        del columns["left"]
        count = len(columns["age"])
        columns |= {
            "id": [self.random.choice(("c1", "é", "<b>", "=1+1", "7")) for _ in range(count)],
            "at": [f"2026-01-{self.random.randrange(1, 31):02}" for _ in range(count)],
            "score": [self.random.gauss(0, 1) for _ in range(count)],
        }
        return self._table(columns, {"model": f"fuzzed@{alias}"})

    def _outcomes(self) -> Request:
        count = self.random.randrange(1, 400)
        columns: dict[str, list[Any]] = {
            "id": [self.random.choice(("c1", "é", "<b>", "=1+1", "7")) for _ in range(count)],
            "label": [self.random.choice(("true", "false", "0", "1")) for _ in range(count)],
            "event_at": [f"2026-01-{self.random.randrange(1, 31):02}" for _ in range(count)],
            "amount": [self.random.gauss(0, 100) for _ in range(count)],
        }
        made = self._table(columns)
        while made.media_type == PARQUET:
            made = self._table(columns)
        return made

    def _pairs(self) -> Request:
        lines = ["better,worse"]
        for _ in range(30):
            better, worse = self.random.sample(range(30), 2)
            lines.append(f"i{better},i{worse}")
        return Request("\n".join(lines).encode(), "text/csv", {}, {"Prefer": WAIT})

    def _job(self) -> Request | None:
        dataset_id = self._any("bipartite")
        if dataset_id is None:
            return None
        algorithm: Json = self.random.choice(
            (
                {"name": "rankboost", "n_rounds": 3},
                {"name": "rankboost", "n_rounds": 3, "weak_ranker": "tree"},
                {"name": "logistic"},
                {"name": "treerank", "max_depth": 3},
            )
        )
        validation = self.random.choice(
            ({"method": "holdout"}, {"method": "none"}, {"method": "cross_validation", "folds": 2})
        )
        job = {
            "dataset_id": dataset_id,
            "name": "fuzzed",
            "algorithm": algorithm,
            "baselines": False,
        }
        job |= {"validation": validation, "seed": self.random.randrange(3)}
        return self._json(job, wait=True)

    def _evaluation(self) -> Request | None:
        model, dataset_id = self._any("model"), self._any("bipartite")
        if model is None or dataset_id is None:
            return None
        return self._json({"model": model, "dataset_id": dataset_id}, wait=True)

    def _calibration(self) -> Request | None:
        dataset_id = self._any("bipartite")
        return None if dataset_id is None else self._json({"dataset_id": dataset_id}, wait=True)

    def _comparison(self) -> Request | None:
        dataset_id, models = self._any("bipartite"), list(self._known["model"])
        if dataset_id is None or len(models) < 2:
            return None
        chosen = self.random.sample(models, 2)
        return self._json({"models": chosen, "dataset_id": dataset_id}, wait=True)

    def _batch(self) -> Request | None:
        return self._evaluation()

    def _alias(self) -> Request | None:
        model = self._any("model of fuzzed")
        if model is None:
            return None
        headers = {} if self.random.random() < 0.8 else {"If-Match": '"1"'}
        return Request({"model_id": model}, "application/json", headers=headers)

    def _alias_request(self) -> Request | None:
        model, alias = self._any("model of fuzzed"), self._any("protected")
        if model is None or alias is None:
            return None
        said = {"kind": "set", "name": "fuzzed", "alias": alias, "model_id": model}
        return self._json(said | {"reason": "Better"})

    def _reason_codes(self) -> Request | None:
        if self._any("model of fuzzed") is None:
            return None
        headers = {"If-Match": f'"{self._dictionaries}"'} if self._dictionaries else {}
        self._dictionaries += 1
        entry = {"code": "A", "text": "Age", "columns": ["age"], "missing": True}
        entries = [entry] if self.random.random() < 0.5 else []
        return Request({"entries": entries}, "application/json", headers=headers)

    def _rows(self) -> Request:
        rows = [self._row() for _ in range(3)]
        return self._json({"rows": rows})

    def _rows_or_table(self) -> Request:
        rows = [self._row() for _ in range(3)]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        request = self._json({"rows": rows}) if self.random.random() < 0.5 else self._table(columns)
        request.headers["Accept"] = self.random.choice(ANSWERS)
        return request

    def _row_query(self) -> Request:
        return Request(query={name: str(value or "") for name, value in self._row().items()})

    def _row(self) -> Json:
        shop = self.random.choice(("north", "unseen", None))
        return {"age": self.random.gauss(40, 10), "income": 4000.0, "shop": shop}

    def _key(self) -> Request:
        return self._json({"name": "fuzzed", "scopes": [self.random.choice(("read", "score"))]})

    def _rotation(self) -> Request:
        return self._json({"grace_seconds": self.random.choice((0, 3600))})

    def _json(self, body: Json, *, wait: bool = False) -> Request:
        return Request(body, "application/json", headers={"Prefer": WAIT} if wait else {})
