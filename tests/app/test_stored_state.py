"""A deployment written by a release opens, gives the same answers and scores, and does its queued work.

`python -m tests.app.test_stored_state` writes the deployments again, on SQLite and on PostgreSQL, by the present code.
Do that only with a release: what is stored stands for the state of those who upgrade. That of 0.4.0 may be written
anew until it is out.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from pydantic import SecretStr

from app.platform import migrate
from app.platform.settings import Settings
from tests.app.live_service import Service, running
from tests.servers import PostgresServer

FOLDER = Path(__file__).parent / "stored_state"
DATABASES = ["sqlite", "postgres"]
CSV = {"Content-Type": "text/csv"}
# What the clock or the last request changes.
VOLATILE = {"last_used_at", "request_id"}
ROWS = [
    {"age": 31.5, "income": 2.25, "town": "Ulm", "since": "2024-03-01"},
    {"age": 44, "income": None, "town": None, "since": "2023-01-15"},
    {"age": 12, "income": 9.5, "town": "unheard of", "since": None},
]
OF_A_MODEL = [
    *("", "/metrics", "/metrics?on=train", "/margins", "/roc", "/operating-point?fpr=0.2"),
    *(
        "/bounds",
        "/importance",
        "/partial-dependence?feature=age",
        "/structure",
        "/out-of-fold",
        "/baselines",
        "/leaderboard",
    ),
]


def people(rows: int = 150, seed: int = 0) -> bytes:
    """A table of numbers with gaps, words, dates and a label of two words."""
    rng = np.random.default_rng(seed)
    towns = ["Köln", "Bonn", "Ulm", "Trier"]
    lines = ["person,age,income,town,since,left"]
    for k in range(rows):
        age, income, town = rng.integers(18, 80), rng.normal() * 3, int(rng.integers(4))
        left = "yes" if age / 20 + income + town + rng.normal() > 4 else "no"
        cells = [
            f"p{k}",
            age,
            "" if k % 9 == 2 else f"{income:.3f}",
            "" if k % 13 == 5 else towns[town],
        ]
        lines.append(",".join(map(str, [*cells, f"20{20 + k % 5}-0{1 + k % 9}-1{k % 10}", left])))
    return ("\n".join(lines) + "\n").encode()


def films() -> tuple[bytes, bytes]:
    """Items, and pairs of which the first is to be ranked higher."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(40, 2))
    items = "title,length,fame\n" + "".join(
        f"f{i},{a:.3f},{b:.3f}\n" for i, (a, b) in enumerate(values)
    )
    drawn = [tuple(rng.choice(40, 2, replace=False)) for _ in range(120)]
    ordered = [(i, j) if values[i].sum() > values[j].sum() else (j, i) for i, j in drawn]
    return items.encode(), ("better,worse\n" + "".join(f"f{i},f{j}\n" for i, j in ordered)).encode()


def labelled() -> bytes:
    """A table with several labels a row."""
    rng = np.random.default_rng(2)
    lines = ["a,b,red,green,blue"]
    for a, b in rng.normal(size=(80, 2)):
        lines.append(f"{a:.3f},{b:.3f},{int(a > 0)},{int(b > 0)},{int(a + b > 0.5)}")
    return ("\n".join(lines) + "\n").encode()


def fill(service: Service) -> str:
    """Make one of everything, by HTTP; one job stays in the queue. Returns the key it was made with."""
    secret = service.key()
    client = service.client(secret)

    def done(answer: httpx.Response) -> Any:
        assert answer.is_success, answer.text
        service.work()
        return answer.json()

    said = {"label": "left", "positive": "yes", "drop": "person"}
    table = done(
        client.post("/v1/datasets", params=said | {"name": "people"}, content=people(), headers=CSV)
    )
    later = done(
        client.post(
            "/v1/datasets", params=said | {"name": "later"}, content=people(90, 5), headers=CSV
        )
    )
    done(client.post(f"/v1/datasets/{table['id']}/versions", content=people(30, 7), headers=CSV))
    done(
        client.post(
            "/v1/datasets?name=broken&label=left", content=b"age,left\n1,a\n2,a\n", headers=CSV
        )
    )
    items, pairs = films()
    liked = done(
        client.post(
            "/v1/datasets?name=films&kind=preferences&item=title", content=items, headers=CSV
        )
    )
    done(client.put(f"/v1/datasets/{liked['id']}/pairs", content=pairs, headers=CSV))
    many = done(
        client.post(
            "/v1/datasets?name=tags&kind=multilabel&labels=red,green,blue",
            content=labelled(),
            headers=CSV,
        )
    )

    def train(**job: Any) -> Any:
        at_random = {"method": "holdout", "time_column": None}  # with it dates are features
        asked = {"dataset_id": table["id"], "baselines": False, "validation": at_random} | job
        found = client.get(f"/v1/jobs/{done(client.post('/v1/jobs', json=asked))['id']}").json()
        assert found["state"] == "succeeded", found
        return found

    folds = {"method": "cross_validation", "folds": 3, "time_column": None}
    boosted = {"name": "rankboost", "n_rounds": 8}
    first = train(name="churn", algorithm=boosted, baselines=True, tags={"team": "risk"})
    train(name="churn", algorithm={"name": "logitboost", "n_rounds": 5}, validation=folds)
    train(name="leaves", algorithm={"name": "treerank"})
    train(name="line", algorithm={"name": "logistic"})
    train(name="top", algorithm={"name": "pauc_svm"}, objective={"metric": "pauc", "fpr_max": 0.2})
    train(name="found", algorithm=boosted, search={"method": "grid", "space": {"max_bins": [2, 8]}})
    train(name="films", dataset_id=liked["id"], algorithm=boosted)
    train(
        name="tags",
        dataset_id=many["id"],
        algorithm={"name": "adaboost_mh", "n_rounds": 5},
    )
    done(
        client.put("/v1/models/churn/aliases/production", json={"model_id": first["output"]["id"]})
    )
    done(client.post("/v1/evaluations", json={"model": "churn:1", "dataset_id": later["id"]}))
    done(
        client.post(
            "/v1/comparisons",
            json={"models": ["churn:1", "leaves"], "dataset_id": later["id"]},
        )
    )
    done(client.post("/v1/batch-scores?model=churn:1", content=people(20, 3), headers=CSV))
    done(client.post("/v1/keys", json={"name": "reader", "scopes": ["read"]}))
    answer = client.post(
        "/v1/jobs",
        json={
            "dataset_id": table["id"],
            "name": "waiting",
            "algorithm": boosted,
            "baselines": False,
        },
    )
    assert answer.is_success, answer.text
    return secret


def addresses(client: httpx.Client) -> Iterator[str]:
    """Every GET whose answer is JSON, of everything there is."""
    kinds = (
        "algorithms",
        "datasets",
        "jobs",
        "models",
        "evaluations",
        "comparisons",
        "batch-scores",
        "keys",
    )
    for kind in kinds:
        listed = f"/v1/{kind}" if kind == "algorithms" else f"/v1/{kind}?limit=100"
        yield listed
        for thing in client.get(listed).json()["data"]:
            at = f"/v1/{kind}/{thing.get('id', thing.get('name'))}"
            if kind == "models":
                yield from (at + part for part in OF_A_MODEL)
                continue
            yield at
            if kind == "datasets":
                yield from (f"{at}/{part}" for part in ("preview", "profile", "versions"))
            if kind == "jobs":
                yield f"{at}/events"
            if kind == "evaluations":
                yield f"{at}/roc"
    yield "/v1/models/churn/aliases/production"


def answers(client: httpx.Client) -> dict[str, Any]:
    """Return the service's answers by address; for a refusal only the status, since its words may change."""
    found = {}
    for address in addresses(client):
        answer = client.get(address)
        found[address] = _steady(answer.json()) if answer.is_success else answer.status_code
    for name in ("churn:1", "churn:2", "leaves", "line", "top", "found"):
        answer = client.post(f"/v1/models/{name}/score", json={"rows": ROWS})
        assert answer.is_success, (name, answer.text)
        found[f"scores of {name}"] = answer.json()["scores"]
    return found


def _steady(body: Any) -> Any:
    if isinstance(body, dict):
        return {key: _steady(value) for key, value in body.items() if key not in VOLATILE}
    return [_steady(value) for value in body] if isinstance(body, list) else body


def write(database: str, url: str, postgres: PostgresServer | None) -> None:
    """Fill a deployment; store its state, the key it was made with, and its answers."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            state_dir=Path(folder), database_url=SecretStr(url.format(folder=folder))
        )
        migrate.upgrade(settings.sqlalchemy_url)
        with running(settings) as service:
            secret = fill(service)
            told = {"secret": secret, "answers": answers(service.client(secret))}
        if postgres is not None:
            postgres.dump("stored", Path(folder) / "dump")
        with tarfile.open(FOLDER / f"{database}.tar.xz", "w:xz") as tar:
            for name in ("rankwright.db", "dump", "blobs"):
                if (Path(folder) / name).exists():
                    tar.add(Path(folder) / name, name, filter=_of_nobody)
    (FOLDER / f"{database}.json.gz").write_bytes(gzip.compress(json.dumps(told).encode(), mtime=0))


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    return member.replace(uid=0, gid=0, uname="", gname="", deep=False)


@pytest.fixture(params=DATABASES)
def stored(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Service, dict[str, Any]]]:
    """The stored deployment, upgraded and running, with its stored answers."""
    with tarfile.open(FOLDER / f"{request.param}.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    url = f"sqlite:///{tmp_path / 'rankwright.db'}"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.create("stored")
        dump = server.folder / "stored.dump"
        shutil.copy(tmp_path / "dump", dump)
        server.load(dump, "stored")
    told = json.loads(gzip.decompress((FOLDER / f"{request.param}.json.gz").read_bytes()))
    migrate.upgrade(url)
    with running(Settings(state_dir=tmp_path, database_url=SecretStr(url))) as service:
        yield service, told
    if request.param == "postgres":
        server.drop("stored")


def test_it_answers_as_it_did_and_does_what_was_queued(
    stored: tuple[Service, dict[str, Any]],
) -> None:
    service, told = stored
    client = service.client(told["secret"])
    found = answers(client)
    old = told["answers"]
    # Later versions have more algorithms.
    added = {address for address in found.keys() - old.keys() if "/algorithms/" in address}
    known = {each["name"] for each in old["/v1/algorithms"]["data"]}
    listed = found["/v1/algorithms"]
    listed["data"] = [each for each in listed["data"] if each["name"] in known]
    assert found.keys() - added == old.keys()
    for address, before in old.items():
        _same(found[address], before, address)
    assert service.work() == 1
    assert client.get("/v1/models/waiting").json()["version"] == 1
    assert client.get("/v1/models/waiting/metrics").json()["auc"] is not None


def _same(now: Any, before: Any, where: str) -> None:
    """Check that every stored answer is still given; a field may have been added."""
    if isinstance(before, dict):
        assert now.keys() >= before.keys(), where
        for key, value in before.items():
            # Sentences that are made when they are asked for belong to the program, and may be improved.
            of_algorithm = where.startswith("/v1/algorithms") and key in ("summary", "paper")
            if key == "description" or of_algorithm:
                continue
            if ("/bounds" in where or "/margins bounds" in where) and key == "reasons":
                assert len(now[key]) == len(value), where
            else:
                _same(now[key], value, f"{where} {key}")
    elif isinstance(before, list):
        assert len(now) == len(before), where
        for k, value in enumerate(before):
            _same(now[k], value, f"{where} {k}")
    elif isinstance(before, float):
        assert now == pytest.approx(before, rel=1e-9, abs=1e-12), where
    else:
        assert now == before, where


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write("sqlite", "sqlite:///{folder}/rankwright.db", None)
    server = PostgresServer()
    try:
        write("postgres", server.create("stored"), server)
    finally:
        server.close()
