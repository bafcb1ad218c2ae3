"""The monitor job: makes the tests of an alias that are due, and raises alarms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from typing_extensions import TypedDict

from app.feedback import group_tests, outcome_repository, scheduled_tests, shadow
from app.feedback import monitor_repository as repository
from app.feedback.alarms import raise_alarm
from app.feedback.attribution import AttributionRule, LabelValues, needed_span
from app.feedback.monitor_repository import WITHOUT_OUTCOMES, MonitoredAlias
from app.feedback.monitoring import MONITOR, Due, DuePeriod, calibrations_of, find_due, training_of
from app.feedback.outcomes import Outcomes as OutcomeRows
from app.feedback.outcomes import as_table, read_segment, schema
from app.feedback.period_rows import (
    Outcomes,
    PeriodRows,
    SegmentFile,
    floats,
    overlapping,
    read_files,
    read_period,
    recorded_features,
    within,
)
from app.feedback.periods import DAY, Period, numbered_period
from app.feedback.scheduled_tests import (
    CALIBRATION,
    GROUP_CALIBRATION,
    GUARANTEE,
    RANKING,
    SELECTION,
    SHADOW,
    UNLABELLED,
    Acknowledged,
    CalibratedCurve,
    CalibrationReference,
    MonitorPlan,
    Series,
    StoredTest,
    without_waiting,
)
from app.feedback.segments import FEATURE, PROTECTED, hash_ids
from app.jobs import queue
from app.jobs.kinds import Claim, JobKind, Work
from app.jobs.progress import Callback
from app.models import calibrations, curves
from app.models import repository as model_repository
from app.models.artifacts import load_ranker
from app.models.service import VALIDATION
from app.models.service import find as find_model
from app.platform.blobs import BlobKey, Publisher
from app.platform.documents import (
    ModelFeature,
    PeriodKind,
    StoredFeedback,
    StoredGuarantee,
)
from app.platform.errors import NotFound
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import Alarm, Model, ModelAliasHistory, MonitorTest
from app.scoring.batch_drift import DriftMonitor, DriftReference, find_reference
from app.scoring.features import FeatureIndex
from app.scoring.service import Served
from app.scoring.table_rows import Batch

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from core.base.ranker import Floats
    from core.monitoring import CalibrationMeasurement, Measurement


class MonitoredModel(TypedDict):
    """A model that the alias has served. `curve` is a file; without one there are no `totals`. `calibrations` are all,
    oldest first.
    """

    id: str
    sha256: str
    path: str
    features: list[ModelFeature]
    positive: str | None
    negative: str | None
    curve: str | None
    totals: list[float] | None
    calibrations: list[CalibrationReference]
    drift: DriftReference


class DuePeriodFile(TypedDict):
    kind: PeriodKind
    start: float
    end: float
    early: bool
    mature: bool
    shadow: bool


class EarlierTest(TypedDict):
    """A test that was made before."""

    family: str
    period_start: float
    found: StoredTest


class OutcomeFile(TypedDict):
    path: str
    received_at: float | None


class ChallengerTraining(TypedDict):
    """`app.feedback.monitor_repository.TrainingDecisions`, with a file."""

    until: float
    path: str | None
    group: str | None


class MonitorPayload(Work):
    """`outcomes` are in files."""

    owner: str
    revision: int
    settings: StoredFeedback
    periods: list[DuePeriodFile]
    segments: list[SegmentFile]
    outcomes: list[OutcomeFile]
    models: list[MonitoredModel]
    challenger: MonitoredModel | None
    challenger_training: ChallengerTraining | None
    guarantees: dict[str, StoredGuarantee | None]
    tests: list[EarlierTest]
    acknowledged: list[Acknowledged]


class NewTest(EarlierTest):
    """A test to store."""

    period_end: float


class MonitorResult(Work):
    """`rule` is that of the outcomes."""

    revision: int
    rule: str
    tests: list[NewTest]


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> MonitorPayload:
    """Return the due tests, and the files of decisions, outcomes and models that they need."""
    of = _alias_of(claim)
    due = find_due(session, of)
    payload: MonitorPayload = {
        "workdir": str(workdir),
        "owner": claim.owner,
        "revision": 0,
        "settings": cast(StoredFeedback, {}),
        "periods": [],
        "segments": [],
        "outcomes": [],
        "models": [],
        "challenger": None,
        "challenger_training": None,
        "guarantees": {},
        "tests": [],
        "acknowledged": [],
    }
    if due is None or not due.periods:
        return payload
    # A period that waits is read again with the ones after it.
    waiting = [test.period_start for test in due.tests if test.found["status"] == "waiting"]
    waiting += _waiting_groups(due.tests)
    start = min([due.periods[0].period.start, *waiting])
    needed = needed_span(
        AttributionRule.declared(due.settings["outcome"]), start, due.periods[-1].period.end
    )
    revisions = repository.revisions_of(session, *of)
    return {
        **payload,
        "revision": due.row.revision,
        "settings": due.settings,
        "periods": [_as_file(each) for each in due.periods],
        "segments": [
            {
                "path": BlobKey(each.segment_key),
                "first_at": each.first_at,
                "last_at": each.last_at,
                "lost": each.lost,
            }
            for each in repository.segments_between(session, *of, *needed)
        ],
        "outcomes": _outcomes(session, claim.owner, workdir),
        "models": [
            _model(session, each, workdir) for each in _models(session, of, revisions, start)
        ],
        "challenger": _challenger(session, claim.owner, due, workdir),
        "challenger_training": _challenger_training(session, claim.owner, due),
        "guarantees": {str(each.revision): each.guarantee for each in revisions},
        "tests": [
            {
                "family": test.family,
                "period_start": test.period_start,
                "found": cast(StoredTest, test.found),
            }
            for test in due.tests
        ],
        "acknowledged": _acknowledged(due.tests, repository.alarms_of(session, *of)),
    }


def _waiting_groups(tests: Sequence[MonitorTest]) -> list[float]:
    """Return the starts of periods that are read again for groups with too few rows."""
    # A period without decisions or flags leaves what waits as it is.
    newest = {
        each.family: each.found["state"]["waiting"]
        for each in tests
        if "waiting" in each.found["state"]
    }
    return [one["start"] for waiting in newest.values() for _, one in waiting]


def _alias_of(claim: Claim) -> MonitoredAlias:
    return MonitoredAlias(claim.owner, claim.spec["name"], claim.spec["alias"])


def _as_file(due: DuePeriod) -> DuePeriodFile:
    period = due.period
    return {
        "kind": period.kind,
        "start": period.start,
        "end": period.end,
        "early": due.early,
        "mature": due.mature,
        "shadow": due.shadow,
    }


def _outcomes(session: Session, owner: str, workdir: Path) -> list[OutcomeFile]:
    """Write files for the outcomes of small requests."""
    found: list[OutcomeFile] = []
    for each in outcome_repository.outcome_segments(session, owner):
        if each.key is not None:
            found.append({"path": BlobKey(each.key), "received_at": None})
        elif each.content is not None:
            file = workdir / f"{each.id}.json"
            file.write_bytes(each.content)
            found.append({"path": str(file), "received_at": each.at})
    return found


def _models(
    session: Session, of: MonitoredAlias, revisions: Sequence[ModelAliasHistory], start: float
) -> list[Model]:
    """Return the models served since `start`, or since the creation of the alias."""
    ids: list[str] = []
    for i, each in enumerate(revisions):
        ended = revisions[i + 1].at if i + 1 < len(revisions) else None
        if ended is None or ended >= start or i == 0:
            ids.append(each.model_id)
    found = (model_repository.find(session, of.owner, id_) for id_ in dict.fromkeys(ids))
    return [each for each in found if each is not None]


def _challenger(session: Session, owner: str, due: Due, workdir: Path) -> MonitoredModel | None:
    """Return the shadow model, unless it was deleted."""
    if due.settings["shadow"] is None or not any(each.shadow for each in due.periods):
        return None
    try:
        return _model(session, find_model(session, owner, due.settings["shadow"]), workdir)
    except NotFound:
        return None


def _challenger_training(session: Session, owner: str, due: Due) -> ChallengerTraining | None:
    """Return what is known of the shadow model's training, if periods before its end are due."""
    starts = [each.period.start for each in due.periods if each.shadow]
    found = training_of(session, owner, due.settings["shadow"])
    if found is None or not starts or starts[0] >= found.until:
        return None
    path = None if found.table_key is None else BlobKey(found.table_key)
    return {"until": found.until, "path": path, "group": found.group}


def _model(session: Session, model: Model, workdir: Path) -> MonitoredModel:
    """The curve is written to a file."""
    measured = curves.find_curve_on(session, model, VALIDATION)
    file = None
    if measured is not None:
        file = f"{model.id}.curve"
        curves.write_curve(workdir / file, measured.curve)
    totals = None if measured is None else measured.totals
    return {
        "id": model.id,
        "sha256": model.artifact_sha256,
        "path": BlobKey(model.artifact_key),
        "features": model.features,
        "positive": model.positive,
        "negative": model.negative,
        "curve": file,
        "totals": None
        if totals is None
        else [
            totals.positive,
            totals.negative,
            totals.positive_effective,
            totals.negative_effective,
        ],
        "calibrations": calibrations_of(session, model, workdir),
        "drift": find_reference(session, model, None),
    }


def _acknowledged(tests: Sequence[MonitorTest], alarms: Sequence[Alarm]) -> list[Acknowledged]:
    """Oldest first. The series ends with the last test before the acknowledgement."""
    found: list[Acknowledged] = []
    for alarm in reversed(alarms):
        if alarm.acknowledged_at is None or alarm.reference is None:
            continue
        seen = [
            test
            for test in tests
            if test.family == alarm.family and test.tested_at <= alarm.acknowledged_at
        ]
        if not seen:
            continue
        last = seen[-1]
        shifted = alarm.found["details"].get("shifted", ())
        window = alarm.found["details"].get("window")
        found.append(
            {
                "family": alarm.family,
                "term_start": last.found["term_start"],
                "number": last.found["number"],
                "next": last.period_end,
                "reference": alarm.reference,
                "model_id": alarm.found["model_id"],
                "window": None if window is None else [window["first"], window["last"]],
                "accepted": {
                    each["name"]: {"psi": each["psi"], "high": each["high"]} for each in shifted
                },
            }
        )
    return found


def run(payload: MonitorPayload, callback: Callback) -> MonitorResult:
    """Only computes, on the files that the payload names."""
    if not payload["periods"]:
        return {"workdir": payload["workdir"], "revision": 0, "rule": "", "tests": []}
    maker = _Maker(payload)
    made: list[NewTest] = []
    periods = payload["periods"]
    for step, due in enumerate(periods):
        made += maker.make(due)
        callback(step + 1, len(periods), {})
    return {
        "workdir": payload["workdir"],
        "revision": payload["revision"],
        "rule": repository.rule_of(payload["settings"]),
        "tests": made,
    }


class _Maker:
    """Makes the tests of the due periods in order; each test is input of the next one."""

    def __init__(self, payload: MonitorPayload) -> None:
        self._payload, self._settings = payload, payload["settings"]
        self._workdir = Path(payload["workdir"])
        self._maybe_plan = MonitorPlan.of(self._settings)
        self._models = {each["id"]: each for each in payload["models"]}
        self._served: dict[str, Served] = {}
        self._references: dict[str, Measurement | str] = {}
        self._before: dict[str, list[StoredTest]] = {}
        for each in sorted(payload["tests"], key=lambda test: test["period_start"]):
            self._before.setdefault(each["family"], []).append(each["found"])
        outcome = self._settings["outcome"]
        self._horizon = outcome["horizon_days"] * DAY
        self._outcomes: Outcomes | None = None
        if any(each["mature"] or each["shadow"] for each in payload["periods"]):
            self._outcomes = Outcomes(
                _read_outcomes(payload["owner"], payload["outcomes"]),
                AttributionRule.declared(outcome),
                {
                    each["id"]: LabelValues(each["positive"], each["negative"])
                    for each in payload["models"]
                },
                silence_is_negative=outcome["silence"] == "negative",
                folder=Path(payload["workdir"]),
            )

    @property
    def _plan(self) -> MonitorPlan:
        assert self._maybe_plan is not None
        return self._maybe_plan

    def make(self, due: DuePeriodFile) -> list[NewTest]:
        period = Period(due["kind"], due["start"], due["end"])
        found: dict[str, StoredTest] = {}
        if due["early"]:
            found[UNLABELLED] = self._drift(period)
        if due["mature"]:
            found |= self._mature(period)
        if self._maybe_plan is not None and self._maybe_plan.protected is not None:
            if due["early"]:
                found[SELECTION] = self._compare_groups(SELECTION, period, None, 0.0)
            if due["mature"]:
                as_of = period.end + self._horizon
                found[GROUP_CALIBRATION] = self._compare_groups(
                    GROUP_CALIBRATION, period, self._outcomes, as_of
                )
        if due["shadow"]:
            found[SHADOW] = self._shadow(period)
        for family, test in found.items():
            self._before.setdefault(family, []).append(test)
        return [
            {
                "family": family,
                "period_start": period.start,
                "period_end": period.end,
                "found": test,
            }
            for family, test in found.items()
        ]

    def _acknowledged(self, family: str) -> Acknowledged | None:
        """Return the newest acknowledgement of a family."""
        own = [each for each in self._payload["acknowledged"] if each["family"] == family]
        return own[-1] if own else None

    def _serve(self, model_id: str) -> Served:
        if model_id not in self._served:
            model = self._models[model_id]
            ranker, _ = load_ranker(Path(model["path"]), model["sha256"])
            features = FeatureIndex(model["features"], ranker.categories_)
            curve = None
            if model["curve"] is not None:
                curve = curves.read_curve(self._workdir / model["curve"])
            self._served[model_id] = Served(model_id, ranker, features, curve, model["sha256"])
        return self._served[model_id]

    def _reference(self, model_id: str) -> Measurement | str:
        """Return the validation of a model, or why there is none."""
        if model_id not in self._references:
            self._references[model_id] = self._measure_reference(model_id)
        return self._references[model_id]

    def _measure_reference(self, model_id: str) -> Measurement | str:
        from core.metrics.curve import ClassTotals
        from core.monitoring import measure_on_stored_curve

        model = self._models.get(model_id)
        if model is None:
            return "the decisions are not of a model that the alias has served"
        if model["totals"] is None or model["curve"] is None:
            return "the model has no validation curve"
        curve = curves.read_curve(self._workdir / model["curve"])
        return measure_on_stored_curve(curve, ClassTotals(*model["totals"]))

    def _drift(self, period: Period) -> StoredTest:
        """Compare a period's scores and recorded columns with the model's validation and training rows."""
        rows = read_period(self._payload["segments"], period, None, 0.0)
        before = self._before.get(UNLABELLED, [])
        counts = {
            "decisions": rows.size,
            "lost": sum(
                each["lost"]
                for each in self._payload["segments"]
                if period.start <= each["first_at"] < period.end
            ),
        }
        model_id = scheduled_tests.tested_model(rows)
        if model_id is None:
            found = scheduled_tests.without_decisions(period, "psi", before)
            return {
                **found,
                "details": {"versions": [], "shifted": [], "psi": {}} | counts,
            }
        own = scheduled_tests.rows_of_model(rows, model_id)
        acknowledged = self._acknowledged(UNLABELLED)
        series = scheduled_tests.series_of(period, model_id, before, acknowledged)
        found = scheduled_tests.begin_with_rows(period, series, model_id, "psi", own)
        drift = None
        if model_id in self._models:
            drift = self._compare(period, rows, model_id, found["planned"])
        versions = scheduled_tests.versions_of(rows)
        found = scheduled_tests.run_drift_test(found, drift, before, acknowledged, versions)
        return {**found, "details": found["details"] | counts}

    def _compare(self, period: Period, rows: PeriodRows, model_id: str, planned: int) -> Any:
        files = overlapping(self._payload["segments"], period.start, period.end)
        served, reference = self._serve(model_id), self._models[model_id]["drift"]
        recorded = recorded_features(files, model_id)
        if (profile := reference["profile"]) is not None:
            columns = [each for each in profile["columns"] if each["name"] in recorded]
            reference = {**reference, "profile": {**profile, "columns": columns}}
        thresholds = rows.threshold[rows.model == rows.models.index(model_id)]
        reference = {**reference}
        reference.pop("threshold", None)
        if thresholds.size and np.isfinite(thresholds[-1]):
            reference["threshold"] = float(thresholds[-1])
        alpha = scheduled_tests.alpha_of(UNLABELLED, self._plan) / planned
        wanted = _like_all(rows) & (rows.model == rows.models.index(model_id))
        monitor = DriftMonitor(reference, served, alpha, _alone(rows.take(wanted)))
        names = [name for name in served.features.names if name in recorded]
        chosen = rows.kept[wanted]
        first = 0
        for batch, inside in _batches(
            files, period, ["score", *(FEATURE + name for name in names)]
        ):
            count = int(np.count_nonzero(inside))
            mine = chosen[np.searchsorted(chosen, first) : np.searchsorted(chosen, first + count)]
            places = np.flatnonzero(inside)[mine - first]
            first += count
            if places.size:
                part = batch.take(_indices(places))
                monitor.add(_as_batch(part, served, names), floats(part.column("score")))
        return monitor.describe()

    def _mature(self, period: Period) -> dict[str, StoredTest]:
        assert self._outcomes is not None
        files = self._payload["segments"]
        rows = read_period(files, period, self._outcomes, period.end + self._horizon)
        model_id = scheduled_tests.tested_model(rows)
        metrics = {RANKING: "auc", CALIBRATION: "calibration", GUARANTEE: "rate"}
        if model_id is None:
            return {
                family: scheduled_tests.without_decisions(
                    period, metric, self._before.get(family, [])
                )
                for family, metric in metrics.items()
            }
        own = scheduled_tests.rows_of_model(rows, model_id)
        found: dict[str, StoredTest] = {}
        for family, metric in metrics.items():
            before = self._before.get(family, [])
            acknowledged = self._acknowledged(family)
            if family == CALIBRATION and acknowledged is not None:
                # A renewed reference has no α of its own, so renewals add no false alarms.
                acknowledged = {**acknowledged, "reference": "keep"}
            series = scheduled_tests.series_of(period, model_id, before, acknowledged)
            test = scheduled_tests.begin_with_rows(period, series, model_id, metric, own)
            waiting = self._with_waiting(period, series, model_id, own)
            if family == RANKING:
                reference = self._renewed(RANKING, model_id, "measurement")
                known_as = self._reference(model_id) if reference is None else reference
                begun = test
                test = scheduled_tests.run_ranking_test(
                    begun, series, waiting, known_as, self._plan
                )
                if test["status"] == "waiting" and waiting is not own:
                    # Rows of the same entities can be worth less together than those of one period.
                    alone = scheduled_tests.run_ranking_test(
                        begun, without_waiting(series), own, known_as, self._plan
                    )
                    test = test if alone["status"] == "waiting" else alone
                test["details"] |= {
                    "versions": scheduled_tests.versions_of(rows),
                    "corrections": int(rows.corrected.sum()),
                }
            elif family == CALIBRATION:
                test = scheduled_tests.run_calibration_test(
                    test,
                    series,
                    waiting,
                    self._calibration(model_id, period),
                    self._plan,
                    partial(self._calibrated_curve, model_id),
                )
            else:
                revision = int(own.alias_revision[np.argmax(own.at)])
                test = scheduled_tests.run_guarantee_test(
                    test, series, *self._under_guarantee(waiting, revision), self._plan
                )
            test["details"]["ambiguous"] = int(np.count_nonzero(own.ambiguous))
            found[family] = test
        return found

    def _compare_groups(
        self,
        family: group_tests.GroupFamily,
        period: Period,
        outcomes: Outcomes | None,
        as_of: float,
    ) -> StoredTest:
        segments, before = self._payload["segments"], self._before.get(family, [])
        metric = group_tests.METRICS[family]
        rows = read_period(segments, period, outcomes, as_of)
        model_id = scheduled_tests.tested_model(rows)
        if model_id is None:
            return scheduled_tests.without_decisions(period, metric, before)
        series = scheduled_tests.series_of(period, model_id, before, self._acknowledged(family))
        own = scheduled_tests.rows_of_model(rows, model_id)
        found = scheduled_tests.begin_with_rows(period, series, model_id, metric, own)
        starts = [each["start"] for each in group_tests.waiting_of(series).values()]
        span = Period(period.kind, min([period.start, *starts]), period.end)
        if span != period:
            rows = read_period(segments, span, outcomes, as_of)
        texts = self._protected(span, rows)
        mine = rows.model == rows.models.index(model_id)
        return group_tests.run_group_tests(
            family,
            found,
            series,
            period,
            rows.take(mine),
            {name: values[mine] for name, values in texts.items()},
            self._plan,
            self._slope_variance(model_id, period) if family == GROUP_CALIBRATION else 0.0,
        )

    def _slope_variance(self, model_id: str, period: Period) -> float | str:
        newest = self._newest_calibration(model_id, period)
        reference = None if newest is None else scheduled_tests.reference_of(newest)
        if reference is None:
            return "how far its calibration is off is not known well enough"
        return 0.0 if reference.slope is None else reference.slope.variance

    def _protected(self, span: Period, rows: PeriodRows) -> group_tests.Texts:
        """Return the protected columns of the rows."""
        groups = self._plan.protected
        assert groups is not None
        parts: dict[str, list[Any]] = {name: [] for name in groups["columns"]}
        files = overlapping(self._payload["segments"], span.start, span.end)
        for batch, inside in _batches(files, span, [PROTECTED + name for name in parts]):
            for name, values in parts.items():
                texts = batch.column(PROTECTED + name).to_numpy(zero_copy_only=False)
                values.append(texts[inside])
        return {
            name: np.concatenate(values)[rows.kept] if values else np.empty(0, object)
            for name, values in parts.items()
        }

    def _with_waiting(
        self, period: Period, series: Series, model_id: str, rows: PeriodRows
    ) -> PeriodRows:
        """Add the rows of earlier periods that had too few to be tested alone."""
        first = scheduled_tests.pending_from(series)
        if first == series.number:
            return rows
        begin = numbered_period(series.term_start, period.kind, first)
        span = Period(period.kind, begin.start, period.end)
        as_of = period.end + self._horizon
        every = read_period(self._payload["segments"], span, self._outcomes, as_of)
        return scheduled_tests.rows_of_model(every, model_id)

    def _under_guarantee(
        self, rows: PeriodRows, revision: int
    ) -> tuple[PeriodRows, StoredGuarantee | None]:
        """Return the decisions under the bound of a revision of the alias, and its guarantee."""
        guarantees = self._payload["guarantees"]
        guarantee = guarantees.get(str(revision))
        bound = scheduled_tests.bounded_rate(guarantee)
        same = [
            int(number)
            for number, each in guarantees.items()
            if scheduled_tests.bounded_rate(each) == bound
        ]
        return rows.take(np.isin(rows.alias_revision, same)), guarantee

    def _calibration(
        self, model_id: str, period: Period
    ) -> CalibrationReference | CalibrationMeasurement | str | None:
        """Return the reference of a model's calibration at the end of a period."""
        newest = self._newest_calibration(model_id, period)
        renewals = self._renewals(CALIBRATION, model_id)
        # A calibration that was made after a renewal is the reference again.
        if newest is None or not renewals or newest["at"] > renewals[-1]["next"]:
            return newest
        last = renewals[-1]["term_start"], renewals[-1]["number"]
        tests = self._before.get(CALIBRATION, [])
        place = [(each["term_start"], each["number"]) for each in tests].index(last)
        after = [each for each in tests[place + 1 :] if each["model_id"] == model_id]
        return scheduled_tests.renewed_reference(newest, after)

    def _newest_calibration(self, model_id: str, period: Period) -> CalibrationReference | None:
        model = self._models.get(model_id)
        every = [] if model is None else model["calibrations"]
        return next((each for each in reversed(every) if each["at"] < period.end), None)

    def _calibrated_curve(
        self, model_id: str, reference: CalibrationReference
    ) -> CalibratedCurve | None:
        from core.metrics.curve import ClassTotals

        model, written = self._models[model_id], reference["file"]
        if model["curve"] is None or model["totals"] is None or written is None:
            return None
        curve = curves.read_curve(self._workdir / model["curve"])
        calibration = calibrations.read_file(written, self._workdir).calibration
        probability = calibration.probability(curve.thresholds[1:])
        return CalibratedCurve(curve, ClassTotals(*model["totals"]), probability)

    def _shadow(self, period: Period) -> StoredTest:
        """Compare the model that decided with the shadow model."""
        assert self._outcomes is not None
        before = self._before.get(SHADOW, [])
        as_of = period.end + self._horizon
        rows = read_period(self._payload["segments"], period, self._outcomes, as_of)
        champion_id, challenger = scheduled_tests.tested_model(rows), self._payload["challenger"]
        if champion_id is None:
            return shadow.without_comparison(period, before, "there are no decisions")
        if challenger is None:
            return shadow.without_comparison(period, before, "the shadow model was deleted")
        tolerance = shadow.DEFAULT_TOLERANCE
        if (monitor := self._settings["monitor"]) is not None:
            tolerance = monitor["tolerance"].get("auc") or tolerance
        found, series = shadow.begin_comparison(
            period, champion_id, challenger["id"], tolerance, before
        )
        found["details"]["period_start"] = period.start
        start = shadow.waiting_from(series)
        span = period if start is None else Period(period.kind, start, period.end)
        files = overlapping(self._payload["segments"], span.start, span.end)
        recorded = recorded_features(files, champion_id)
        absent = [each["name"] for each in challenger["features"] if each["name"] not in recorded]
        if absent:
            named = ", ".join(absent[:5])
            reason = f"the decisions lack features of the shadow model: {named}"
            return {**found, "rows": rows.size, "reason": reason}
        if span != period:
            rows = read_period(self._payload["segments"], span, self._outcomes, as_of)
        self._models.setdefault(challenger["id"], challenger)
        scores = self._score(files, span, rows, challenger["id"])
        own = rows.model == rows.models.index(champion_id)
        unseen = own & ~self._seen_by_challenger(rows)
        left_out = int(np.count_nonzero(own & ~unseen & (rows.at >= period.start)))
        found["details"]["left_out"] = left_out
        rows, scores = rows.take(unseen), scores[unseen]
        newest = rows.at >= period.start
        swap = shadow.swap_of(rows.take(newest), scores[newest])
        return shadow.compare(found, series, rows, scores, swap)

    def _seen_by_challenger(self, rows: PeriodRows) -> npt.NDArray[np.bool_]:
        """Return which decisions may be in the challenger's training data: their entities are, or are not known."""
        training = self._payload["challenger_training"]
        if training is None:
            return np.zeros(rows.size, np.bool_)
        known = rows.identified & ~np.isin(rows.entity, self._challenger_entities)
        return (rows.at < training["until"]) & ~known

    @cached_property
    def _challenger_entities(self) -> npt.NDArray[np.uint64]:
        """The hashes of the challenger's groups, or of all entities if none of these is a group: then the groups are
        something else.
        """
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        training = self._payload["challenger_training"]
        assert training is not None
        files = self._payload["segments"]
        recorded = [
            batch.column(0).drop_null().to_numpy() for batch in read_files(files, ["id_hash"])
        ]
        entities = np.unique(np.concatenate([np.empty(0, np.uint64), *recorded]))
        if training["path"] is None or training["group"] is None:
            return entities
        groups = pq.read_table(training["path"], columns=[training["group"]]).column(0)
        texts = pc.unique(groups.cast("string")).drop_null().to_pylist()
        hashes = hash_ids(self._payload["owner"], texts)
        return hashes if np.isin(entities, hashes).any() else entities

    def _score(
        self, files: Sequence[SegmentFile], span: Period, rows: PeriodRows, model_id: str
    ) -> Floats:
        """Return a model's scores of the recorded features."""
        served = self._serve(model_id)
        names, parts = served.features.names, []
        for batch, inside in _batches(files, span, [FEATURE + name for name in names]):
            mine = _as_batch(batch.take(_indices(np.flatnonzero(inside))), served, names)
            parts += [served.ranker.score_rows(X) for X in mine.blocks(len(names))]
        return np.concatenate(parts)[rows.kept] if parts else np.empty(0)

    def _renewals(self, family: str, model_id: str) -> list[Acknowledged]:
        return [
            each
            for each in self._payload["acknowledged"]
            if (each["family"], each["reference"], each["model_id"]) == (family, "renew", model_id)
        ]

    def _renewed(self, family: str, model_id: str, name: str) -> Measurement | None:
        """Return the reference that the last acknowledgement renewed: the mean over the window of the alarm.

        `name` is the measurement in the state of a test.
        """
        from core.monitoring import Measurement

        renewals = self._renewals(family, model_id)
        if not renewals:
            return None
        last = renewals[-1]
        first, end = last["window"] or (1, 0)
        states = [
            each["state"]
            for each in self._before.get(family, ())
            if each["term_start"] == last["term_start"] and each["state"].get(name)
        ]
        inside = [
            each for each in states if first <= each[name]["first"] and each[name]["last"] <= end
        ]
        if not inside:
            return None
        return scheduled_tests.mean_of(
            [scheduled_tests.restored(Measurement, each[name]) for each in inside]
        )


def _like_all(rows: PeriodRows) -> Any:
    """Return rows that represent all decisions equally: explored ones, always recorded, are sampled like the others."""
    if rows.size == 0 or np.ptp(rows.keep) == 0.0:
        return np.ones(rows.size, np.bool_)
    drawn = (rows.entity * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)) / 2.0**53
    return drawn < rows.keep.min() / rows.keep


def _alone(rows: PeriodRows) -> float:
    """Return the number of independent rows that a row counts as (Kish), if all rows of an entity are equal."""
    if rows.entities is None:
        return 1.0
    sizes = np.unique(rows.entities, return_counts=True)[1].astype(np.float64)
    return float(sizes.sum() / np.square(sizes).sum())


def _batches(files: Sequence[SegmentFile], period: Period, columns: Sequence[str]) -> Any:
    """Yield batches with decisions of a period, and the mask of these rows."""
    for batch in read_files(files, ["at", *columns]):
        inside = within(batch, period)
        if inside.any():
            yield batch, inside


def _indices(places: Any) -> pa.Array:
    import pyarrow as pa

    return pa.array(places, pa.int64())


def _as_batch(batch: pa.RecordBatch, served: Served, names: Sequence[str]) -> Batch:
    """Return rows that a model scores; a feature that was not recorded is missing."""
    import pyarrow as pa

    index = served.features
    features, texts = {}, {}
    for i, name in enumerate(index.names):
        if name not in names:
            continue
        column = batch.column(FEATURE + name)
        known = index.categories[i]
        if known is None:
            features[i] = floats(column)
            continue
        coded = (
            column
            if pa.types.is_dictionary(column.type)
            else column.cast(pa.string()).dictionary_encode()
        )
        texts[i] = coded
        codes = np.array([*(known[word] for word in coded.dictionary.to_pylist()), np.nan])
        features[i] = codes[coded.indices.fill_null(len(coded.dictionary)).to_numpy()]
    return Batch(batch.num_rows, features, (), texts, floats(batch.column("at")))


def _read_outcomes(owner: str, files: Sequence[OutcomeFile]) -> pa.Table:
    import pyarrow as pa

    tables = [
        read_segment(Path(each["path"]))
        if each["received_at"] is None
        else as_table(
            owner, [(OutcomeRows.from_json(Path(each["path"]).read_bytes()), each["received_at"])]
        )
        for each in files
    ]
    return pa.concat_tables([schema().empty_table(), *tables]).unify_dictionaries()


def publish(blobs: Publisher, claim: Claim, result: MonitorResult) -> Sequence[NewTest]:
    """Tests have no files."""
    return result["tests"]


def complete(
    session: Session, claim: Claim, result: MonitorResult, made: Sequence[NewTest]
) -> None:
    """Write the tests that do not exist yet, with their alarms."""
    of = _alias_of(claim)
    raised = 0
    for each in made:
        test, family, start = each["found"], each["family"], each["period_start"]
        rule = WITHOUT_OUTCOMES if family in (UNLABELLED, SELECTION) else result["rule"]
        period = start, each["period_end"]
        is_new = repository.add_test(
            session, of, family, period, rule, result["revision"], dict(test)
        )
        if is_new and test["status"] == "alarm":
            raised += raise_alarm(session, of, family, start, dict(test)) is not None
    messages = [f"{len(made)} tests"] if made else []
    if raised:
        messages.append(f"{raised} new alarms of {of.reference}")
    queue.finish(session, claim, messages=messages)


KIND: JobKind[Mapping[str, Any], Mapping[str, Any], Any] = cast(
    Any, JobKind(name=MONITOR, prepare=prepare, run=run, publish=publish, complete=complete)
)
