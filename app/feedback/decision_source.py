"""Datasets from decisions: the recorded features of mature decisions, with the labels that their outcomes give them.

A row whose label is known only because it was drawn for review also represents rows that were not drawn. So its weight
is the weight of the outcome, divided by the probability that the decision was recorded and its outcome looked for.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from app.datasets.sources import DatasetSource, SourceTable
from app.feedback import file_repository as repository
from app.feedback.attribution import AttributionRule, needed_span
from app.feedback.backfill_service import find_alias
from app.feedback.decision_table import (
    LABEL,
    NEGATIVE,
    POSITIVE,
    InlineOutcomes,
    Prepared,
    TableWriter,
)
from app.feedback.outcome_repository import alias_segments, outcome_segments, values_of_models
from app.ingest.values import spell_date
from app.jobs.progress import Callback
from app.models import service as models
from app.platform import catalogue
from app.platform.blobs import BlobKey
from app.platform.errors import invalid
from app.platform.settings import Settings
from app.platform.sql import Json, Session, read_clock

KIND = "decisions"


class DecisionSource:
    def describe(self, session: Session, owner: str, given: Mapping[str, Any]) -> DatasetSource:
        """Outcomes count as of now."""
        recorded = find_alias(session, owner, given[KIND], {"pointer": "/source/decisions"})
        since, until = given["since"], given["until"]
        if since is not None and until is not None and since >= until:
            raise invalid(
                "/source/until",
                f"until must be later than since ({spell_date(since)}), got {spell_date(until)}",
            )
        return {
            "kind": KIND,
            "decisions": given[KIND],
            "since": since,
            "until": until,
            "as_of": read_clock(session),
            "revision": recorded["revision"],
            "time_column": None,
            "files": None,
            "sha256": None,
            "rows": None,
            "excluded": None,
        }

    def prepare(
        self,
        session: Session,
        settings: Settings,
        owner: str,
        source: Mapping[str, Any],
        workdir: Path,
    ) -> Json:
        """Return the files of decisions and outcomes, and how they are joined."""
        name, _, alias = (source["decisions"] or "").partition("@")
        recorded = find_alias(session, owner, source["decisions"] or "", {})
        row = repository.find_settings(session, owner, name, alias, source["revision"] or 0)
        assert row is not None
        assert row.settings is not None
        rule = row.settings["outcome"]
        since, until, as_of = source["since"], source["until"], source["as_of"]
        # An outcome may belong to another decision of its entity, which is beyond the dates.
        first, last = needed_span(
            AttributionRule.declared(rule),
            -math.inf if since is None else since,
            as_of if until is None else until,
        )
        decisions = alias_segments(session, owner, name, alias, since=first, until=min(as_of, last))
        segments = outcome_segments(session, owner)
        inline: list[InlineOutcomes] = []
        for number, segment in enumerate(segments):
            if segment.content is not None:
                path = workdir / f"outcomes-{number}.json"
                path.write_bytes(segment.content)
                inline.append({"path": str(path), "at": segment.at})
        outcomes = [each.key for each in segments if each.key is not None]
        files = [*(each.key for each in decisions), *outcomes]
        blobs = catalogue.find_all(session, files)
        used = [blobs[key].sha256 for key in files]
        used += [hashlib.sha256(Path(each["path"]).read_bytes()).hexdigest() for each in inline]
        model = models.find(session, owner, recorded["model_id"])
        prepared: Prepared = {
            "owner": owner,
            "since": since,
            "until": until,
            "as_of": as_of,
            "rule": rule,
            "decisions": [BlobKey(each.key) for each in decisions],
            "outcomes": [BlobKey(key) for key in outcomes],
            "inline": inline,
            "sha256": hashlib.sha256("".join(used).encode()).hexdigest(),
            "labels": {
                id_: list(values) for id_, values in values_of_models(session, owner, name).items()
            },
            "features": recorded["features"],
            "label": model.label or LABEL,
            "positive": model.positive or POSITIVE,
            "negative": model.negative or NEGATIVE,
        }
        return cast(Json, prepared)

    def write(self, prepared: Json, workdir: Path, callback: Callback) -> SourceTable:
        """Write the mature decisions with a known label."""
        return TableWriter(cast(Prepared, prepared), workdir, callback).write()


SOURCE = DecisionSource()
