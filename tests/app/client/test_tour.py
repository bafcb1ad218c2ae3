"""The client against a running service: what a person does with it, blocking and awaited."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rankwright
from rankwright import tables, types
from rankwright.errors import Invalid
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from examples import put_aside
from tests.app.live_service import Service, table
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "clients.md"
PROGRAM = ROOT / "examples" / "from_python.py"  # whose types `make lint` checks


ONE_FIT: dict[str, Any] = {"validation": {"method": "holdout"}, "baselines": False}


@pytest.fixture
def client(service: Service) -> Iterator[rankwright.Client]:
    with service.at_work(), rankwright.Client(service.url, service.key()) as client:
        yield client


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "churn.csv"
    path.write_text(table())
    return path


@long_form
def test_what_the_page_shows_runs_as_it_stands_there(
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (example,) = [each for each in found if 'client.upload("churn.csv"' in each]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, 200), "plan": rng.choice(["gold", "basic"], 200)}
    )
    frame.to_csv(tmp_path / "customers.csv", index=False)
    churned = frame.age + 30 * (frame.plan == "basic") + rng.normal(0, 10, 200) > 70
    frame.assign(churned=churned.astype(int)).to_csv(tmp_path / "churn.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWRIGHT_URL", service.url)
    monkeypatch.setenv("RANKWRIGHT_API_KEY", service.key())
    assert example == PROGRAM.read_text().partition('"""\n\n')[2]
    with service.at_work():
        for _ in range(2):  # a nightly program finds what it made the night before
            exec(compile(example, "clients.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "'state': 'succeeded'" in printed
    assert "score" in printed


def test_the_readmes_example_scores_customers_that_were_put_aside(
    client: rankwright.Client,
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (example,) = [each for each in found if "deposits@live" in each]
    monkeypatch.chdir(tmp_path)
    put_aside.main()
    pq.write_table(pq.read_table("calls.parquet").slice(0, 400), "few.parquet")
    dataset = client.upload("few.parquet", label="subscribed", positive="yes")
    model = client.train(dataset, "rankboost", n_rounds=5, name="deposits", **ONE_FIT).wait()
    client.models.set_alias("deposits", "live", model)
    monkeypatch.setenv("RANKWRIGHT_URL", service.url)
    monkeypatch.setenv("RANKWRIGHT_API_KEY", service.key())
    exec(compile(example, "README.md", "exec"), {})
    assert "score: [[" in capsys.readouterr().out


def test_a_frame_s_label_of_booleans_is_positive_where_it_is_true(
    client: rankwright.Client,
) -> None:
    frame = pd.DataFrame({"x": np.arange(60.0), "left": np.arange(60) % 3 == 0})
    cases: list[tuple[Any, int]] = [(True, 20), ([False], 40), (None, 20)]
    for positive, count in cases:
        data = client.upload(frame, name="booleans", label="left", positive=positive)
        assert data.positives == count


def test_from_a_file_to_a_scored_frame(
    client: rankwright.Client,
    csv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sentences: Sentences,
) -> None:
    data = client.upload(csv, label="left", positive="yes")
    assert (data.data.name, data.data.rows, data.data.status) == ("churn", 120, "ready")
    job = client.train(data, "rankboost", n_rounds=20, name="churn", seed=3, **ONE_FIT)
    model = job.wait()
    assert job.state == "succeeded"
    assert model.auc.low < model.auc.value < model.auc.high
    frame = pd.read_csv(csv).drop(columns="left").set_index(np.arange(120) * 2)
    scores = model.score(frame)
    assert list(scores.columns) == ["score", "fpr", "tpr", "probability"]
    assert list(scores.index) == list(frame.index)
    by_rows = model.score(frame.to_dict("records"))
    assert [row["score"] for row in by_rows] == list(scores["score"])
    by_arrow = model.score(pa.Table.from_pandas(frame, preserve_index=False))
    assert by_arrow.column("score").to_pylist() == list(scores["score"])
    monkeypatch.setattr(tables, "SCORED_PART_BYTES", 1_000)
    assert client.models["churn"].score(frame).equals(scores)
    many_rows = [dict(row) for row in frame.to_dict("records") * 20]
    assert model.score(many_rows) == by_rows * 20
    many_rows[1_234][frame.columns[0]] = {"no": "number"}
    with pytest.raises(Invalid) as raised:
        model.score(many_rows)
    assert raised.value.errors[0]["line"] == 1_235
    with csv.open("rb") as file:
        by_file = model.score(file, ignore="left")
    assert [row["score"] for row in by_file] == list(scores["score"])
    with sentences.raises(rankwright.ConfigurationError):
        model.score_to_bytes(csv, "xlsx")
    one = client.models["churn"].score_row(frame.iloc[0].dropna().to_dict())
    assert isinstance(one, types.Score)
    assert one.score == scores["score"].iloc[0]
    gap = {**frame.iloc[0].to_dict(), frame.columns[0]: None}
    one = model.score_row(gap)
    assert isinstance(one, types.Score)
    assert one.score == model.score([gap])[0]["score"]
    nan = model.score_row({**gap, frame.columns[0]: float("nan")})
    assert isinstance(nan, types.Score)
    assert nan.score == one.score
    for ask in (model.score_row, model.score):
        with raises(rankwright.ConfigurationError, "Series"):
            ask(frame.iloc[0])
    keys = np.arange(len(frame)) * 7
    named = model.score(frame.assign(key=keys), id="key")
    assert list(named["id"]) == list(keys)
    assert list(named["score"]) == list(scores["score"])
    with_id = model.score_row({**gap, "key": "c1"}, id="key")
    assert isinstance(with_id, types.Score)
    assert (with_id.id, with_id.score) == ("c1", one.score)
    with_keys = tmp_path / "keys.csv"
    frame.assign(key=keys).to_csv(with_keys, index=False)
    for rows in (with_keys, frame.assign(key=keys).to_dict("records")):
        many = model.score(rows, id="key")
        assert [int(row["id"]) for row in many] == list(keys)
        assert [row["score"] for row in many] == list(scores["score"])
    batch = client.score_batch(model, with_keys, id="key")
    assert batch.result(format="csv").startswith(b"id,row_number,score")


def test_an_alias_with_a_promise_flags_every_part_of_a_table(
    client: rankwright.Client, csv: Path, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    data = client.upload(csv, label="left")
    model = client.train(data, "logistic", name="churn", **ONE_FIT).wait()
    client.models.set_alias("churn", "champion", model, guarantee={"fpr": 0.2})
    champion = client.models["churn@champion"]
    frame = pd.read_csv(csv).drop(columns="left")
    whole = champion.score(frame)
    assert set(whole["flag"]) == {True, False}
    monkeypatch.setattr(tables, "SCORED_PART_BYTES", 1_000)
    assert champion.score(frame).equals(whole)
    rows = champion.score(frame.to_dict("records"))
    assert [row["flag"] for row in rows] == list(whole["flag"])
    with sentences.raises(rankwright.ConfigurationError):
        champion.score_row({"prevalence": "2"}, prevalence=0.1)


@long_form
def test_a_nightly_program(client: rankwright.Client, csv: Path, tmp_path: Path) -> None:
    """That of docs/clients.md: the first night makes the champion, and a night that is repeated makes nothing anew."""
    found = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "clients.md").read_text(), re.DOTALL
    )
    (program,) = [each for each in found if "promote_if_better" in each]
    new = tmp_path / "new.csv"
    new.write_text(table(100, seed=5))
    outcomes = []
    for day in ("2026-01-30", "2026-01-31", "2026-01-31"):
        names: dict[str, Any] = {
            "client": client,
            "day": day,
            "rows": csv,
            "newest_rows": new,
            "label": "left",
        }
        exec(compile(program, "clients.md", "exec"), names)
        outcomes.append((names["outcome"].promoted, names["outcome"].comparison is None))
    assert outcomes[0] == (True, True)
    assert not outcomes[1][1]
    assert len(list(client.models.list(name="churn"))) == 2
    assert len(list(client.comparisons.list())) == 1


def test_rows_are_checked_without_being_scored(service: Service) -> None:
    secret = service.key()
    model_id = service.train(api := service.client(secret), service.upload(api))["output"]["id"]
    with rankwright.Client(service.url, secret) as ours:
        found = ours.batch_scores.check(model_id, table(30).encode(), media_type="text/csv")
        assert (found.valid, found.rows, found.ignored) == (True, 30, ["left"])
        assert ours.batch_scores.check(model_id, [{"age": 1, "income": 2, "score 1": 3}]).rows == 1
        dataset = ours.datasets[next(iter(ours.datasets.list())).id]
        assert ours.batch_scores.check(ours.models[model_id], dataset).rows is None
        with pytest.raises(rankwright.errors.Invalid) as refused:
            ours.batch_scores.check(model_id, b"age\n1\n", media_type="text/csv")
        assert "income" in str(refused.value)
        assert list(ours.batch_scores.list()) == []
        with pytest.raises(rankwright.errors.NotFound):
            ours.batch_scores.check("mdl_none", b"age\n1\n", media_type="text/csv")


def test_what_the_service_refuses_is_an_error_that_names_it(
    client: rankwright.Client, csv: Path, sentences: Sentences
) -> None:
    data = client.upload(csv, label="left")
    with pytest.raises(Invalid) as refused:
        client.train(data, "rankboost", n_rounds=0)
    assert refused.value.pointer == "/algorithm/n_rounds"
    assert refused.value.request_id is not None
    with sentences.raises(rankwright.InvalidTable):
        client.upload(csv, label="gone")
    with raises(rankwright.ConfigurationError, "table.xlsx"):
        client.upload("table.xlsx", label="y")
    with raises(rankwright.ConfigurationError, "'../keys'"):
        client.datasets.get("../keys")


def test_a_remote_ranker_in_a_pipeline_and_in_cross_validation(
    client: rankwright.Client, service: Service, csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.read_csv(csv)
    X, y = frame.drop(columns="left"), frame["left"]
    monkeypatch.setenv("RANKWRIGHT_API_KEY", service.key())  # for what is loaded from a pickle
    ranker = rankwright.RemoteRanker(client, "rankboost", n_rounds=10)
    pipeline = make_pipeline(FunctionTransformer(), ranker)
    areas = cross_val_score(pipeline, X, y, cv=2, scoring="roc_auc")
    assert (areas > 0.6).all()
    fitted = clone(ranker).fit(X.to_numpy(), y, sample_weight=np.ones(len(y)))
    assert list(fitted.classes_) == ["no", "yes"]
    assert set(fitted.predict(X.to_numpy())) <= {"no", "yes"}
    with raises(ValueError, "y", 2):
        ranker.fit(X, np.zeros(len(y)))
    loaded = pickle.loads(pickle.dumps(fitted))
    assert (loaded.decision_function(X.to_numpy()) == fitted.decision_function(X.to_numpy())).all()
    grid = GridSearchCV(ranker, {"n_rounds": [2, 5]}, cv=2, scoring="roc_auc").fit(X, y)
    assert grid.best_params_["n_rounds"] in (2, 5)
    assert "n_rounds=10" in repr(ranker)
    with raises(ValueError, "'a__b'"):
        ranker.set_params(a__b=1)
    with pytest.raises(Invalid):
        clone(ranker).set_params(no_such=1).fit(X, y)
    assert not hasattr(ranker, "predict_proba")
    evaluated = clone(ranker).set_params(validation={"method": "cross_validation", "folds": 2})
    found = evaluated.fit(X, y).predict_proba(X)
    assert found.shape == (len(y), 2)
    assert ((found >= 0) & (found <= 1)).all()
    assert list(client.datasets.list()) == []  # no fit has left its rows there


@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(1200)
@long_form
def test_what_scikit_learn_asks_of_an_estimator(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKWRIGHT_URL", service.url)
    monkeypatch.setenv("RANKWRIGHT_API_KEY", service.key())
    ranker = rankwright.RemoteRanker(algorithm="rankboost")
    with service.at_work():
        done = check_estimator(ranker, on_fail=None)
    failed = {
        each["check_name"]: repr(each["exception"]) for each in done if each["status"] == "failed"
    }
    assert failed == {}
    assert len(done) > 50


def folder_of(path: Path, *bodies: str) -> Path:
    path.mkdir()
    for number, body in enumerate(bodies):
        (path / f"part-{number}.csv").write_text(body)
    (path / "_SUCCESS").touch()
    return path


def test_a_folder_becomes_one_dataset(client: rankwright.Client, tmp_path: Path) -> None:
    """An upload that broke off goes on: what has come is not sent again, and what has changed is another upload."""
    head, *rows = table().splitlines()
    bodies = ["\n".join([head, *rows[a : a + 40], ""]) for a in (0, 40, 80)]
    folder = folder_of(tmp_path / "people", *bodies)
    other = client.uploads.open(name="people", label="left")
    client.uploads.put_part(other.id, 1, (head + "\n1,2,3,no\n").encode())  # other bytes
    begun = client.uploads.open(name="people", label="left")
    for number in (1, 3):
        client.uploads.put_part(begun.id, number, folder / f"part-{number - 1}.csv")
    seen: list[tuple[int, int | None]] = []
    dataset = client.upload(folder, label="left", progress=lambda *at: seen.append(at))
    again = client.upload(folder, label="left", name="people")
    size = sum(map(len, bodies))
    assert seen == [(len(bodies[0]) + len(bodies[1]), size)]  # only the second was sent
    assert (dataset.data.rows, dataset.data.name, dataset.data.bytes) == (120, "people", size)
    assert client.uploads.get(begun.id).dataset_id == dataset.id
    assert again.id == dataset.id  # a call that broke off while it waited
    assert [each.status for each in client.uploads.list()] == ["closed", "open"]
    client.uploads.delete(other.id)
    longer = again.add_version(folder)
    assert (longer.data.version, longer.data.rows, longer.data.parent_id) == (2, 240, again.id)
    other_rows = longer.add_version(folder, mode="replace")
    assert (other_rows.data.version, other_rows.data.rows) == (3, 120)
    (folder / "part-1.csv").write_text(bodies[1] + "no,number,at,yes,all\n")
    with raises(rankwright.InvalidTable, "part 2", "line 42"):
        client.upload(folder, label="left")


def test_a_folder_of_partitions_has_their_columns(
    client: rankwright.Client, tmp_path: Path
) -> None:
    for left, age in (("no", [1, 2, 3]), ("yes", [4, 5])):
        folder = tmp_path / "people" / f"left={left}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"age": age}), folder / "part-0.parquet")
    dataset = client.upload(tmp_path / "people", label="left", name="partitioned")
    assert (dataset.data.rows, dataset.data.positives) == (5, 2)


def test_a_partition_of_a_lake_table_is_no_table(client: rankwright.Client, tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "year=2026").mkdir()
    (tmp_path / "year=2026" / "a.csv").write_text("a,left\n1,no\n2,yes\n")
    with pytest.raises(rankwright.ConfigurationError):
        client.upload(tmp_path / "year=2026", label="left")


@pytest.mark.parametrize(
    "files",
    [
        (),
        ("a.csv", "b.parquet"),
        ("a.csv", "b.pdf"),
        ("a.csv", "b/c.csv"),
        ("a.csv", "_delta_log/0.json"),
        ("a.csv", ".hoodie/hoodie.properties"),
        ("data/a.csv", "metadata/v1.metadata.json"),
        ("x=1/a.csv",),
    ],
)
def test_a_folder_that_is_no_table(
    client: rankwright.Client, tmp_path: Path, files: tuple[str, ...], sentences: Sentences
) -> None:
    for name in files:
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_text("a,left\n1,no\n2,yes\n")
    (tmp_path / "folder").mkdir(exist_ok=True)
    with sentences.raises(rankwright.ConfigurationError):
        client.upload(tmp_path / "folder", label="left")
    assert list(client.uploads.list()) == []
