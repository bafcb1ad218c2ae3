"""From a training job to margins in SQL and the bounds read from them, on SQLite and on PostgreSQL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.datasets.matrices import Columns, Table, read_table
from app.models import margins
from app.models import repository as model_rows
from app.platform.errors import NotFound
from app.platform.tables import Dataset, Job, Model
from app.training.splits import split
from core.metrics import misrank_fraction
from core.metrics.groups import group_by_score
from core.metrics.margins import log_pair_loss, smooth_margin
from tests.app.preference_data import draw_pairs, pairs_csv, upload_items
from tests.app.workbench import OWNER, Workbench, breast_cancer
from tests.long_form import long_form, rest
from tests.raising import raises
from tests.sentences import Sentences


def rows(n_rows: int, seed: int, *, boolean: bool = False, weight: str = "") -> str:
    """Return a CSV of two features and a label; with `weight`, of a column w by that rule."""
    rng = np.random.default_rng(seed)
    lines = ["a,b,y" + (",w" if weight else "")]
    for _ in range(n_rows):
        a, b = (bool(rng.random() < 0.5) if boolean else round(rng.normal(), 2) for _ in "ab")
        y = int(a + b + rng.normal() > 0)
        w = {"": "", "class": f",{2 + y}", "row": f",{rng.integers(1, 4)}"}[weight]
        shown = (str(value).lower() if boolean else str(value) for value in (a, b))
        lines.append(",".join([*shown, str(y)]) + w)
    return "\n".join([*lines, ""])


def read(
    bench: Workbench, job: Job, *, theta: float = 0.1, delta: float = 0.05
) -> margins.MarginArrays:
    """Read the margins of a job's model."""
    return bench.db.reading(
        margins.read_margins, OWNER, bench.model(job).id, theta=theta, delta=delta
    )


def training_part(bench: Workbench, dataset: Dataset, model: Model, label: str) -> Table:
    """Return the rows that the model was fitted on."""
    names = [feature["name"] for feature in model.features]
    assert dataset.table_key
    table = read_table(bench.blobs.path(dataset.table_key), Columns(names, label, None, None))
    return table.take(split(table, 0.25, seed=0)[0])


def test_margins_are_those_of_the_artifact_on_the_training_part(bench: Workbench) -> None:
    dataset = bench.ready(breast_cancer(), positive="malignant")
    job = bench.work_on(dataset, algorithm={"name": "rankboost", "n_rounds": 40})
    found = read(bench, job)
    model = bench.model(job)
    ranker = bench.ranker(model)
    train = training_part(bench, dataset, model, "diagnosis")
    scores = ranker.score_rows(np.ascontiguousarray(train.X))
    alpha = ranker.rounds_["alpha"]
    assert found.row.l1_norm == pytest.approx(alpha.sum())
    pairs = (scores[train.y == 1][:, None] - scores[train.y == 0]) / alpha.sum()
    assert found.spread.least == pytest.approx(pairs.min())
    assert found.spread.greatest == pytest.approx(pairs.max())
    for theta, fraction in zip(found.spread.thetas, found.spread.fractions, strict=True):
        # A pair on the very edge may fall either way by rounding.
        low, high = ((pairs <= theta + slack).mean() for slack in (-1e-12, 1e-12))
        assert low - 1e-12 <= fraction <= high + 1e-12
    loss = np.exp(-pairs * alpha.sum()).sum()
    assert found.row.smooth_margin == pytest.approx(-np.log(loss) / alpha.sum())
    assert found.row.smooth_margin < found.spread.least
    assert found.spread.fraction_within(0.0) == pytest.approx(misrank_fraction(train.y, scores))
    assert np.allclose(found.edges + found.tied, 1 - 2 * found.d_minus)
    assert len(found.progress) == 40
    assert bench.left_over() == []


def test_bounds_say_where_they_do_not_apply(bench: Workbench) -> None:
    job = bench.work_on(bench.ready(rows(200, 0)))
    by_name = {bound.name: bound for bound in read(bench, job).bounds}
    assert list(by_name) == ["theorem_2", "corollary_4", "equation_2", "corollary_5", "held_out"]
    for name in ("theorem_2", "corollary_4", "equation_2", "corollary_5"):
        assert not by_name[name].applies
        assert any("bin edges" in reason for reason in by_name[name].reasons)
        assert by_name[name].vacuous
    held_out = by_name["held_out"]
    assert held_out.applies
    with bench.db.read() as session:
        found = model_rows.find_roc_metrics(session, bench.model(job).id, "validation")
    assert found is not None
    misranked = 1 - found["auc"]["value"] + found["ties"] / 2
    assert held_out.margin_fraction == pytest.approx(misranked)
    assert held_out.terms["m"] == 50


def test_boolean_features_are_weak_rankers_fixed_beforehand(bench: Workbench) -> None:
    found = read(bench, bench.work_on(bench.ready(rows(200, 1, boolean=True))))
    assert (found.row.weak_rankers, found.row.depends_on_data) == (12, None)
    assert [bound.name for bound in found.bounds if bound.applies] == [
        "theorem_2",
        "corollary_4",
        "corollary_5",
        "held_out",
    ]  # equation 2 asks for more rows


@pytest.mark.parametrize("name", ["adaboost", *rest("rankboost")])
def test_losses_round_by_round_are_those_of_the_scores(bench: Workbench, name: str) -> None:
    dataset = bench.ready(rows(200, 3, weight="row"), weight="w")
    job = bench.work_on(dataset, algorithm={"name": name, "n_rounds": 12})
    model = bench.model(job)
    ranker = bench.ranker(model)
    found = margins.losses_of(ranker, read(bench, job).row)
    assert dataset.table_key
    table = read_table(bench.blobs.path(dataset.table_key), Columns(["a", "b"], "y", "w", None))
    train = table.take(split(table, 0.25, seed=0)[0])
    assert train.weight is not None
    norms = np.cumsum(ranker.combination().weights)
    positive = train.y == 1
    for t, scores in enumerate(ranker.staged_decision_function(train.X)):
        f_plus = (train.weight * np.exp(-scores))[positive].sum()
        f_minus = (train.weight * np.exp(scores))[~positive].sum()
        assert found.f[t] == pytest.approx(f_plus + f_minus)
        assert found.f_skew[t] == pytest.approx(f_plus - f_minus, abs=1e-6)
        assert found.f_tilde[t] == pytest.approx(f_plus * f_minus)
        smooth = smooth_margin(
            log_pair_loss(group_by_score(train.y, scores, train.weight)), norms[t]
        )
        assert found.smooth_margin[t] == pytest.approx(smooth)


def test_what_was_held_out_of_a_fit_leaves_no_smooth_margin_by_round(bench: Workbench) -> None:
    algorithm = {"name": "rankboost", "n_rounds": 12, "early_stopping_rounds": 3}
    job = bench.work_on(bench.ready(rows(200, 3)), algorithm=algorithm)
    model = bench.model(job)
    ranker = bench.ranker(model)
    found = margins.losses_of(ranker, read(bench, job).row)
    assert np.isnan(found.smooth_margin).all()
    assert len(found.smooth_margin) == len(found.f) > 0


def test_every_set_of_categories_is_a_weak_ranker(bench: Workbench, sentences: Sentences) -> None:
    rng = np.random.default_rng(2)
    lines = ["colour,a,b,c,y"]
    for _ in range(200):
        colour = str(rng.choice(["red", "green", "blue", "grey"]))
        answers = rng.random(3) < 0.5
        y = int((colour != "green") + answers.sum() + rng.random() > 2.2)
        lines.append(",".join([colour, *map(str, answers), str(y)]).lower())
    found = read(bench, bench.work_on(bench.ready("\n".join([*lines, ""]))))
    assert found.row.weak_rankers == (2**5 - 2) + 3 * 6
    assert found.row.depends_on_data is not None
    sentences(found.row.depends_on_data)
    assert [bound.name for bound in found.bounds if bound.applies] == ["held_out"]
    assert found.spread.least <= found.row.best["rho"] + 1e-9


def test_columns_of_0_and_1_are_weak_rankers_themselves(bench: Workbench) -> None:
    dataset = bench.ready(rows(200, 1, boolean=True))
    for name in ("rankboost", "coordinate_rankboost", "smooth_margin_rank"):
        algorithm = {"name": name, "weak_ranker": "column", "n_rounds": 10}
        found = read(bench, bench.work_on(dataset, algorithm=algorithm))
        assert (found.row.weak_rankers, found.row.depends_on_data) == (4, None)
        assert found.spread.least <= found.row.best["rho"] + 1e-9
    algorithm = {"name": "rankboost", "weak_ranker": "column", "n_rounds": 5}
    with raises(NotFound, "rankboost"):  # of columns of other numbers
        read(bench, bench.work_on(bench.ready(rows(60, 1)), algorithm=algorithm))


@pytest.mark.parametrize("weighted", [False, True])
def test_margins_of_listed_pairs(bench: Workbench, weighted: bool) -> None:
    dataset, X, worth = upload_items(bench, 40)
    listed = draw_pairs(worth, 300)
    weights = np.random.default_rng(0).integers(1, 4, 300).astype(float) if weighted else None
    bench.compare(dataset, pairs_csv(listed, None if weights is None else weights.tolist()))
    job = bench.work_on(
        dataset,
        algorithm={"name": "rankboost", "n_rounds": 20},
        validation={"method": "none"},
    )
    found = read(bench, job)
    scores = bench.ranker(bench.model(job)).score_rows(X)
    differences = np.array([scores[i] - scores[k] for i, k in listed])
    pair_margins = differences / found.row.l1_norm
    weights = np.ones(300) if weights is None else weights
    assert found.spread.least == pytest.approx(pair_margins.min())
    misranked = weights[differences <= 0].sum() / weights.sum()
    assert found.spread.fraction_within(0.0) == pytest.approx(misranked)
    loss = (weights * np.exp(-differences)).sum()
    assert found.row.smooth_margin == pytest.approx(-np.log(loss) / found.row.l1_norm)
    assert len(found.progress) == 20
    assert [bound.name for bound in found.bounds][-1] == "corollary_5"
    for bound in found.bounds:
        assert any("were listed" in reason for reason in bound.reasons)
        assert bound.terms["m"] == len({item for pair in listed for item in pair})


@pytest.mark.parametrize(("weight", "weighted"), [("row", True), *rest(("class", False))])
def test_only_weights_that_differ_within_a_class_matter(
    bench: Workbench, weight: str, weighted: bool
) -> None:
    dataset = bench.ready(rows(200, 3, boolean=True, weight=weight), weight="w")
    bounds = read(bench, bench.work_on(dataset)).bounds
    told = {any("weights" in reason for reason in bound.reasons) for bound in bounds}
    assert told == {weighted}


@long_form
def test_the_best_margin_where_the_programme_is_small(bench: Workbench) -> None:
    dataset = bench.ready(rows(40, 4))
    found = read(bench, bench.work_on(dataset))
    assert found.spread.least <= found.row.best["rho"] + 1e-9
    assert found.row.best["margin"] == pytest.approx(found.row.best["edge"], abs=1e-9)
    assert found.short_by == found.row.best["rho"] - found.spread.least
    assert read(bench, bench.work_on(bench.ready(breast_cancer()))).short_by is None


def test_weights_of_zero_do_not_count(bench: Workbench) -> None:
    body = rows(40, 5)
    head, *lines = body.splitlines()
    weighted = "\n".join(
        [f"{head},w", *(f"{line},1" for line in lines), "9.5,-9.5,0,0", "-9.5,9.5,1,0", ""]
    )
    none: dict[str, Any] = {"validation": {"method": "none"}}
    plain = read(bench, bench.work_on(bench.ready(body), **none))
    with_zeros = read(bench, bench.work_on(bench.ready(weighted, weight="w"), **none))
    assert np.array_equal(plain.spread.thetas, with_zeros.spread.thetas)
    assert np.allclose(plain.spread.fractions, with_zeros.spread.fractions, atol=1e-12)
    assert plain.row.smooth_margin == pytest.approx(with_zeros.row.smooth_margin)
    assert plain.row.best == pytest.approx(with_zeros.row.best)
