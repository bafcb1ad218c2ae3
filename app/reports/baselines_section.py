"""What else was fitted: plain algorithms to compare with, and the candidates of `auto`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.platform.tables import ModelControls, ModelLeaderboard
from app.reports import document
from app.reports.document import Block, Items, Paragraph, Table

MOST_CANDIDATES = 50

Json = dict[str, Any]


def controls(found: ModelControls, beats: bool | None) -> list[Block]:
    """Each control on each window, and whether the model is better beyond chance."""
    blocks: list[Block] = [Paragraph(" ".join(_verdict(found, beats)))]
    if found.windows:
        head = ["measure", "ranker", "area", "the model's less this one's", "p", "p, adjusted"]
        blocks.append(Table(head, list(_rows(found))))
    if said := [line for each in found.controls if (line := _said_of(each))]:
        blocks.append(Items(said))
    return blocks


def _said_of(control: Json) -> str | None:
    """That a control failed, or learnt from a sample; models of earlier versions have no figures of rows."""
    if control["failed"]:
        return f"{control['algorithm']} could not be fitted: {control['failed']}"
    rows, of_rows = control.get("rows"), control.get("of_rows")
    if rows is not None and rows < of_rows:
        return f"{control['algorithm']} was fitted on {rows:,} of {of_rows:,} rows"
    return None


def _verdict(found: ModelControls, beats: bool | None) -> Iterator[str]:
    if found.skipped is not None:
        yield f"None were fitted: {found.skipped}."
    if beats is None:
        return
    yield "Plain algorithms were fitted on the same divisions of the rows, and compared on the same rows, in pairs."
    measure, level = _measure(found.decided_on), 1.0 - found.level
    if beats:
        yield f"By {measure} the model is better than each of them (adjusted p below {level:.2g})."
    else:
        yield f"By {measure} it is not shown to be better than every one of them: a plainer model may do as well."


def _rows(found: ModelControls) -> Iterator[list[str]]:
    for window in found.windows:
        named = _measure(window)
        yield [named, "this model", document.interval(window["chosen"]), "", "", ""]
        for control in window["controls"]:
            difference = control["difference"]
            yield [
                named,
                control["algorithm"],
                document.interval(control["area"]),
                document.signed(difference),
                document.p_value(difference["p_value"]),
                document.p_value(difference["adjusted_p_value"]),
            ]


def _measure(window: Json) -> str:
    whole = (window["fpr_min"], window["fpr_max"]) == (0.0, 1.0)
    return "AUC" if whole else f"partial AUC on {document.window(window)}"


def leaderboard(found: ModelLeaderboard) -> list[Block]:
    """What `auto` has made of it, and all that it has tried."""
    members = [
        f"{each['algorithm']}, weight {each['weight']:.3g}: {document.settings(each['parameters'])}"
        for each in found.members
    ]
    head = ["candidate", "value", "p", "time", "became of it"]
    rows = [_candidate(each) for each in found.candidates[:MOST_CANDIDATES]]
    blocks: list[Block] = [
        Paragraph(
            f"The search took {found.seconds:.3g} s of {found.budget_seconds:.3g} s. It came to "
            f"{len(members)} ranker{'s' if len(members) > 1 else ''}; of several the weighted mean rank is the score."
        ),
        Items(members),
        Table(head, rows),
    ]
    if (more := len(found.candidates) - MOST_CANDIDATES) > 0:
        blocks.append(Paragraph(f"… and {more:,} more."))
    note = "Values and areas are of the rows that chose, and flatter those that came out best."
    return [*blocks, Paragraph(" ".join([note, *found.notes]))]


def _candidate(each: Json) -> list[str]:
    rows = "" if each["rows"] in (0.0, 1.0) else f", from {each['rows']:.0%} of the rows"
    return [
        f"{each['algorithm']}: {document.settings(each['parameters'])}",
        document.interval(each),
        document.p_value(each["p_value"]),
        f"{each['seconds']:.3g} s{rows}",
        f"{each['state']}: {each['reason']}",
    ]
