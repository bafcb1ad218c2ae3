"""The job that erases an entity from tables, in rounds: each searches everything, and removes what it has found.

The first round that finds nothing ends the job, so its success is the proof. A round changes the rows in one
transaction: a job that is killed leaves files that no row names, and starts again with a search. A round that has
removed something queues the job again; nothing of it depends on an earlier round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from app.access import holds
from app.datasets.files_tasks import path_of
from app.datasets.repository import profile_of
from app.datasets.tasks import TABLES, describe_columns, limits, parent_of
from app.erasure import repository
from app.erasure.mentions import Words, mentions, mentions_words, without_id
from app.feedback.file_repository import BACKFILL
from app.ingest.values import CATEGORICAL
from app.jobs import queue
from app.jobs.kinds import Claim, JobKind, Work
from app.jobs.progress import Callback
from app.models import repository as model_rows
from app.models import service as models
from app.platform import failpoints
from app.platform.blobs import BlobKey, Publisher
from app.platform.documents import ErasureReport
from app.platform.errors import Conflict
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Json, Session, read_clock
from app.platform.tables import (
    Dataset,
    DatasetStatus,
    Erasure,
    Job,
    JobState,
    Model,
    UploadPart,
    VersionMode,
)
from app.scoring.batch import BATCH_SCORE

ERASE = "erase"
"""The kind of job."""
UPLOADS = "uploads"
WAIT_SECONDS = 5.0
"""Time between two looks whether an upload has been read."""
MAX_ROUNDS = 20
_OF_UPLOADS = (BACKFILL, BATCH_SCORE)
"""The kinds of job that read an upload which is no dataset, and delete it when they end."""
_FORGOTTEN = queue.problem("erased", "Erased", "an erasure has removed the details of this error")


class ErasePayload(Work):
    entity: str
    versions: list[Json]
    results: list[Json]
    uploads: list[Json]
    evidence: list[Json]
    waits: bool


class EraseResult(Work):
    """Versions, batch scores and uploads with rows of the entity, archives that name it, and what could not be searched
    because a file is missing or damaged: ids, and keys of archives.
    """

    rows: int
    changed: list[Json]
    results: list[str]
    uploads: list[str]
    evidence: list[str]
    unreadable: list[str]
    searched: list[str]
    n_results: int
    n_uploads: int
    n_evidence: int
    waits: bool


def empty_report() -> ErasureReport:
    return {
        "rounds": 0,
        "searched": {"datasets": 0, "rows": 0, "batch_scores": 0, "uploads": 0, "evidence": 0},
        "datasets": [],
        "models": [],
        "batch_scores": [],
        "evaluations": [],
        "uploads": [],
        "evidence": [],
        "cancelled_jobs": [],
        "files": 0,
        "remains": [],
        "verified_at": None,
    }


def _find(session: Session, claim: Claim, *, lock: bool = False) -> Erasure:
    found = repository.find(session, claim.owner, claim.spec["erasure_id"], lock=lock)
    if found is None or found.done_at is not None:
        raise Conflict("the erasure is done already", code="erasure_done")
    if found.entity_id is None:
        raise Conflict(
            f"the erasure {found.id} failed before due_at, and the service has forgotten the id: request it again",
            code="erasure_expired",
        )
    return found


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> ErasePayload:
    """Return all datasets, batch scores and open uploads."""
    erasure = _find(session, claim)
    assert erasure.entity_id is not None
    if repository.waiting_to_be_read(session, claim.owner, erasure.requested_at):
        nothing: list[Json] = []
        return {
            "workdir": str(workdir),
            "entity": erasure.entity_id,
            "versions": nothing,
            "results": nothing,
            "uploads": nothing,
            "evidence": nothing,
            "waits": True,
        }
    keys, parts = erasure.key_columns, repository.parts_of_datasets(session, claim.owner)
    versions: list[Json] = []
    uploads: list[Json] = []
    everything = repository.datasets(session, claim.owner)
    by_id = {dataset.id: dataset for dataset in everything}
    for dataset in everything:
        if dataset.status == DatasetStatus.READY:
            own = _keys_of(dataset, keys)
            if own and not _is_unsearchable(dataset, by_id):
                files = parts.get(dataset.id, ())
                versions.append(
                    _version(settings, claim.owner, dataset, by_id, own, files, workdir)
                )
        elif dataset.status == DatasetStatus.INVALID:
            uploads += _loose(
                settings, claim.owner, dataset, parts.get(dataset.id, ()), keys, workdir
            )
    for upload in repository.open_uploads(session, claim.owner):
        uploads += [
            _loose_file(settings, upload.id, _part_file(settings, claim.owner, part), keys, workdir)
            for part in parts.get(upload.id, ())
        ]
    results = [
        {"id": batch.id, "path": BlobKey(batch.result_key or ""), "keys": named}
        for batch in repository.batch_scores(session, claim.owner)
        if (named := [each["name"] for each in batch.columns or () if each["name"] in keys])
    ]
    return {
        "workdir": str(workdir),
        "entity": erasure.entity_id,
        "versions": versions,
        "results": results,
        "uploads": uploads,
        "evidence": [
            {"id": key, "path": BlobKey(key)}
            for key in repository.evidence_of(session, claim.owner)
        ],
        "waits": False,
    }


def _keys_of(dataset: Dataset, keys: list[str]) -> list[str]:
    """Tables from decisions have ids of entities as groups."""
    names = {column["name"] for column in dataset.columns}
    is_own = dataset.source is not None and dataset.source["kind"] == "decisions"
    own = [dataset.group] if is_own and dataset.group is not None else []
    return [name for name in dict.fromkeys([*keys, *own]) if name in names]


def _is_unsearchable(dataset: Dataset, by_id: Mapping[str, Dataset]) -> bool:
    """True for appended rows without their earlier version: its rows are only in the typed table."""
    return dataset.mode == VersionMode.APPEND and dataset.parent_id not in by_id


def _version(
    settings: Settings,
    owner: str,
    dataset: Dataset,
    by_id: Mapping[str, Dataset],
    keys: list[str],
    parts: Any,
    workdir: Path,
) -> Json:
    appends = dataset.mode == VersionMode.APPEND
    reading: Json = dict(describe_columns(dataset, settings, workdir))
    most = max(reading["limits"]["bytes"], settings.max_dataset_bytes)
    reading["limits"] = {**reading["limits"], "bytes": most}
    pairs = dataset.pairs
    own_pairs = pairs is not None and pairs.status == DatasetStatus.READY
    return {
        "id": dataset.id,
        "keys": keys,
        "item": dataset.item,
        "categorical": [
            column["name"] for column in dataset.columns if column["type"] == CATEGORICAL
        ],
        "dialect": dataset.dialect,
        "reading": reading,
        "files": [_part_file(settings, owner, part) for part in parts]
        or [
            {
                "path": BlobKey(dataset.upload_key),
                "content_type": dataset.content_type,
                "content_encoding": dataset.content_encoding,
            }
        ],
        "append_to": dataset.parent_id if appends else None,
        "parent": parent_of(by_id[dataset.parent_id or ""]) if appends else None,
        "pairs": {
            "path": BlobKey(pairs.upload_key),
            "content_type": pairs.content_type,
            "content_encoding": pairs.content_encoding,
            "limits": reading["limits"],
        }
        if pairs is not None and own_pairs
        else None,
    }


def _part_file(settings: Settings, owner: str, part: UploadPart) -> Json:
    return {
        "path": path_of(settings, owner, part),
        "content_type": part.content_type,
        "content_encoding": part.content_encoding,
    }


def _loose(
    settings: Settings, owner: str, dataset: Dataset, parts: Any, keys: list[str], workdir: Path
) -> Iterator[Json]:
    files = [_part_file(settings, owner, part) for part in parts] or [
        {
            "path": BlobKey(dataset.upload_key),
            "content_type": dataset.content_type,
            "content_encoding": dataset.content_encoding,
        }
    ]
    for file in files:
        yield {**_loose_file(settings, dataset.id, file, keys, workdir), "dialect": dataset.dialect}


def _loose_file(settings: Settings, id_: str, file: Json, keys: list[str], workdir: Path) -> Json:
    bounds = {**limits(settings), "bytes": settings.max_dataset_bytes}
    return {"id": id_, **file, "keys": keys, "limits": bounds, "workdir": str(workdir)}


def run(payload: ErasePayload, callback: Callback) -> EraseResult:
    """Rewrite datasets without the rows of the entity."""
    from app.erasure.mentions import search_archive
    from app.erasure.rewriting import Rewriting, search_result, search_upload

    entity = payload["entity"]
    unreadable = _set_unreadable_apart(payload)
    rewriting = Rewriting(payload, callback)
    changed = rewriting.run()
    uploads = {each["id"] for each in payload["uploads"] if search_upload(each, entity)}
    results = [
        each["id"]
        for each in payload["results"]
        if search_result(each["path"], each["keys"], entity)
    ]
    return {
        "workdir": payload["workdir"],
        "rows": rewriting.searched.rows,
        "changed": changed,
        "results": results,
        "uploads": sorted(uploads),
        "evidence": [
            each["id"] for each in payload["evidence"] if search_archive(each["path"], entity)
        ],
        "unreadable": unreadable,
        "searched": [each["id"] for each in payload["versions"]],
        "n_results": len(payload["results"]),
        "n_uploads": len(payload["uploads"]),
        "n_evidence": len(payload["evidence"]),
        "waits": payload["waits"],
    }


def _set_unreadable_apart(payload: ErasePayload) -> list[str]:
    """Take what has a missing or damaged file out of the payload, with the versions that continue it; return ids."""
    found: dict[str, None] = {}
    versions = []
    for version in payload["versions"]:
        files = [*version["files"], version["parent"], version["pairs"]]
        if version["append_to"] in found or any(each and each["path"] is None for each in files):
            found[version["id"]] = None
        else:
            versions.append(version)
    payload["versions"] = versions
    for copies in (payload["results"], payload["uploads"], payload["evidence"]):
        found |= dict.fromkeys(each["id"] for each in copies if each["path"] is None)
        copies[:] = [each for each in copies if each["path"] is not None]
    return [*found]


def publish(blobs: Publisher, claim: Claim, result: EraseResult) -> list[Json]:
    """Return changed versions with blobs and profiles."""
    for version in result["changed"]:
        if (new := version["new"]) is None:
            continue
        folder = Path(new["folder"])
        found, upload = new["found"], new["upload"]
        new["table"] = blobs.publish(folder / found["file"], TABLES, found["sha256"])
        new["upload_blob"] = blobs.publish(folder / upload["file"], UPLOADS, upload["sha256"])
        new["profile"] = orjson.loads((folder / found["profile"]).read_bytes())
        if (pairs := new["pairs"]) is not None:
            pairs["table"] = blobs.publish(folder / pairs["file"], TABLES, pairs["sha256"])
            own = pairs["upload"]
            pairs["upload_blob"] = blobs.publish(folder / own["file"], UPLOADS, own["sha256"])
    return result["changed"]


def complete(session: Session, claim: Claim, result: EraseResult, changed: list[Json]) -> None:
    """Remove what was found, in one transaction; end the job if nothing was, else queue the next round."""
    if result["waits"]:
        job = queue.lock(session, claim)
        reason = "an upload is being read"
        queue.requeue_locked(session, job, reason, job.attempt - 1, WAIT_SECONDS)
        return
    erasure = _find(session, claim, lock=True)
    holds.lock(session, claim.owner)
    report: ErasureReport = _copy(erasure.report) if erasure.report else empty_report()
    old_keys = dict.fromkeys(erasure.old_keys or ())
    round_ = _Round(session, claim, erasure, report, old_keys)
    for version in changed:
        round_.replace(version)
    round_.delete_results(result["results"])
    for id_ in result["uploads"]:
        round_.delete_upload(id_)
    round_.delete_evidence(result["evidence"])
    # Their files are deleted, and cannot be searched any more.
    repository.forget_errors_of_uploads(session, claim.owner, _OF_UPLOADS, _FORGOTTEN)
    assert erasure.entity_id is not None
    repository.forget_responses_with_id(session, claim.owner, erasure.entity_id)
    report["rounds"] += 1
    report["searched"] = {
        "datasets": len(result["searched"]),
        "rows": result["rows"],
        "batch_scores": result["n_results"],
        "uploads": result["n_uploads"],
        "evidence": result["n_evidence"],
    }
    report["files"] = len(old_keys)
    is_clean = not (changed or result["results"] or result["uploads"] or result["evidence"])
    if is_clean:
        report["remains"] = _remains(session, claim.owner, erasure, report, result["unreadable"])
        report["verified_at"] = read_clock(session)
    erasure.report = without_id(report, erasure.entity_id)
    erasure.old_keys = [*old_keys]
    session.flush()
    failpoints.reach("erase")
    if is_clean:
        queue.finish(session, claim, messages=[_summary(report)])
        return
    job = queue.lock(session, claim)
    if (
        report["rounds"] % MAX_ROUNDS == 0
    ):  # not raised: that would bring the rows of this round back
        error = queue.problem(
            "erasure_not_clean",
            "Conflict",
            f"{report['rounds']} searches have all found rows of the entity: other requests add some all the time",
        )
        queue.end_locked(session, job, JobState.FAILED, error)
        return
    queue.requeue_locked(session, job, "its next search verifies this one", job.attempt - 1, 0.0)


def _copy(report: ErasureReport) -> ErasureReport:
    return cast(ErasureReport, orjson.loads(orjson.dumps(report)))


def _summary(report: ErasureReport) -> str:
    return (
        f"replaced {len(report['datasets'])} datasets; {len(report['models'])} models used the rows; "
        f"the last search read {report['searched']['rows']} rows and found none"
    )


class _Round:
    """Removes what a round has found, in its transaction."""

    def __init__(
        self,
        session: Session,
        claim: Claim,
        erasure: Erasure,
        report: ErasureReport,
        old_keys: dict[str, None],
    ) -> None:
        self._session = session
        self._claim = claim
        self._owner = claim.owner
        self._erasure = erasure
        self._report = report
        self._old_keys = old_keys
        self._new_ids: dict[str, str | None] = {}
        self._models = {each["model_id"]: each for each in report["models"]}
        self._calibrated = repository.calibrated_on(session, claim.owner)

    def replace(self, version: Json) -> None:
        """Delete the version if its table is not valid without the rows."""
        dataset = repository.lock_dataset(self._session, self._owner, version["id"])
        if dataset is None or dataset.status != DatasetStatus.READY:
            return  # deleted meanwhile
        holds.check(self._session, self._owner, dataset_id=dataset.id)
        self._cancel_jobs(dataset)
        self._forget(dataset, version["words"])
        values = _values_of(dataset)
        pairs = None if dataset.pairs is None else _values_of(dataset.pairs)
        parts = repository.parts_of_datasets(self._session, self._owner, dataset.id).get(
            dataset.id, ()
        )
        self._note_keys(
            dataset.upload_key,
            dataset.table_key,
            *(part.upload_key for part in parts),
            *(() if pairs is None else (pairs["upload_key"], pairs["table_key"])),
        )
        old_id, name, number = dataset.id, dataset.name, dataset.version
        repository.delete_dataset(self._session, self._owner, old_id)
        new_dataset_id = None
        if version["new"] is not None:
            new_dataset_id = self._insert(values, pairs, version["new"])
        self._new_ids[old_id] = new_dataset_id
        self._report["datasets"].append(
            {
                "dataset_id": old_id,
                "name": name,
                "version": number,
                "rows": version["rows"],
                "replaced_by": new_dataset_id,
            }
        )
        failpoints.reach("erase_version")

    def _insert(self, values: Json, pairs: Json | None, new: Json) -> str:
        found, upload = new["found"], new["upload_blob"]
        id_ = new_id("ds")
        roles = (
            "rows",
            "positives",
            "negatives",
            "label",
            "labels",
            "item",
            "positive",
            "negative",
        )
        more = ("queries", "grades", "columns", "warnings", "dialect")
        old_id = values["id"]
        values |= {name: found[name] for name in (*roles, *more)}
        values |= {
            "id": id_,
            "job_id": self._claim.job_id,
            "first_id": values["first_id"] or old_id,
            "content_type": new["upload"]["content_type"],
            "content_encoding": None,
            "upload_key": upload.key,
            "upload_sha256": upload.sha256,
            "bytes": upload.bytes,
            "table_key": new["table"].key,
            "table_bytes": new["table"].bytes,
            "sha256": found["content_sha256"],
            "reading": {**values["reading"], **new["reading"]},
        }
        for name in ("parent_id", "base_id"):
            values[name] = self._new_ids.get(values[name] or "") or values[name]
        repository.insert_dataset(self._session, values)
        self._session.add(profile_of(id_, new["profile"]))
        if pairs is not None and (own := new["pairs"]) is not None:
            pairs |= {name: own[name] for name in ("pairs", "items", "weighted")}
            pairs |= {
                "id": id_,
                "job_id": self._claim.job_id,
                "content_type": own["upload"]["content_type"],
                "content_encoding": None,
                "upload_key": own["upload_blob"].key,
                "bytes": own["upload_blob"].bytes,
                "sha256": own["upload_blob"].sha256,
                "table_key": own["table"].key,
                "table_bytes": own["table"].bytes,
            }
            pairs.pop("owner", None)
            repository.insert_pairs(self._session, pairs)
        self._session.flush()
        return id_

    def _cancel_jobs(self, dataset: Dataset) -> None:
        for job in repository.unfinished_jobs(self._session, self._owner, dataset.id):
            error = queue.problem(
                "dataset_erased", "Cancelled", f"rows of dataset {dataset.id} are erased"
            )
            queue.end_locked(self._session, job, JobState.CANCELLED, error)
            self._report["cancelled_jobs"].append(job.id)

    def _forget(self, dataset: Dataset, words: Words) -> None:
        """Remove what was derived from rows and does not go with the dataset."""
        session, owner = self._session, self._owner
        entity = self._erasure.entity_id

        def is_of(document: Any) -> bool:
            return mentions(document, entity) or mentions_words(document, words)

        trained = repository.models_trained_on(session, owner, dataset)
        more = trained.union(self._calibrated.get(dataset.id, ()))
        for model in repository.models_of(session, owner, dataset.id, more):
            may_have_rows = model.id in trained or model.dataset_id == dataset.id
            self._forget_in_model(model, dataset, is_of, may_have_rows=may_have_rows)
        for table, id_, documents in repository.outputs_of(session, owner, dataset.id):
            if is_of(documents):
                repository.delete_output(session, table, owner, id_)
                self._report["evaluations"].append(id_)
        self.delete_results(repository.batch_scores_of(session, owner, dataset.id))
        repository.forget_errors(session, owner, dataset.id, _FORGOTTEN)
        repository.forget_responses(session, owner, [dataset.id])

    def _forget_in_model(
        self,
        model: Model,
        dataset: Dataset,
        is_of: Callable[[Any], bool],
        *,
        may_have_rows: bool,
    ) -> None:
        known = self._models
        if model.id in known and known[model.id]["retired"]:
            return
        keys = _keys_of(dataset, self._erasure.key_columns)
        members = repository.members_of(self._session, model.id)
        retires = may_have_rows and has_rows(model, members, keys)
        if retires:
            holds.check(self._session, self._owner, model_id=model.id)
            self._check_may_retire(model)
        if model.id not in known:
            known[model.id] = {
                "model_id": model.id,
                "name": model.name,
                "version": model.version,
                "retired": retires,
            }
            self._report["models"].append(known[model.id])
        else:
            known[model.id]["retired"] = retires
        if retires:
            self._note_keys(model.artifact_key)
            name = model.name
            repository.delete_model(self._session, self._owner, model.id)
            models.forget_name(self._session, self._owner, name)
        else:
            repository.drop_reference_rows(self._session, model.id)
            repository.drop_groups(self._session, model.id, is_of)

    def _check_may_retire(self, model: Model) -> None:
        assert self._erasure.entity_id is not None
        name = without_id(model.name, self._erasure.entity_id)
        which = f"{name} v{model.version} ({model.id})"
        if not self._erasure.retire_models:
            raise Conflict(
                f"the artifact of {which} has rows or keys of its training data, so the model must be deleted: "
                "request the erasure with retire_models: true",
                code="model_has_rows",
            )
        aliases = model_rows.pointing_at(self._session, self._owner, model.id)
        if aliases:
            aliases = without_id(list(aliases), self._erasure.entity_id)
            raise Conflict(
                f"the artifact of {which} has rows or keys of its training data, so the model must be deleted; "
                f"first move or delete its aliases: {', '.join(aliases[:5])}",
                code="model_in_use",
            )

    def delete_results(self, ids: Any) -> None:
        for id_, key in repository.delete_batch_scores(self._session, self._owner, ids):
            self._note_keys(key)
            self._report["batch_scores"].append(id_)

    def delete_upload(self, id_: str) -> None:
        parts = repository.parts_of_datasets(self._session, self._owner, id_).get(id_, ())
        keys = [part.upload_key for part in parts]
        if (dataset := repository.lock_dataset(self._session, self._owner, id_)) is not None:
            if dataset.status != DatasetStatus.INVALID:
                return
            holds.check(self._session, self._owner, dataset_id=id_)
            keys.append(dataset.upload_key)
            self._cancel_jobs(dataset)
            repository.forget_errors(self._session, self._owner, id_, _FORGOTTEN)
            repository.forget_responses(self._session, self._owner, [id_])
            repository.delete_dataset(self._session, self._owner, id_)
        else:
            holds.check(self._session, self._owner)
            if not repository.delete_upload(self._session, self._owner, id_):
                return
        self._note_keys(*keys)
        self._report["uploads"].append(id_)

    def delete_evidence(self, keys: list[str]) -> None:
        """Revisions and requests, with the hashes of files, remain."""
        for key in keys:
            for what, model_id in repository.with_evidence(self._session, self._owner, key):
                holds.check(self._session, self._owner, model_id=model_id)
                if what not in self._report["evidence"]:
                    self._report["evidence"].append(what)
            repository.forget_evidence(self._session, self._owner, key)
        self._note_keys(*keys)

    def _note_keys(self, *keys: str | None) -> None:
        self._old_keys |= dict.fromkeys(key for key in keys if key)


def _values_of(row: Any) -> Json:
    """Return columns by attribute."""
    of_table = type(row).__mapper__.column_attrs
    return {each.key: getattr(row, each.key) for each in of_table if each.key != "n_columns"}


def has_rows(model: Model, members: list[Json], keys: list[str]) -> bool:
    """Return True if the artifact has training rows, or keys as categories.

    Only the Gaussian kernel with landmarks stores rows: its landmarks are training rows.
    """
    if any(feature["name"] in keys for feature in model.features):
        return True
    return any(mentions(each, "nystroem") for each in (model.parameters, members))


_CHANGED = "you change or delete it, or what it belongs to"
_UNTIL = {
    "audit_entries": "the audit log is pruned: no entry can be changed",
    "alias_requests": "it is pruned after newer requests",
    "model_alias_history": "never: the history of an alias is kept",
}


def _remains(
    session: Session, owner: str, erasure: Erasure, report: ErasureReport, unreadable: list[str]
) -> Any:
    found: list[tuple[str, str | None, str]] = [
        (
            "backups",
            None,
            "deleted by `rankwright backup --keep` or by you; a restored backup has the rows again",
        ),
        (
            "bucket_versions",
            None,
            "deleted by the lifecycle rule of the bucket, if it keeps versions",
        ),
        (
            "caches",
            None,
            "copies of files of a bucket on other machines: deleted when the cache needs the space",
        ),
        ("logs", None, "never in them: logs have no values of rows"),
        ("downloads", None, "files that you have downloaded"),
    ]
    found.append(("database_free_space", None, "overwritten by VACUUM, or when it is used again"))
    everything = repository.datasets(session, owner)
    by_id = {dataset.id: dataset for dataset in everything}
    parts = repository.parts_of_datasets(session, owner)
    for dataset in everything:
        if _is_unsearchable(dataset, by_id) and _keys_of(dataset, erasure.key_columns):
            found.append(
                (
                    "unsearchable_dataset",
                    dataset.id,
                    "you delete it: its earlier version was deleted",
                )
            )
    for id_ in unreadable:
        of_archive = [what for what, _ in repository.with_evidence(session, owner, id_)]
        found += [
            ("unreadable_copy", which, "you restore its file and repeat the request, or delete it")
            for which in of_archive or [id_]
        ]
    sources = [each.source for each in everything if each.source is not None]
    connections = {each["connection"] for each in sources if "connection" in each}
    found += [
        (
            "source",
            name,
            "you erase the person there; otherwise the next refresh has the rows again",
        )
        for name in sorted(connections)
    ]
    assert erasure.entity_id is not None
    for table, key in repository.search_texts(session, owner, erasure.entity_id):
        found.append(("text", f"{table} {key}", _UNTIL.get(table, _CHANGED)))
    found += [
        ("values_in_models", each["model_id"], "you delete the model, and train it again")
        for each in report["models"]
        if not each["retired"]
    ]
    found += [
        ("values_in_models", model.id, "you delete the model: its training dataset is gone")
        for model in repository.models_of_purged_datasets(session, owner)
        if has_rows(model, repository.members_of(session, model.id), list(erasure.key_columns))
        or repository.has_reference_rows(session, model.id)
    ]
    for files in parts.values():
        for part in files:
            if part.path is not None:
                found.append(("files_on_the_server", part.path, "the operator deletes the file"))
    return [{"what": what, "resource": which, "until": until} for what, which, until in found]


def _take_over(session: Session, job: Job) -> None:
    erasure = repository.find(session, job.owner, job.spec["erasure_id"], lock=True)
    if erasure is not None:
        erasure.job_id = job.id


KIND = JobKind(
    name=ERASE,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete,
    after_retry=_take_over,
    changes_all_models=True,
    skips_damaged=True,
)
