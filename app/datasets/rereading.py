"""Reading of a stored table again with other fields, into a new version, without a new upload."""

from __future__ import annotations

from collections.abc import Mapping

from app.access import quotas
from app.datasets import repository
from app.datasets import service as datasets
from app.datasets.description import Format, describe
from app.datasets.fields import TableFields
from app.ingest.fields import (
    ColumnField,
    ColumnsField,
    MarkedColumnsField,
    NamesField,
    join_names,
    split_names,
)
from app.ingest.formats import merge
from app.platform.audit import describe_changes
from app.platform.blobs import Blob, BlobStore
from app.platform.errors import Conflict, Invalid
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.platform.tables import Dataset, DatasetStatus, VersionMode

Changes = Mapping[str, str | None]
"""Fields of an upload that are another text from now on; None: their default."""
_APART = (("group", "query"), ("query", "group"))


def describe_again(dataset: Dataset, changes: Changes) -> tuple[TableFields, dict[str, str]]:
    """Return the description of a table that will be read again, and its fields. Raises Invalid.

    An unchanged field stays unless it contradicts a changed field: `positive` belongs to its label, some fields belong
    to one kind, a column has one role, and rows have either groups or queries.
    """
    types, before = TableFields.types(), TableFields.of(dataset).texts()
    said = {name: text for name, text in changes.items() if text is not None}
    kept = {name: text for name, text in before.items() if name not in changes}
    kind = (kept | said).get("kind", TableFields().kind)
    kept = {name: text for name, text in kept.items() if kind not in types[name].not_for}
    for given, other in _APART:
        if given in said:
            kept.pop(other, None)
    kept = {name: text for name, text in merge(kept, said).items() if name not in said}
    for name, text in list(kept.items()):
        if not (columns := _columns(name, text)):
            continue
        taken = {
            column
            for other, now in said.items()
            if not _may_share(name, other)
            for column in _columns(other, now)
        }
        left = [column for column in columns if column not in taken]
        if left:
            kept[name] = join_names(left) if isinstance(types[name], NamesField) else left[0]
        else:
            del kept[name]
    if (kept | said).get("label") != dataset.label:
        kept.pop("positive", None)
    fields = kept | said
    try:
        return describe(fields), fields
    except Invalid as error:
        for each in error.errors:
            each["pointer"] = f"/{each.pop('parameter')}"
        raise


def _columns(name: str, text: str) -> list[str]:
    """Return the columns that an upload field refers to."""
    type_ = TableFields.types().get(name)
    if isinstance(type_, ColumnsField | MarkedColumnsField):
        return split_names(text)
    return [text] if isinstance(type_, ColumnField) else []


def _may_share(one: str, other: str) -> bool:
    """A protected column has a type, too."""
    return "protected" in (one, other) and not {"categorical", "numeric"}.isdisjoint((one, other))


def find_readable(session: Session, owner: str, dataset_id: str) -> Dataset:
    """Raises NotFound, and Conflict if the upload is not a complete table."""
    dataset = datasets.find(session, owner, dataset_id)
    if dataset.mode == VersionMode.APPEND:
        raise Conflict(
            f"only a complete table can be reread: the upload of {dataset.id} contains rows appended to "
            f"{dataset.parent_id}",
            code="appended_version",
        )
    if dataset.source is not None and dataset.status != DatasetStatus.READY:
        raise Conflict(
            f"the rows of {dataset.id} come from a source, and can be reread once it is ready; it is {dataset.status}",
            code="dataset_not_ready",
        )
    return dataset


def check(
    blobs: BlobStore,
    fetch: datasets.Fetch,
    settings: Settings,
    dataset: Dataset,
    changes: Changes,
    n_parts: int,
) -> Json:
    """Read the table as the worker would, without storing anything. Raises BadTable with every error."""
    if n_parts:
        raise Invalid(
            f"only a table of one file can be checked; the upload of {dataset.id} has {n_parts} parts"
        )
    description, _ = describe_again(dataset, changes)
    path = fetch(dataset.upload_key)
    return datasets.check_table(blobs, settings, description, path, _format_of(dataset))


def count_parts(session: Session, dataset: Dataset) -> int:
    """Return 0 for a table that was uploaded in one request."""
    upload = repository.upload_of(session, dataset.owner, dataset.id)
    return 0 if upload is None else len(repository.parts_of(session, upload.id))


def _format_of(dataset: Dataset) -> Format:
    return Format(dataset.content_type, dataset.content_encoding)  # the dialect has the charset


def accept(
    session: Session, settings: Settings, owner: str, dataset_id: str, changes: Changes
) -> Dataset:
    """Create a dataset of the same bytes and its job, in the caller's transaction.

    It is the next version of the series, or the first one of a new series if it has another name. Both datasets then
    refer to the bytes, which are stored as long as one of the datasets exists.
    """
    # lock it until a second row names the bytes
    repository.lock_shared(session, owner, [dataset_id])
    first = find_readable(session, owner, dataset_id)
    description, fields = describe_again(first, changes)
    blob = Blob(first.upload_key, first.upload_sha256, first.bytes)
    received = datasets.StoredUpload(blob, first.bytes, first.sha256, _format_of(first))
    # This locks the name before the quota, as `accept` does.
    number = repository.next_version(session, owner, description.name)
    source = datasets.VersionSource(first if description.name == first.name else None, number)
    upload = repository.upload_of(session, owner, first.id)
    named, before = f"{description.name}:{number}", TableFields.of(first).texts()
    if upload is None:
        made = datasets.accept(session, settings, owner, description, received, source)
        made.source = first.source  # an entity that is erased is erased here, too
        describe_changes(session, f"Dataset {named}", before, description.texts())
        return made
    quotas.admit_bytes(session, settings, owner, first.bytes)
    again = repository.insert_upload(session, id=new_id("up"), owner=owner, fields=fields)
    repository.copy_parts(session, owner, upload.id, again.id)
    made = datasets.accept(
        session, settings, owner, description, received, source, upload_id=again.id
    )
    made.source = first.source
    repository.set_dataset(session, owner, again.id, made.id)
    describe_changes(session, f"Dataset {named}", before, description.texts())
    return made
