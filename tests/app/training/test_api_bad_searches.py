"""Bad validations, searches and budgets: each a problem with code, rule and value, and nothing half-made is left."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from live_service import Service
from refusals import job, refused

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def grid(space: Any) -> dict[str, Any]:
    return {"method": "grid", "space": space}


@pytest.fixture
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


@pytest.mark.parametrize(
    ("changes", "code", "pointer", "words"),
    [
        (
            {"validation": {"method": "luck"}},
            "unsupported",
            "/validation/method",
            ["holdout, cross_validation, dataset, none", "'luck'"],
        ),
        *[
            (
                {"validation": {"method": "cross_validation"} | wrong},
                "invalid",
                f"/validation/{next(iter(wrong))}",
                words,
            )
            for wrong, words in (
                ({"folds": 1}, ["folds must be greater than or equal to 2, got 1"]),
                ({"folds": 21}, ["folds must be less than or equal to 20, got 21"]),
                ({"repeats": 0}, ["repeats must be greater than or equal to 1, got 0"]),
                ({"repeats": 2, "time_column": "a"}, ["repeats must be 1 with a time_column"]),
                ({"time_column": "nowhere"}, ["has no column 'nowhere'"]),
                ({"time_column": "left"}, ["'left' is the label, of type"]),
                ({"fraction": 0.2}, ["fraction is not known here"]),
            )
        ],
        (
            {"validation": {"method": "holdout", "time_column": 7}},
            "invalid",
            "/validation/time_column",
            ["must be a valid string"],
        ),
        ({"controls": "some"}, "invalid", "/controls", ["controls must be"]),
        (
            {"validation": {"method": "holdout", "fraction": 1.0}},
            "invalid",
            "/validation/fraction",
            ["fraction must be less than 1, got 1.0"],
        ),
        (
            {"validation": {"method": "dataset"}},
            "invalid",
            "/validation/dataset_id",
            ["dataset_id is required"],
        ),
        (
            {"search": {"method": "luck"}},
            "unsupported",
            "/search/method",
            ["search.method must be one of grid, random, halving, got 'luck'"],
        ),
        ({"search": {"method": "grid"}}, "invalid", "/search/space", ["space is required"]),
        ({"search": {}}, "invalid", "/search", ["'method'"]),
        ({"search": []}, "invalid", "/search", ["search"]),
        (
            {"search": grid({"n_rounds": [5, 6]}) | {"fraction": 1}},
            "invalid",
            "/search/fraction",
            ["fraction must be less than 1, got 1"],
        ),
        ({"search": grid({"n_rounds": 5})}, "invalid", "/search/space/n_rounds", ["list"]),
        ({"search": grid([])}, "invalid", "/search/space", ["space"]),
        ({"search": grid({})}, "invalid_parameter", "/search/space", ["space must hold a list"]),
        (
            {"search": grid({"x": [1]})},
            "invalid_parameter",
            "/search/space/x/0",
            ["has no parameter 'x'"],
        ),
        (
            {"search": grid({"fpr_max": [0.1]}), "algorithm": {"name": "pauc_svm"}},
            "invalid_parameter",
            "/search/space/fpr_max",
            ["fpr_max comes from the job's 'objective'; leave it out of the search"],
        ),
        (
            {"search": grid({"n_rounds": []})},
            "invalid_parameter",
            "/search/space/n_rounds",
            ["must hold 1 to 100 values, got 0"],
        ),
        (
            {"search": grid({"n_rounds": list(range(1, 102))})},
            "invalid_parameter",
            "/search/space/n_rounds",
            ["must hold 1 to 100 values, got 101"],
        ),
        (
            {"search": grid({"max_bins": list(range(2, 90)), "max_depth": list(range(1, 51))})},
            "invalid_parameter",
            "/search",
            ["a grid must have at most 1000 combinations, got 4400"],
        ),
        (
            {
                "search": grid({"max_bins": list(range(2, 52)), "max_depth": [3, 4]})
                | {"folds": 5},
                "validation": {"method": "cross_validation", "folds": 20},
            },
            "invalid",
            "/search",
            ["a job may try at most 10,000 fits, these are 10,500"],
        ),
        (
            {"search": grid({"n_rounds": [5]}) | {"folds": 1}},
            "invalid",
            "/search/folds",
            ["folds must be greater than or equal to 2, got 1"],
        ),
        (
            {"search": grid({"n_rounds": [5]}) | {"n_candidates": 3}},
            "invalid",
            "/search/n_candidates",
            ["n_candidates is not known here"],
        ),
        *[
            (
                {"search": {"method": "random", "space": {"subsample": wrong}}},
                "invalid_parameter",
                f"/search/space/subsample{pointer}",
                words,
            )
            for wrong, pointer, words in (
                (0.5, "", ["subsample must be a list of values or a range, got 0.5"]),
                ({"low": 0.1}, "/high", ["high must be a finite number, got None"]),
                ({"low": 0.1, "high": 10**400}, "/high", ["high must be a finite number"]),
                ({"low": 0.5, "high": 0.1}, "", ["greater than low (0.5), got 0.1"]),
                ({"low": 0.1, "high": 1, "log": 1}, "/log", ["log must be true or false, got 1"]),
                ({"low": -1, "high": 1}, "/low", ["subsample must be"]),
                ({"low": 0.1, "high": 1, "step": 2}, "/step", ["a range has low, high"]),
            )
        ],
        (
            {"search": {"method": "halving", "space": {"subsample": [0.5]}, "n_candidates": 1001}},
            "invalid",
            "/search/n_candidates",
            ["less than or equal to 1000, got 1001"],
        ),
        (
            {"search": grid({"n_rounds": [5, 6, 5]})},
            "invalid_parameter",
            "/search/space/n_rounds/2",
            ["must hold each value once, 5 comes again"],
        ),
        *[
            (
                {"search": grid({"n_rounds": [5, wrong]})},
                "invalid_parameter",
                "/search/space/n_rounds/1",
                ["n_rounds must be"],
            )
            for wrong in (0, -1, 100_001, 10**400, 1.5, True, None, "6", [6], {"a": 6}, {})
        ],
        (
            {"algorithm": {"name": "logistic", "C": 10**400}},
            "invalid_parameter",
            "/algorithm/C",
            ["C must be a finite number"],
        ),
        *[
            (
                {"algorithm": {"name": "pauc_svm"}, "search": grid({"C": [5, wrong]})},
                "invalid_parameter",
                "/search/space/C/1",
                ["C must be"],
            )
            for wrong in (0, -1, 1e7, 10**400, True, None, "auto", "6", [6], {})
        ],
        (
            {"algorithm": {"name": "auc_svm"}, "search": grid({"C": [1, 2, 1]})},
            "invalid_parameter",
            "/search/space/C/2",
            ["must hold each value once, 1 comes again"],
        ),
        (
            {"algorithm": {"name": "logistic"}, "search": grid({"n_rounds": [1, 2]})},
            "invalid_parameter",
            "/search/space/n_rounds/0",
            ["has no parameter 'n_rounds'"],
        ),
        (
            {"algorithm": {"name": "pauc_svm", "C": 1}, "search": grid({"C": [1, 2]})},
            "invalid_parameter",
            "/algorithm/C",
            ["C comes from the search"],
        ),
        (
            {
                "algorithm": {"name": "rankboost", "n_rounds": 5},
                "search": grid({"n_rounds": [5, 6]}),
            },
            "invalid_parameter",
            "/algorithm/n_rounds",
            ["n_rounds comes from the search"],
        ),
        (
            {
                "algorithm": {"name": "rankboost", "early_stopping_rounds": 5},
                "search": grid({"n_rounds": [5, 6]}),
            },
            "invalid_parameter",
            "/search/space/n_rounds",
            ["early_stopping_rounds must be None where n_rounds is searched"],
        ),
        (
            {"algorithm": {"name": "auto"}, "search": grid({"n_rounds": [5, 6]})},
            "invalid",
            "/search",
            ["auto searches by itself: leave search out"],
        ),
        (
            {"algorithm": {"name": "auto", "budget_seconds": 61}, "timeout_seconds": 60},
            "invalid_parameter",
            "/algorithm/budget_seconds",
            ["must be a number above 0 and at most 60, got 61"],
        ),
        (
            {"algorithm": {"name": "auto", "n/a": 61}},
            "invalid_parameter",
            "/algorithm/n~1a",
            ["auto has no parameter 'n/a'"],
        ),
    ],
)
def test_jobs(
    client: httpx.Client,
    dataset_id: str,
    changes: dict[str, Any],
    code: str,
    pointer: str,
    words: list[str],
) -> None:
    for address in ("/v1/jobs", "/v1/jobs?validate=true"):
        answer = client.post(address, json=job(dataset_id, **changes))
        problem = refused(answer, 422, code, *words)
        assert problem["errors"][0]["pointer"] == pointer
