"""Words of a report that no reader may take for markup, and the section of what `auto` has tried."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from app.platform.tables import Model, ModelBaselines, ModelLeaderboard
from app.reports import document
from app.reports import document as words
from app.reports import sections as rivals
from app.reports.document import Document, Items, Paragraph, Section, Signatures, Table
from app.reports.writers import to_html, to_markdown
from tests.sentences import Sentences


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("plain words, 0.95 (0.9–0.97)", "plain words, 0.95 (0.9–0.97)"),
        ("mean_radius", "mean_radius"),
        ("_emphasis_", r"\_emphasis\_"),
        ("1. list", r"1\. list"),
        ("12) list", r"12\) list"),
        ("- list", r"\- list"),
        ("-1.5", "-1.5"),
        ("--- ", r"\---"),
        ("# heading", r"\# heading"),
        ("> quote", r"\> quote"),
        ("a|b", r"a\|b"),
        ("[a](b)", r"\[a\](b)"),
        ("<b>&amp;", r"\<b>\&amp;"),
        ("`code` *bold* \\", r"\`code\` \*bold\* \\"),
        ("two\n\n# lines", "two # lines"),
    ],
)
def test_markdown_is_words(given: str, written: str) -> None:
    text = to_markdown(Document("t", "s", [Section("x", [Paragraph(given), Items([given])])]))
    assert text.split("\n\n") == ["# t", "s", "## x", written, f"- {written}\n"]


def test_what_xml_cannot_hold_is_replaced() -> None:
    document = Document(
        "a\x00b", "c\x1bd", [Section("\ud800", [Table(("\x07",), [["\x08"]])])], footer="\x00"
    )
    page = to_html(document).html
    assert page.encode()
    for baseline in "\x00\x1b\x07\x08":
        assert baseline not in page


def test_a_footer_cannot_end_the_style_sheet() -> None:
    footer = """a"b\\"; } </style><script>'\n@import url(x)"""
    page, policy = to_html(Document("t", "s", [], footer=footer))
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
    assert f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" in policy
    (content,) = re.findall(r'@bottom-left { content: "([^"\n]*)"; } }\n$', style)
    read = re.sub(r"\\([0-9a-f]+) ", lambda found: chr(int(found[1], 16)), content)
    assert read == footer


def test_the_roles_that_sign() -> None:
    document = Document("t", "s", [Section("x", [Signatures(("Validator", "Approver"))])])
    assert "| Validator |  |  |  |" in to_markdown(document)
    assert to_html(document).html.count("<td></td>") == 2 * 3


def test_what_auto_has_tried(sentences: Sentences) -> None:
    tried = {
        "algorithm": "rankboost",
        "parameters": {"n_rounds": 50},
        "value": 0.9,
        "auc": 0.91,
        "rows": 1.0,
        "seconds": 1.5,
        "state": "chosen",
        "reason": "the best alone",
    }
    failed = tried | dict.fromkeys(("value", "auc")) | {"state": "failed"}
    found = ModelLeaderboard(
        budget_seconds=10.0,
        seconds=8.0,
        candidates=[tried, failed] + [tried | {"rows": 0.25}] * 60,
        members=[{"algorithm": "rankboost", "parameters": {"n_rounds": 50}, "weight": 1.0}],
        notes=["so it is"],
    )
    first, members, table, note = rivals.leaderboard(found)
    assert isinstance(first, Paragraph)
    sentences(first.words)
    assert isinstance(members, Items)
    for each in members.items:
        sentences(each)
    assert isinstance(table, document.Table)
    assert table.rows[0] == [
        "rankboost: n_rounds = 50",
        "0.9000",
        "1.5 s",
        "chosen: the best alone",
    ]
    assert table.rows[1][1] == "—"
    sentences(table.rows[2][2])
    assert len(table.rows) == len(found.candidates)
    assert len(members.items) == len(found.members)
    assert isinstance(note, Paragraph)
    assert note.words.endswith("so it is")


def model_of(beats: bool | None, algorithm: str = "rankboost") -> Model:
    return Model(algorithm=algorithm, parameters={}, beats_baselines=beats)


def test_a_model_that_is_itself_a_baseline_has_no_verdict_on_baselines() -> None:
    found = ModelBaselines(level=0.95, baselines=[], windows=[], decided_on={}, skipped=None)
    words = {
        rivals.baselines(found, model_of(False, algorithm))[0].words  # type: ignore[union-attr]
        for algorithm in ("logistic", "auc_svm")
    }
    assert len(words) == 2
    assert not any("significant" in each for each in words)


@pytest.mark.parametrize(
    ("beats", "more", "p_value", "said"),
    [
        (True, 0.1, 0.03, "significantly better than the baseline"),
        (False, 0.1, 0.3, "no significant improvement"),
        (False, -0.1, 0.03, "columns ranks significantly better than the model."),
    ],
)
def test_the_verdict_on_the_controls(beats: bool, more: float, p_value: float, said: str) -> None:
    interval = {"value": 0.9, "low": 0.8, "high": 0.95}
    difference = interval | {"value": more, "p_value": 1e-9, "adjusted_p_value": p_value}
    baseline = {"algorithm": "logistic", "area": interval, "difference": difference}
    window = {"fpr_min": 0.0, "fpr_max": 0.05, "chosen": interval, "baselines": [baseline]}
    failed = {"algorithm": "auc_svm", "failed": "no such luck"}
    found = ModelBaselines(
        level=0.95,
        baselines=[failed, {"algorithm": "logistic", "failed": None, "rows": 90, "of_rows": 90}],
        windows=[window],
        decided_on={"fpr_min": 0.0, "fpr_max": 0.05},
        skipped=None,
    )
    verdict, table, failures = rivals.baselines(found, model_of(beats))
    assert isinstance(verdict, Paragraph)
    assert said in verdict.words
    assert isinstance(table, Table)
    assert table.rows[1][-2:] == ["< 0.0001", f"{p_value:.4f}"]
    assert isinstance(failures, Items)
    (failure,) = failures.items
    assert failure.startswith("linear SVM for the AUC ")
    assert failure.endswith(": no such luck")


def test_a_model_that_misranks_no_pair_has_no_p_values() -> None:
    best = {"value": 1.0, "low": 0.99, "high": 1.0}
    difference = {"value": 0.0, "low": 0.0, "high": 0.0, "p_value": 1.0, "adjusted_p_value": 1.0}
    window = {
        "fpr_min": 0.0,
        "fpr_max": 1.0,
        "chosen": best,
        "baselines": [{"algorithm": "logistic", "area": best, "difference": difference}],
    }
    fitted = {"algorithm": "logistic", "failed": None, "rows": 90, "of_rows": 90}
    found = ModelBaselines(
        level=0.95,
        baselines=[fitted],
        windows=[window],
        decided_on={"fpr_min": 0.0, "fpr_max": 1.0},
        skipped=None,
    )
    said, table = rivals.baselines(found, model_of(False))
    assert isinstance(said, Paragraph)
    assert "significant" not in said.words
    assert isinstance(table, Table)
    assert table.rows[1][-2:] == ["—", "—"]


def test_skipped_controls_say_why() -> None:
    found = ModelBaselines(
        level=0.95, baselines=[], windows=[], decided_on={}, skipped="the table is too large"
    )
    (only,) = rivals.baselines(found, model_of(None))
    assert isinstance(only, Paragraph)
    assert only.words.endswith(": the table is too large.")


def test_what_is_not_finite_is_no_figure() -> None:
    assert words.interval({"value": math.nan, "low": 0.0, "high": 1.0}) == "— (0.0000–1.0000)"
    assert words.interval({"value": None, "low": None, "high": None}) == "—"
    assert [words.score(end) for end in (math.inf, -math.inf, 0.125)] == ["∞", "−∞", "0.125"]
