"""What callers do: upload, train, search, evaluate, cancel, delete, each until it has an answer.

A caller repeats a request without an answer, or with 503, under the same Idempotency-Key, and notes what was accepted:
the service is judged by these notes.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

ROWS, FEATURES = 200, 3
PATIENCE_SECONDS = 0.2
ANSWER_SECONDS = 30.0
AGAIN = {409: {"upload_under_way"}, 429: None, 503: None, 507: None}
"""The answers that mean: come back. Of 409 only with these codes."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Accepted:
    """A creating POST that was answered: its key, and what it made."""

    key: str
    what: str
    id: str
    job_id: str


@dataclass
class Ledger:
    """The callers' notes. The audit compares the database with them."""

    accepted: list[Accepted] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)  # answers that no caller should ever get
    lock: threading.Lock = field(default_factory=threading.Lock)


class Caller(threading.Thread):
    """One caller, who works until told to stop, and then finishes what it has begun."""

    def __init__(self, address: str, secret: str, ledger: Ledger, seed: int) -> None:
        super().__init__(name=f"caller-{seed}", daemon=True)
        self.stop = threading.Event()
        self.may_submit = threading.Event()
        self._ledger = ledger
        self._random = random.Random(seed)
        self._who = f"c{seed}"
        self._count = 0
        self._uploads: list[str] = []
        self._ready: list[str] = []
        self._jobs: list[str] = []
        self._models: list[str] = []
        self._http = httpx.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {secret}"},
            timeout=ANSWER_SECONDS,
        )

    def run(self) -> None:
        """Make one request after the other."""
        doings: list[tuple[Callable[[], None], int]] = [
            (self._upload, 3),
            (self._train, 6),
            (self._search, 3),
            (self._evaluate, 3),
            (self._score, 2),
            (self._cancel, 2),
            (self._remove, 1),
        ]
        actions, weights = zip(*doings, strict=True)
        while not self.stop.is_set():
            if not self.may_submit.wait(0.1):
                continue
            self._look()
            (action,) = self._random.choices(actions, weights) if self._ready else [self._upload]
            action()
            self.stop.wait(0.05)
        self._http.close()

    def _look(self) -> None:
        """See which uploads are ready, and which jobs have made a model."""
        for dataset_id in self._uploads[:]:
            found = self._get(f"/v1/datasets/{dataset_id}")
            if found is None or found["status"] != "processing":
                self._uploads.remove(dataset_id)
                if found is not None and found["status"] == "ready":
                    self._ready.append(dataset_id)
        if self._jobs:
            job_id = self._random.choice(self._jobs)
            found = self._get(f"/v1/jobs/{job_id}")
            if found is None or found["finished_at"] is not None:
                self._jobs.remove(job_id)
                if found is not None and found["output"] is not None:
                    self._models.append(found["output"]["id"])

    def _upload(self) -> None:
        key = self._key()
        rng = random.Random(self._random.randrange(20))  # equal tables, now and then
        lines = [",".join([*(f"x{j}" for j in range(FEATURES)), "y"])]
        for _ in range(ROWS):
            row = [rng.gauss(0, 1) for _ in range(FEATURES)]
            lines.append(
                ",".join([*(f"{x:.4f}" for x in row), str(int(row[0] + rng.gauss(0, 1) > 0))])
            )
        made = self._create(
            "/v1/datasets",
            key,
            content="\n".join(lines).encode(),
            params={"name": key, "label": "y", "positive": "1"},
            headers={"Content-Type": "text/csv"},
        )
        if made is not None:
            self._uploads.append(made["id"])

    def _train(self) -> None:
        self._submit({"name": "rankboost", "n_rounds": self._random.choice([20, 2_000, 20_000])})

    def _search(self) -> None:
        space = {"n_rounds": [20, 2_000], "max_bins": [4, 16]}
        search = {"method": "random", "space": space, "n_candidates": 2}
        validation = {"method": "cross_validation", "folds": 2}
        self._submit({"name": "rankboost"}, search=search, validation=validation)

    def _submit(self, algorithm: Json, **more: Json) -> None:
        key = self._key()
        body: Json = {
            "dataset_id": self._random.choice(self._ready),
            "name": f"m{self._random.randrange(3)}",
            "algorithm": algorithm,
            "tags": {"key": key},
            "baselines": False,
            **more,
        }
        if (job := self._create("/v1/jobs", key, json=body)) is not None:
            self._jobs.append(job["id"])

    def _evaluate(self) -> None:
        if self._models:
            self._create("/v1/evaluations", self._key(), json=self._model_and_dataset())

    def _score(self) -> None:
        if self._models:
            self._create("/v1/batch-scores", self._key(), json=self._model_and_dataset())

    def _model_and_dataset(self) -> Json:
        return {
            "model": self._random.choice(self._models),
            "dataset_id": self._random.choice(self._ready),
        }

    def _cancel(self) -> None:
        if self._jobs:
            self.stop.wait(self._random.random())
            self._until_answered("POST", f"/v1/jobs/{self._random.choice(self._jobs)}/cancel")

    def _remove(self) -> None:
        if len(self._ready) > 2 and self._random.random() < 0.5:
            self._remove_one(self._ready, "/v1/datasets")
        elif len(self._models) > 2:
            self._remove_one(self._models, "/v1/models")

    def _remove_one(self, known: list[str], path: str) -> None:
        id_ = self._random.choice(known)
        answer = self._until_answered("DELETE", f"{path}/{id_}")
        if answer is not None and answer.status_code in {204, 404}:
            known.remove(id_)
            with self._ledger.lock:
                self._ledger.deleted.add(id_)

    def _key(self) -> str:
        self._count += 1
        return f"{self._who}-{self._count}"

    def _create(self, path: str, key: str, **request: Any) -> Json | None:
        """POST until there is an answer, and sometimes once more: it must be the same answer."""
        request["headers"] = {"Idempotency-Key": key, **request.get("headers", {})}
        answer = self._until_answered("POST", path, **request)
        if answer is None or not answer.is_success:
            return None
        made: Json = answer.json()
        entry = Accepted(
            key, path.rpartition("/")[2], made["id"], str(made.get("job_id", made["id"]))
        )
        with self._ledger.lock:
            self._ledger.accepted.append(entry)
        if self._random.random() < 0.2:
            again = self._until_answered("POST", path, **request)
            if again is not None and (not again.is_success or again.json()["id"] != made["id"]):
                self._complain(f"{path} {key} was {made['id']}, its replay {again.text[:200]}")
        return made

    def _get(self, path: str) -> Json | None:
        answer = self._until_answered("GET", path)
        found: Json | None = answer.json() if answer is not None and answer.is_success else None
        return found

    def _until_answered(self, method: str, path: str, **request: Any) -> httpx.Response | None:
        """Send until there is an answer. A reading request is given up once the callers are told to stop."""
        while not (method == "GET" and self.stop.is_set()):
            try:
                answer = self._http.request(method, path, **request)
            except httpx.HTTPError as error:
                self._count_answer(type(error).__name__)
            else:
                self._count_answer(str(answer.status_code))
                if answer.status_code not in AGAIN:
                    if answer.status_code >= 500:
                        self._complain(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
                    return answer
                codes = AGAIN[answer.status_code]
                if codes is not None and answer.json()["code"] not in codes:
                    return answer
            time.sleep(PATIENCE_SECONDS)
        return None

    def _count_answer(self, answer: str) -> None:
        with self._ledger.lock:
            self._ledger.answers[answer] += 1

    def _complain(self, complaint: str) -> None:
        with self._ledger.lock:
            self._ledger.broken.append(complaint)
