"""Adverse-action letters: the reasons for a row's score in the paragraphs that the reason codes define."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.http.schemas import ModelId, Resource
from app.models import letters as templates
from app.models import reason_codes
from app.models import service as models
from app.platform.documents import StoredReasonEntry
from app.platform.errors import Invalid
from app.platform.sql import Reading, Session
from app.scoring import reasons
from app.scoring.json_rows import JsonRows
from app.scoring.reasons import MAX_REASONS, RAISES, Reasoner, ReasonOptions, spell_value
from app.scoring.schemas import RowIdValue
from app.scoring.scorecard import LOG_ODDS
from app.scoring.service import Served
from core.linear.points import PointsScale

if TYPE_CHECKING:
    from core.base.ranker import Floats

MAX_ERRORS = 100
"""Rows without a letter that an error lists."""
LEAST_SHARE = 0.05
"""Of what all reasons add to a score: a letter states no smaller reason."""


class LetterReason(Resource):
    """A reason in a letter."""

    code: str | None
    """Reason code. Null if no entry covers the feature."""
    features: list[str]
    """Features of the reason."""
    contribution: float
    """Amount added to the score relative to the reference."""
    share: float
    """Fraction of what all reasons, at most 20, add to the score."""
    points_lost: float | None
    """The same in points. Null for a model whose scores are not log odds."""
    has_template: bool
    """Whether the reason code has a letter. If not, the paragraph is the text of the reason."""
    paragraph: str
    """The paragraph, as plain text."""


class Letter(Resource):
    """The letter of a row."""

    id: RowIdValue
    score: float
    """Score of the row."""
    points: float | None
    """Points of the row, as on the scorecard. Null for a model whose scores are not log odds."""
    reasons: list[LetterReason]
    """At most as many reasons as requested, the largest contribution first, without those whose share is below
    `least_share`."""
    text: str
    """The paragraphs, separated by empty lines, as plain text. Escape it before you put it into HTML. Paragraphs that
    occur twice are written once."""


class LettersAnswer(Resource):
    """The letters of rows."""

    model_id: ModelId
    revision: int | None
    """Revision of the reason codes. Null in a preview, and if the name has none. The paragraphs are generic without
    codes."""
    reference_score: float
    """Score of the reference."""
    cutoff_points: float | None
    """Points at the cutoff of the alias: rows with at most these are flagged. Null unless the request names an alias
    with a cutoff. Null like `points`, too."""
    least_share: float
    """Reasons with a smaller share are left out."""
    letters: list[Letter]
    """The letters, in the order of the rows."""


@dataclass(frozen=True)
class LetterWriter:
    """Writes the letters of rows."""

    served: Served
    algorithm: str
    reasoner: Reasoner
    entries: Sequence[StoredReasonEntry]
    """The reason codes that the reasoner uses."""
    n: int
    """Most reasons of a letter."""
    scale: PointsScale

    def write(self, rows: JsonRows) -> LettersAnswer:
        """Raises Invalid if a letter needs points that the model does not have."""
        return _write_letters(self, rows)


def prepare(
    reading: Reading,
    owner: str,
    served: Served,
    n: int,
    reference: str,
    scale: PointsScale,
    given: Sequence[StoredReasonEntry] | None = None,
) -> LetterWriter:
    """Write up to `n` reasons with the `given` reason codes, or the stored ones. Raises Invalid for unsupported reasons
    or unfit codes.
    """

    def check(session: Session) -> None:
        model = models.find(session, owner, served.model_id)
        reason_codes.check(given or [], model.features, f"{model.name}:{model.version}")

    if given is not None:
        reading(check)
    options = ReasonOptions(MAX_REASONS, reference, RAISES)
    reasoner = reasons.prepare(reading, owner, served, options, given)

    def read_entries(session: Session) -> tuple[str, Sequence[StoredReasonEntry]]:
        model = models.find(session, owner, served.model_id)
        if given is not None:
            return model.algorithm, given
        revision = reasoner.described[
            "dictionary"
        ]  # the codes of the reasons, if they change meanwhile
        if revision is None:
            return model.algorithm, []
        return model.algorithm, reason_codes.read(session, owner, model.name, revision).row.entries

    algorithm, entries = reading(read_entries)
    return LetterWriter(served, algorithm, reasoner, entries, n, scale)


def _check_points(
    entries: Sequence[StoredReasonEntry], algorithm: str, cutoff: float | None
) -> None:
    """Raise Invalid for letters with points that the model or the request does not have."""
    for each in entries:
        template = each.get("letter")
        if template and algorithm not in LOG_ODDS and templates.uses(template, *templates.POINTS):
            raise Invalid(
                f"the letter of code {each['code']} has points, but scores of the algorithm {algorithm} are not log "
                f"odds: use {' or '.join(LOG_ODDS)}, or a letter without points",
                code="no_points",
            )
        if template and cutoff is None and templates.uses(template, "cutoff_points"):
            raise Invalid(
                f"the letter of code {each['code']} has {{cutoff_points}}, but the request names no alias with a "
                "cutoff",
                code="no_points",
            )


def _check_flagged(scores: Floats, threshold: float | None) -> None:
    """Raise Invalid for rows below the cutoff of the alias: their decision is favourable, and no letter explains it."""
    if threshold is None:
        return
    errors = []
    for i in np.flatnonzero(scores < threshold)[:MAX_ERRORS].tolist():
        detail = (
            f"row {i + 1} has the score {scores[i]:.6g}, below the cutoff {threshold:.6g} of the alias: it is not "
            "flagged, so it gets no adverse-action letter"
        )
        errors.append({"pointer": f"/rows/{i}", "detail": detail})
    if errors:
        raise Invalid(errors[0]["detail"], code="row_not_flagged", errors=errors)


def _write_letters(of: LetterWriter, rows: JsonRows) -> LettersAnswer:
    served, scale = of.served, of.scale
    by_code = {each["code"]: letter for each in of.entries if (letter := each.get("letter"))}
    has_points = of.algorithm in LOG_ODDS
    cutoff = (
        scale.total(served.flag_threshold)
        if has_points and served.flag_threshold is not None
        else None
    )
    _check_points(of.entries, of.algorithm, cutoff)
    X = rows.X
    scores = served.ranker.score_rows(X)
    _check_flagged(scores, served.flag_threshold)
    found = of.reasoner.of(X, scores)
    ids = [None] * len(X) if rows.ids is None else rows.ids.to_pylist()
    names, categories = list(served.features.names), served.ranker.categories_
    answers = []
    for i, row in enumerate(found.as_json()):
        stated: list[LetterReason] = []
        total = math.fsum(each["contribution"] for each in row)
        points = scale.total(float(scores[i])) if has_points else None
        for each in row[: of.n]:
            share = each["contribution"] / total
            if share < LEAST_SHARE:
                break
            template = by_code.get(each["code"])
            lost = each["contribution"] * scale.factor if has_points else None
            places = [names.index(name) for name in each["columns"]]
            values = {
                "feature": ", ".join(each["columns"]),
                "value": ", ".join(
                    spell_value(names[j], categories[j], served.features.types[j], X[i, j])
                    or "missing"
                    for j in places
                ),
                "points": "" if points is None else str(round(points)),
                "points_lost": "" if lost is None else str(round(lost)),
                "cutoff_points": "" if cutoff is None else str(round(cutoff)),
                "text": each["text"],
                "code": each["code"] or "",
            }
            stated.append(
                LetterReason(
                    code=each["code"],
                    features=each["columns"],
                    contribution=each["contribution"],
                    share=share,
                    points_lost=lost,
                    has_template=template is not None,
                    paragraph=each["text"]
                    if template is None
                    else templates.fill(template, values),
                )
            )
        paragraphs = dict.fromkeys(each.paragraph for each in stated)
        answers.append(
            Letter(
                id=ids[i],
                score=float(scores[i]),
                points=points,
                reasons=stated,
                text="\n\n".join(paragraphs),
            )
        )
    return LettersAnswer(
        model_id=served.model_id,
        revision=found.described["dictionary"],
        reference_score=found.described["score"],
        cutoff_points=cutoff,
        least_share=LEAST_SHARE,
        letters=answers,
    )
