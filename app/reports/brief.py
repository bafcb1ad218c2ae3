"""The first page of a model's report, which answers five questions, and what is behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.evaluation.equal_groups import ComparedGroups
from app.findings.finding import Question, located
from app.measures import QUESTIONS, percent, positives_over_time, rows_used, time_effect
from app.models import threshold_groups
from app.models.imported import dataset_of, imported_from
from app.platform.documents import ProxyAuc, StoredMemo
from app.platform.tables import Evaluation, Model
from app.platform.text import validation_in_words
from app.reports import document
from app.reports.document import Block, Items, Paragraph, Pictures, Section, Table
from app.reports.plots import gains_plot
from app.reports.service import Facts, NamedPoint

MAX_GROUPINGS = 3
MAX_CUTOFFS, MAX_MOVED, MAX_GROUPS, MAX_LIMITS = 3, 5, 8, 8
"""Most cutoffs, columns that moved, groups and warnings on these pages."""

MAX_PROXIES, _ALONE = 12, 3
"""Most values of protected columns, and features of each, on these pages."""

Json = Mapping[str, Any]


def first_page(facts: Facts, limits: Sequence[str]) -> list[Section]:
    """Return the answers to five questions, from the checks and the cutoffs; all else follows on the next pages."""
    return [
        Section(
            "Ready for use?",
            [Paragraph(" ".join(_readiness(facts, limits))), _answers(facts, "probabilities")],
        ),
        Section(
            "Better than random, and than the baselines?",
            [_answers(facts, "ranks", "beats_baselines")],
        ),
        Section("Which cutoff, and what does it flag?", list(_cutoffs(facts))),
        Section("Stable on newer data?", [_answers(facts, "ranking_kept", "stable")]),
        Section("Equal across groups?", [_answers(facts, "groups")]),
    ]


def _readiness(facts: Facts, limits: Sequence[str]) -> Iterator[str]:
    """Count the answers, and name the questions that are not answered `yes`."""
    counted = [each for each in facts.findings if each.answer != "not_applicable"]
    yield f"{sum(each.answer == 'yes' for each in counted)} of {len(counted)} questions are answered yes."
    for answer in ("no", "unknown"):
        names = [QUESTIONS[each.question].rstrip("?") for each in counted if each.answer == answer]
        if names:
            yield f"{answer.capitalize()}: {'; '.join(names)}."
    if limits:
        yield f"{len(limits):,} {'warning' if len(limits) == 1 else 'warnings'}: see Limitations."


def _answers(facts: Facts, *questions: Question) -> Table:
    """Return the answers to questions. The values behind them have a table of their own."""
    found = {each.question: each for each in facts.findings}
    return Table(
        (),
        [
            [QUESTIONS[name], found[name].answer.replace("_", " "), located(found[name])]
            for name in questions
        ],
    )


def brief(facts: Facts, purpose: Sequence[Block], limits: Sequence[str]) -> list[Section]:
    """Return what is behind the first page: purpose, values of the checks, cutoff, changes, groups and limits."""
    sections = [Section("Purpose", [*purpose, _data(facts)])]
    if rows := [
        [
            QUESTIONS[each.question],
            "" if each.margin is None else f"{each.margin:g}",
            " ".join(each.details),
        ]
        for each in facts.findings
        if each.margin is not None or each.details
    ]:
        sections.append(
            Section("Details of the checks", [Table(("check", "margin", "details"), rows)])
        )
    if facts.curve_part is not None:
        decided = [cutoff for cutoff in facts.cutoffs if cutoff.alias is not None]
        metrics = facts.metrics[facts.curve_part.part]
        drawn = Pictures([*list(facts.plots())[:1], gains_plot(facts.curve_part, metrics)])
        memos = [
            Paragraph(" ".join(_decision(cutoff, is_proposed=cutoff.alias is facts.proposed)))
            for cutoff in decided[:MAX_CUTOFFS]
        ]
        sections.append(Section("Cutoff", [*memos, drawn]))
    if (evaluated := facts.evaluations.get("ranking_kept")) and evaluated.drift is not None:
        sections.append(Section("Changes since validation", list(_drift(facts, evaluated))))
    if (evaluated := facts.evaluations.get("groups")) and facts.compared_groups is not None:
        sections.append(Section("Groups", list(_groups(facts.compared_groups, evaluated))))
    if facts.model.protected:
        sections.append(Section("Protected columns", list(_protected(facts.model))))
    said: list[Block] = [Paragraph("No warnings.")]
    if limits:
        said = [Items(limits[:MAX_LIMITS]), *document.list_more(limits, MAX_LIMITS, " warnings")]
    sections.append(Section("Limitations", said))
    return sections


def _protected(model: Model) -> Iterator[Block]:
    """Say by whose decision they are features, or how well the features predict them."""
    for column in model.protected:
        if column["feature"]:
            by = "" if column["decided_by"] is None else f", by decision of {column['decided_by']}"
            yield Paragraph(
                f"The protected column {column['name']} is a feature of this model{by} on "
                f"{document.moment(column['decided_at'])}."
            )
    without = [column["name"] for column in model.protected if not column["feature"]]
    if without:
        yield Paragraph(f"Not features of this model: {', '.join(without)}.")
    if not (found := model.proxies):
        return
    rows = [
        [
            f"{each['column']}: {each['value']}",
            _predicted(each["together"]),
            "; ".join(f"{one['feature']} {_predicted(one)}" for one in each["features"][:_ALONE]),
            document.count(each["rows"]),
        ]
        for each in found[:MAX_PROXIES]
    ]
    head = ("protected value", "all features together", "most predictive features alone", "rows")
    yield Table(head, rows)
    yield from document.list_more(found, MAX_PROXIES, " values")
    yield Paragraph(
        "AUC of scores that predict the protected value from the features, out of fold, with "
        f"{percent(found[0]['level'], 0)} intervals (random: 0.5). The intervals of single features are not "
        "adjusted for the number of features. A feature with an AUC far from 0.5 can stand in for the protected "
        "column; whether the model uses it so is not tested."
    )


def _predicted(found: ProxyAuc) -> str:
    """Return an AUC with its interval, or why there is none."""
    return found["reason"] or document.interval(dict(found), 3)


def _data(facts: Facts) -> Paragraph:
    """Say what the model was trained on, and how it was validated."""
    model = facts.model
    known, source = dataset_of(model), imported_from(model)
    name = model.dataset_id if known is None else document.version(known)
    made = f"Algorithm: {model.algorithm}"
    if source is not None:
        made = f"Imported from {source}, not trained here"
    counts = rows_used(facts.rows, model.validation["method"])
    of_time = "".join(
        f" {time_effect(each['algorithm'], found)}"
        for each in (facts.baselines.baselines if facts.baselines else ())
        if (found := each.get("random_split"))
    )
    newest = facts.metrics.get("validation")
    if "time_column" in model.validation and newest and (train := facts.metrics.get("train")):
        of_time += f" {positives_over_time(train, newest)}".rstrip()
    words = (
        f"Data: {name}. {counts}. Features: {len(model.features)}. {made}. "
        f"Validation: {validation_in_words(model.validation)}.{of_time}"
    )
    return Paragraph(words)


def _cutoffs(facts: Facts) -> Iterator[Block]:
    """Without aliases, yield a note and the usual cutoffs."""
    if facts.curve_part is None:
        yield Paragraph(
            "The model has no ROC curve on held-out rows, so no cutoff can be evaluated."
        )
        return
    decided = [cutoff for cutoff in facts.cutoffs if cutoff.alias is not None]
    silent = [each for each in facts.decisions if each.cutoff and each.cutoff["threshold"] is None]
    for alias in silent[:MAX_CUTOFFS]:
        yield Paragraph(
            f"{alias.name}@{alias.alias} flags no row: no lower cutoff meets its guarantee or target."
        )
    if not decided and not silent:
        yield Paragraph("No cutoff has been saved for this model. The table shows common ones.")
    head = ["cutoff", "threshold", "rows flagged", "TPR", "FPR", "precision"]
    shown = (decided or list(facts.cutoffs))[:MAX_CUTOFFS]
    yield Table(head, [_cutoff(cutoff) for cutoff in shown])
    for note in dict.fromkeys(cutoff.note for cutoff in shown if cutoff.note is not None):
        of = [cutoff.asked for cutoff in shown if cutoff.note == note]
        yield Paragraph(note if len(of) == len(shown) else f"{', '.join(of)}: {note}")
    yield from document.list_more(decided, MAX_CUTOFFS, " cutoffs")


def _cutoff(cutoff: NamedPoint) -> list[str]:
    point = cutoff.point
    rates = (point.flagged, point.tpr, point.fpr, point.precision)
    return [cutoff.asked, document.score(point.threshold), *map(document.share, rates)]


def _decision(cutoff: NamedPoint, *, is_proposed: bool) -> Iterator[str]:
    """Yield sentences on who chose a cutoff, why, and its consequences for the expected rows."""
    alias, point = cutoff.alias, cutoff.point
    assert alias is not None
    by = "" if alias.author is None else f" by {alias.author}"
    when = document.moment(alias.updated_at)
    if is_proposed:
        yield f"This report is evidence for pointing {cutoff.asked} to this model, as asked on {when}{by}."
    else:
        yield f"{cutoff.asked} was pointed to this model on {when}{by}."
    memo = alias.memo
    if memo is None:
        yield "No reason was recorded."
        return
    if memo["reason"] is not None:
        yield f"Reason: {document.sentence(memo['reason'])}"
    if memo["approved_by"] is not None:
        yield f"Approved by {document.sentence(memo['approved_by'])}"
    yield from _capacity(memo, point.flagged.value, point.tpr.value, point.prevalence)
    if memo["cost_false_positive"] is not None:
        yield (
            f"A false positive costs {memo['cost_false_positive']:g}, a false negative "
            f"{memo['cost_false_negative']:g}{_times(memo.get('amount'))}."
        )


def _times(amount: str | None) -> str:
    """Say that a cost is multiplied by the amounts in a column."""
    return "" if amount is None else f" times {amount}"


def _capacity(memo: StoredMemo, flagged: float, tpr: float, prevalence: float) -> Iterator[str]:
    """Compare the review capacity with the flagged rows."""
    rows, review = memo["rows"], memo["review"]
    if rows is None or review is None:
        return
    positives = (memo["prevalence"] or prevalence) * rows
    yield (
        f"Review capacity: {review:,.0f} of {rows:,.0f} rows. On rows like the validation rows, the cutoff flags about "
        f"{flagged * rows:,.0f} of {rows:,.0f} rows and finds about {tpr * positives:,.0f} of {positives:,.0f} "
        "positives."
    )


def _drift(facts: Facts, evaluated: Evaluation) -> Iterator[Block]:
    drift: Json = evaluated.drift or {}
    answers = [
        f"{QUESTIONS[each.question]} {each.answer.replace('_', ' ').capitalize()}. {each.words}"
        for each in facts.newest
    ]
    yield Paragraph(
        f"{evaluated.dataset_name}, evaluated {document.moment(evaluated.created_at)}. The answers of this evaluation:"
    )
    yield Items(answers)
    compared = [*drift["areas"], *filter(None, [drift.get("prevalence")])]
    names = {"auc": "AUC", "pauc": "partial AUC", "prevalence": "fraction of positives"}
    rows = [
        [
            names.get(each["of"], each["of"].replace("_", " ")),
            document.interval(each["before"], 3),
            document.interval(each["after"], 3),
            "changed" if each["changed"] else "",
        ]
        for each in compared
    ]
    yield Table(("metric", "at validation", "on these rows", ""), rows)
    for each in drift["scores"]:
        if each["of"] == "all":
            yield Paragraph(f"Score distribution: {each['words']}.")
    moved = [each for each in drift["features"] if each["changed"]]
    if moved:
        shown = [
            [each["name"], document.interval(each["psi"], 2), _importance(each["importance"])]
            for each in moved[:MAX_MOVED]
        ]
        yield Table(("changed column", "PSI", "importance"), shown)
        yield from document.list_more(moved, MAX_MOVED, " columns")


def _importance(share: float | None) -> str:
    return "—" if share is None else f"{percent(share)}"


def _groups(compared: ComparedGroups, evaluated: Evaluation) -> Iterator[Block]:
    """Show the groups at the threshold that the check of the groups uses."""
    shown, said = compared.columns, ""
    if (at := compared.at_threshold()) is not None and compared.threshold is not None:
        shown = threshold_groups.members_of(at.compute(threshold_groups.NOT_FLAGGED))["columns"]
        said = (
            f", at the threshold {document.score(compared.threshold[0])} ({compared.threshold[1]})"
        )
    for found in shown[:MAX_GROUPINGS]:
        yield Paragraph(f"By {found['column']}, on {evaluated.dataset_name}{said}")
        yield from _by_column(found)


def _by_column(found: Json) -> Iterator[Block]:
    rows = [
        [
            "missing" if each["value"] is None else each["value"],
            f"{each['positives']:,} of {each['positives'] + each['negatives']:,}",
            *(_metric(each.get(name)) for name in ("auc", "tpr", "fpr")),
        ]
        for each in found["groups"][:MAX_GROUPS]
    ]
    yield Table(("group", "positives", "AUC", "TPR", "FPR"), rows)
    yield from document.list_more(found["groups"], MAX_GROUPS, " groups")


def _metric(found: Json | None) -> str:
    """A dash if the group has too few rows."""
    return "—" if found is None or found.get("value") is None else document.interval(found, 3)
