"""Raw tables through the service: categories learnt from the rows that teach, and rows scored by their words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.datasets import service as datasets
from app.datasets.description import describe
from app.datasets.matrices import Columns, read_table
from app.platform.errors import Invalid
from app.platform.tables import JobState
from app.training.multilabel import MultilabelSplitData
from app.training.preferences import PreferenceSplitData
from app.training.splits import InnerSplits, split
from core.registry import ALGORITHMS
from tests.app.training_jobs import payload_of
from tests.app.workbench import OWNER, Workbench
from tests.raw_table import raw_table
from tests.sentences import Sentences

FEATURES = ["age", "workclass", "education", "hours-per-week", "native-country"]
TAKES = [name for name, ranker in ALGORITHMS.items() if ranker().takes_categories()]
OF_PAIRS = [name for name in TAKES if hasattr(ALGORITHMS[name], "fit_pairs")]
OF_LABELS = [name for name in TAKES if ALGORITHMS[name].target == "multilabel"]
BOOSTED = {"name": "rankboost", "n_rounds": 15}


def algorithm(name: str) -> dict[str, Any]:
    """The algorithm with few rounds, where it has rounds."""
    quick = {"n_rounds": 15} if "n_rounds" in ALGORITHMS[name]().get_params() else {}
    return {"name": name} | quick


def test_what_is_unseen_is_missing(bench: Workbench) -> None:
    job = bench.work_on(bench.ready(raw_table()), name="m", algorithm=BOOSTED)
    served = bench.serve(bench.model(job))
    row = {"age": 40, "workclass": "Private", "hours-per-week": 40, "native-country": "Country-3"}
    unseen = [row | {"education": value} for value in ("Kindergarten", "?", "", None, 7, "masters")]
    scores, _, _ = served.score(served.features.matrix_of_rows(unseen))[:3]
    assert len(set(scores.tolist())) == 1
    words = [row | {"education": word} for word in ("Doctorat (é)", "11th")]
    known = served.features.matrix_of_rows(words)
    assert served.score(known)[0][0] > served.score(known)[0][1]
    tags = {served.entity_tag(served.features.matrix_of_rows([one])) for one in unseen}
    assert len(tags) == 1
    assert served.entity_tag(known[:1]) not in tags


def skewed(rows: int = 300) -> str:
    """A table whose rows have a town of their own now and then."""
    rng = np.random.default_rng(3)
    towns = [f"rare {i}" if i % 10 == 0 else f"town {rng.integers(4)}" for i in range(rows)]
    x = rng.normal(size=rows).round(3)
    lines = [f"{x[i]},{towns[i]},{int(x[i] + rng.normal() > 0)}" for i in range(rows)]
    return "x,town,y\n" + "\n".join(lines) + "\n"


def test_rows_that_judge_teach_no_category(bench: Workbench) -> None:
    dataset = bench.ready(skewed())
    model = bench.model(bench.work_on(dataset, algorithm=BOOSTED, seed=2))
    table = read_table(
        bench.blobs.path(dataset.table_key or ""), Columns(["x", "town"], "y", None, None)
    )
    train, validation = split(table, 0.25, 2)
    towns = table.categories[1]
    learnt = {towns[int(k)] for k in table.X[train, 1]}
    evaluated = {towns[int(k)] for k in table.X[validation, 1]}
    assert evaluated - learnt
    assert bench.serve(model).ranker.categories_ == (None, tuple(sorted(learnt)))
    assert model.features[1]["categories"] == sorted(learnt)[:100]


def test_a_dataset_that_cannot_judge(bench: Workbench, sentences: Sentences) -> None:
    codes = raw_table(60).replace("Private", "1").replace("Self-emp-not-inc", "2")
    dataset = bench.ready(raw_table())
    for body, given in (
        (raw_table(60), {"categorical": "age"}),
        (codes.replace("State-gov", "3"), {}),
        (raw_table(60), {"drop": "education"}),
        (raw_table(60), {"positive": "<=50K"}),
    ):
        validation = {"method": "dataset", "dataset_id": bench.ready(body, **given).id}
        with sentences.raises(Invalid) as caught:
            bench.submit(dataset, algorithm=BOOSTED, validation=validation)
        assert caught.value.errors[0]["pointer"] == "/validation/dataset_id"


def test_an_algorithm_of_numbers_alone(bench: Workbench) -> None:
    dataset = bench.ready(raw_table(60))
    for name, ranker in ALGORITHMS.items():
        if ranker.target == "binary" and name not in TAKES:
            with pytest.raises(Invalid) as caught:
                bench.submit(dataset, algorithm={"name": name})
            assert caught.value.code == "categorical_features"
            assert "'workclass', 'education', 'native-country'" in caught.value.detail
    numbers = bench.ready(raw_table(200), drop="workclass,education,native-country,name")
    for name in set(ALGORITHMS) - set(TAKES):
        if ALGORITHMS[name].target == "binary":
            bench.submit(numbers, algorithm={"name": name})


def test_the_preview_shows_words(bench: Workbench) -> None:
    rows = "".join(f"{i},{'x' * 1000}{i},{i % 2}\n" for i in range(30))
    dataset = bench.ready("n,note,y\n" + rows)
    shown = datasets.preview(bench.fetch, bench.db.reading(datasets.find, OWNER, dataset.id), 1)
    assert shown["data"] == [[0.0, "x" * 255 + "…", "0"]]  # long words are cut
    text = raw_table(40)
    dataset = bench.ready(text, drop="age")
    shown = datasets.preview(bench.fetch, bench.db.reading(datasets.find, OWNER, dataset.id), 2)
    assert shown["columns"] == [*FEATURES[1:], "name", "income"]
    for line, row in zip(text.splitlines()[1:], shown["data"], strict=False):
        _, work, education, hours, country, name, income = line.split(", ")
        assert row == [
            None if work == "?" else work,
            education,
            None if hours == "?" else float(hours),
            None if country == "?" else country,
            name,
            income,
        ]


def test_names_and_tokens_with_commas_stand_in_quotes() -> None:
    said = describe({"drop": '"a,b", c ,"say ""hi"""', "missing": ',NA,"n,a"'})
    assert said.drop == ["a,b", "c", 'say "hi"']
    assert said.missing == ["NA", "n,a"]
    assert describe({"missing": ","}).missing == []


# --- other kinds of dataset ----------------------------------------------------------------------


def items(rows: int = 80) -> tuple[str, str]:
    """Items of a colour, and pairs that say red is better than green, and that than all others."""
    rng = np.random.default_rng(5)
    colours = rng.choice(["green", "red", "blue", "grey"], rows)
    worth = {"red": 2, "green": 1}
    table = "id,x,colour\n" + "".join(
        f"item{i},{rng.normal():.3f},{colours[i] if i else 'unique'}\n" for i in range(rows)
    )
    ends = rng.integers(1, rows, (2000, 2))
    pairs = [
        f"item{a},item{b}"
        for a, b in ends.tolist()
        if worth.get(colours[a], 0) > worth.get(colours[b], 0)
    ]
    return table, "better,worse\n" + "\n".join(pairs) + "\n"


def test_items_that_teach_teach_categories(bench: Workbench) -> None:
    table, pairs = items()
    dataset = bench.ready(table, kind="preferences")
    bench.compare(dataset, pairs)
    dataset = bench.db.reading(datasets.find, OWNER, dataset.id)
    split_data = PreferenceSplitData(payload_of(bench, dataset), ["x", "colour"])
    learnt: Any = split_data.table("train")
    assert learnt.categories[1] == ("blue", "green", "grey", "red")  # no pair names the unique one
    assert np.isnan(learnt.X[0, 1])
    assert split_data.held_out.categories == learnt.categories


def test_preferences_between_coloured_items(bench: Workbench) -> None:
    table, pairs = items()
    dataset = bench.ready(table, kind="preferences")
    bench.compare(dataset, pairs)
    for name in OF_PAIRS:
        job = bench.work_on(dataset, algorithm=algorithm(name))
        assert job.state == JobState.SUCCEEDED, job.error
        served = bench.serve(bench.model(job))
        rows = [{"x": 0, "colour": colour} for colour in ("red", "green", "blue", "unseen")]
        scores = served.score(served.features.matrix_of_rows(rows))[0]
        assert scores[0] > scores[1] > scores[2]


def coloured(rows: int = 300) -> str:
    """A table with two labels that a colour tells, and one row of a colour of its own."""
    rng = np.random.default_rng(6)
    colours = rng.choice(["green", "red", "blue", "grey"], rows)
    return "x,colour,warm,bright\n" + "".join(
        f"{rng.normal():.3f},{colours[i] if i else 'unique'},"
        f"{int(colours[i] == 'red') if i % 9 else 1},{int(colours[i] in ('red', 'green'))}\n"
        for i in range(rows)
    )


def test_rows_with_several_labels_teach_categories(bench: Workbench) -> None:
    dataset = bench.ready(coloured(), kind="multilabel", labels="warm,bright")
    split_data = MultilabelSplitData(payload_of(bench, dataset), ["x", "colour"])
    train, held = split_data.train.table, split_data.held_out
    assert train.categories == held.categories
    assert train.categories[1] is not None
    inner = split_data.inner(InnerSplits(1, 0.25), 0, 1)
    assert set(inner.train.table.categories[1] or ()) <= set(train.categories[1])


def test_several_labels_of_coloured_rows(bench: Workbench) -> None:
    dataset = bench.ready(coloured(), kind="multilabel", labels="warm,bright")
    for name in OF_LABELS:
        job = bench.work_on(dataset, algorithm=algorithm(name))
        assert job.state == JobState.SUCCEEDED, job.error
        served = bench.serve(bench.model(job))
        rows = [{"x": 0, "colour": colour} for colour in ("red", "green", "blue")]
        scores = served.score(served.features.matrix_of_rows(rows))[0]
        assert scores[0, 0] > scores[1, 0]
        assert min(scores[0, 1], scores[1, 1]) > scores[2, 1]
