"""Uploads of several files, which become one dataset: open, add parts, close or delete.

The parts are numbered from 1, and their order is the order of the rows. They may arrive in any order, also in parallel.
There is no dataset until the upload is closed, so that nobody sees an incomplete table.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from app.access import holds, quotas
from app.datasets import repository
from app.datasets import service as datasets
from app.datasets.description import (
    Format,
    describe,
    describe_version,
    find_dialect,
)
from app.datasets.fields import TableFields, VersionFields
from app.datasets.files_tasks import folder_of, hash_of, manifest_of
from app.datasets.table_folders import is_partition, lake_of, lake_rule
from app.ingest.detection import find_format
from app.ingest.formats import CONTENT_TYPES, SUFFIXES, type_of_file
from app.platform import catalogue
from app.platform.blobs import BlobWriter, stamp_of
from app.platform.errors import Conflict, Invalid, NotFound, TooLarge, shown
from app.platform.ids import is_id, new_id
from app.platform.settings import Settings
from app.platform.sql import Page, Session
from app.platform.tables import Dataset, DatasetKind, Upload, UploadPart, VersionMode

MAX_PARTS = 1000
"""Most parts of an upload: each is read by a job of its own."""
MAX_OPEN_UPLOADS = 100
"""Most uploads of an owner that are not closed."""
VERSION_OF = "version_of"
"""The field of an upload that names the dataset that it is a version of."""
MODE = "mode"
_MAX_NAMED = 10
_MAX_LISTED_FILES = 10 * MAX_PARTS
"""Most entries of a folder that are looked at."""


def open_upload(
    session: Session, settings: Settings, owner: str, given: Mapping[str, str]
) -> Upload:
    """Raises Invalid for a wrong description, NotFound or Conflict for an impossible version, or too many uploads."""
    if VERSION_OF in given or MODE in given:
        parent_id, new = _version_of(given)
        parent = datasets.find_parent(session, owner, parent_id, new.mode)
        if new.mode == VersionMode.APPEND and parent.kind == DatasetKind.PREFERENCES:
            detail = (
                f"a dataset of kind preferences cannot be extended by several files; {parent.id} is of kind "
                f"{parent.kind}: append one file at a time"
            )
            raise Invalid(detail, errors=[{"parameter": MODE, "detail": detail}])
    else:
        describe(given, also=(VERSION_OF, MODE))
    quotas.admit_bytes(session, settings, owner)
    if (count := repository.count_open_uploads(session, owner)) >= MAX_OPEN_UPLOADS:
        raise Conflict(
            f"an owner can have at most {MAX_OPEN_UPLOADS} open uploads; this one has {count}: close or "
            "delete some",
            code="too_many_open_uploads",
        )
    return repository.insert_upload(session, id=new_id("up"), owner=owner, fields=dict(given))


def find(session: Session, owner: str, upload_id: str, *, lock: bool = False) -> Upload:
    """With `lock`, locked until the transaction ends. Raises NotFound."""
    upload = None
    if is_id(upload_id, "up"):
        upload = repository.find_upload(session, owner, upload_id, lock=lock)
    if upload is None:
        raise NotFound(f"there is no upload {upload_id[:100]!r}")
    return upload


def find_with_parts(
    session: Session, owner: str, upload_id: str
) -> tuple[Upload, list[UploadPart]]:
    upload = find(session, owner, upload_id)
    return upload, repository.parts_of(session, upload.id)


def list_page(
    session: Session, owner: str, *, limit: int, after: str | None
) -> tuple[Page[Upload], dict[str, tuple[int, int]]]:
    """Newest first; returns the number and the bytes of each upload's parts, too."""
    page = repository.list_uploads(session, owner, limit=limit, after=after)
    return page, repository.sizes_of(session, [upload.id for upload in page.data])


def delete(session: Session, owner: str, upload_id: str) -> None:
    """Only if not closed. The sweeper later removes the bytes, to which no row refers any more."""
    holds.lock(session, owner)
    holds.check(session, owner)
    repository.delete_upload(session, owner, _find_open(session, owner, upload_id, lock=True).id)


def check_takes_part(
    session: Session,
    settings: Settings,
    owner: str,
    upload_id: str,
    number: int,
    format_: Format | None,
    size: int | None,
) -> bool:
    """Check that a part fits, as far as known before its bytes are received; True if its number exists.

    Raises NotFound, Conflict, Invalid or TooLarge.
    """
    upload = _find_open(session, owner, upload_id)
    if not 1 <= number <= MAX_PARTS:
        detail = f"the number of a part must be from 1 to {MAX_PARTS}, got {number}"
        raise Invalid(detail, errors=[{"parameter": "number", "detail": detail}])
    there = repository.parts_of(session, upload.id, number)
    if format_ is not None:
        if there:
            _check_same(there[0], format_, size)
        else:
            check_format(session, upload, format_, f"part {number}")
            _check_bytes(session, settings, upload, size or 0, f"part {number}")
    return bool(there)


def _check_bytes(
    session: Session, settings: Settings, upload: Upload, size: int, what: str
) -> None:
    """Raise TooLarge if `size` more bytes exceed the upload's limit. `what` names the part in the message."""
    most = settings.max_dataset_bytes
    _, there = repository.sizes_of(session, [upload.id]).get(upload.id, (0, 0))
    if there + size > most:
        raise TooLarge(
            f"the parts of an upload can have at most {most} bytes in total "
            f"(RANKWRIGHT_MAX_DATASET_BYTES); those of {upload.id} have {there}, and {what} has {size} "
            "more"
        )


def _check_same(
    part: UploadPart, format_: Format, size: int | None, sha256: str | None = None
) -> None:
    """Raise Conflict if the stored part differs from the new one; unknown values are not compared."""
    known = {
        "content type": (part.content_type, format_.content_type),
        "content encoding": (part.content_encoding or "none", format_.content_encoding or "none"),
        "charset": (_charset_of(part), _charset_of(format_)),
        "size in bytes": (part.bytes, part.bytes if size is None else size),
        "SHA-256": (part.sha256, sha256 or part.sha256),
    }
    for what, (there, sent) in known.items():
        if there != sent:
            raise Conflict(
                f"part {part.number} of {part.upload_id} already exists with different content: its {what} is "
                f"{there}, and that of the new part is {sent}",
                code="part_exists",
            )


def _charset_of(part: UploadPart | Format) -> str:
    """Return the Content-Type's character set. The default is UTF-8, although the bytes may be UTF-16."""
    return part.charset or "utf-8"


def add_part(
    session: Session,
    settings: Settings,
    owner: str,
    upload_id: str,
    number: int,
    received: datasets.StoredUpload,
) -> tuple[UploadPart, bool]:
    """Return the part's row, and True if it is new. The same bytes under the same number change nothing."""
    upload = _find_open(session, owner, upload_id, lock=True)
    there = repository.parts_of(session, upload.id, number)
    if there:
        _check_same(there[0], received.format, received.size, received.sha256)
        return there[0], False
    check_format(session, upload, received.format, f"part {number}")
    _check_bytes(session, settings, upload, received.size, f"part {number}")
    quotas.admit_bytes(session, settings, owner, received.size)
    format_ = received.format
    part = {
        "number": number,
        "content_type": format_.content_type,
        "content_encoding": format_.content_encoding,
        "charset": format_.charset,
        "bytes": received.size,
        "sha256": received.sha256,
        "upload_key": received.blob.key,
    }
    repository.add_parts(session, owner, upload.id, [part])
    return repository.parts_of(session, upload.id, number)[0], True


@dataclass(frozen=True)
class ServerFile:
    """A table below the folder for files: its path there, its format, and a stamp that changes with the file."""

    path: str
    format: Format
    bytes: int
    stamp: dict[str, int]


def find_files(settings: Settings, owner: str, path: str) -> list[ServerFile]:
    """Return the table at a path below the owner's folder, or all tables of a folder, sorted by name.

    Hidden files of a folder, and those whose names begin with `_`, are left out. Symbolic links are not followed.
    Raises Invalid for a path that leads out of the folder, for a file that is no table, and for an empty folder.
    """
    if settings.files_dir is None:
        raise _bad_path(
            "the service does not read files from the server: RANKWRIGHT_FILES_DIR is not set",
            "unsupported",
        )
    steps = PurePosixPath(path).parts
    if "\0" in path or path.startswith("/") or ".." in steps:
        raise _bad_path(
            f"path must be relative, without .. and NUL, got {shown(path)}", "file_not_allowed"
        )
    try:
        at = folder_of(settings.files_dir, owner).resolve(strict=True)
        for step in steps:
            at /= step
            if at.is_symlink():
                raise _bad_path(
                    f"path must not contain a symbolic link; {shown(step)} is one",
                    "file_not_allowed",
                )
        if not at.is_dir():
            return [_table_at(settings, at, path)]
        if (known := lake_of(at)) is not None:
            raise _bad_path(f"{shown(path)} {lake_rule(known)}", "file_not_allowed")
        with os.scandir(at) as entries:
            names = [e.name for e in islice(entries, _MAX_LISTED_FILES) if e.name[0] not in "._"]
        if not 1 <= len(names) <= MAX_PARTS:
            rule = f"a folder must have 1 to {MAX_PARTS} tables to become parts"
            raise _bad_path(f"{rule}; {shown(path)} has {len(names)}", "file_not_allowed")
        return [
            _table_at(settings, at / name, str(PurePosixPath(path, name))) for name in sorted(names)
        ]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a path"
        raise _bad_path(f"{shown(path)} cannot be read: {reason}", "file_not_found") from error


def _table_at(settings: Settings, at: Path, path: str) -> ServerFile:
    """The name implies the format. Raises Invalid if it is no table's, and OSError."""
    found = at.lstat()
    if is_partition(at.name) and stat.S_ISDIR(found.st_mode):
        raise _bad_path(
            f"{shown(path)} is a folder of a Hive partition, whose column is not in its files: upload the folder with "
            "the client, or write the column into the files",
            "file_not_allowed",
        )
    if not stat.S_ISREG(found.st_mode):
        raise _bad_path(
            f"{shown(path)} must be a regular file, not a link, folder or device",
            "file_not_allowed",
        )
    if not 0 < found.st_size <= settings.max_upload_bytes:
        raise _bad_path(
            f"a file must have 1 to {settings.max_upload_bytes} bytes (RANKWRIGHT_MAX_UPLOAD_BYTES); {shown(path)} has "
            f"{found.st_size}",
            "file_not_allowed",
        )
    content_type, encoding = type_of_file(at.name)
    if content_type is None:
        known = ", ".join(SUFFIXES)
        raise _bad_path(
            f"the name of a table must end in one of {known}, optionally followed by .gz or .zst; got "
            f"{shown(path)}",
            "file_not_allowed",
        )
    found_format = Format(*find_format(at, content_type, encoding))
    if found_format.content_type not in CONTENT_TYPES:
        raise _bad_path(
            f"{shown(path)} must be an archive of exactly one table", "file_not_allowed"
        )
    return ServerFile(path, found_format, found.st_size, stamp_of(found))


def _bad_path(detail: str, code: str) -> Invalid:
    return Invalid(detail, code=code, errors=[{"pointer": "/path", "detail": detail}])


def add_files(
    session: Session, settings: Settings, owner: str, upload_id: str, files: Sequence[ServerFile]
) -> tuple[Upload, list[UploadPart]]:
    """Return the upload with all its parts."""
    upload = _find_open(session, owner, upload_id, lock=True)
    there = repository.parts_of(session, upload.id)
    numbers = {part.path: part.number for part in there}
    last = max((part.number for part in there), default=0)
    if last + len(files) > MAX_PARTS:
        raise Conflict(
            f"an upload can have at most {MAX_PARTS} parts; its last part is number {last}, and these are "
            f"{len(files)} more",
            code="too_many_parts",
        )
    for file in files:
        if file.path in numbers:
            raise Conflict(
                f"{shown(file.path)} is already part {numbers[file.path]} of {upload.id}",
                code="part_exists",
            )
        if (
            not there
            and file is not files[0]
            and file.format.content_type != files[0].format.content_type
        ):
            raise Invalid(
                f"all parts must have the same format; {shown(file.path)} is {file.format.content_type}, and "
                f"{shown(files[0].path)} is {files[0].format.content_type}",
                code="parts_differ",
            )
    for format_, path in {file.format: file.path for file in reversed(files)}.items():
        check_format(session, upload, format_, shown(path))
    size = sum(file.bytes for file in files)
    _check_bytes(session, settings, upload, size, f"a list of {len(files)} files")
    quotas.admit_bytes(session, settings, owner, size)
    parts = [
        {
            "number": number,
            "content_type": file.format.content_type,
            "content_encoding": file.format.content_encoding,
            "bytes": file.bytes,
            "path": file.path,
            "stamp": file.stamp,
        }
        for number, file in enumerate(files, start=last + 1)
    ]
    repository.add_parts(session, owner, upload.id, parts)
    return find_with_parts(session, owner, upload.id)


def check_format(session: Session, upload: Upload, format_: Format, what: str) -> None:
    """Raise Invalid if the format differs from the other parts', or does not support the upload's dialect."""
    find_dialect(_description_of(session, upload, format_), format_)
    first = repository.first_part(session, upload.id)
    if first is None:
        return
    for name, wanted, got in (
        ("content type", first.content_type, format_.content_type),
        ("charset", _charset_of(first), _charset_of(format_)),
    ):
        if wanted != got:
            raise Invalid(
                f"all parts must have the same format; the {name} of {what} is {shown(got)}, and that of part "
                f"{first.number} is {shown(wanted)}",
                code="parts_differ",
            )


def manifest(session: Session, owner: str, upload_id: str) -> bytes:
    """Return the manifest of the parts so far, which `close` requires. Raises NotFound."""
    upload = find(session, owner, upload_id)
    return manifest_of(repository.parts_of(session, upload.id))


def close(
    session: Session,
    settings: Settings,
    owner: str,
    upload_id: str,
    n_parts: int,
    written: BlobWriter,
) -> tuple[Dataset, bool]:
    """Create a dataset and the job that reads it; returns it, and True if it is new. A closed upload has its dataset.

    `written` contains the `manifest`, read before the transaction. It is published here. Raises Conflict if a part has
    been added since.
    """
    upload = find(session, owner, upload_id, lock=True)
    parts = repository.parts_of(session, upload.id)
    _check_complete(upload, parts, n_parts)
    if upload.dataset_id is not None:
        return datasets.find(session, owner, upload.dataset_id), False
    first = parts[0]
    if hashlib.sha256(manifest_of(parts)).hexdigest() != written.sha256:
        raise Conflict(
            f"the parts of {upload.id} changed while it was being closed; close it again"
        )
    blob = catalogue.commit(session, written)
    received = datasets.StoredUpload(
        blob,
        sum(part.bytes for part in parts),
        hash_of([part.sha256 for part in parts]) or blob.sha256,
        Format(first.content_type, first.content_encoding, first.charset),
    )
    if VERSION_OF in upload.fields:
        parent_id, new = _version_of(upload.fields)
        dataset = datasets.accept_version(
            session, settings, owner, parent_id, new, received, upload.id
        )
        before = datasets.find(session, owner, parent_id).sha256
        if new.mode == VersionMode.APPEND:  # computed as if each part had been appended
            chain = hash_of([before, *(part.sha256 for part in parts)])
            dataset.sha256 = chain or dataset.sha256
    else:
        described = describe(upload.fields)
        dataset = datasets.accept(
            session, settings, owner, described, received, upload_id=upload.id
        )
    repository.set_dataset(session, owner, upload.id, dataset.id)
    return dataset, True


def _check_complete(upload: Upload, parts: list[UploadPart], n_parts: int) -> None:
    """Raise Conflict unless the upload has the parts 1 to `n_parts`, and no other."""
    wanted, there = set(range(1, n_parts + 1)), {part.number for part in parts}
    rule = f"{upload.id} must have the parts 1 to {n_parts} to be closed"
    if missing := wanted - there:
        raise Conflict(f"{rule}; it lacks {_listed(missing)}", code="parts_missing")
    if more := there - wanted:
        raise Conflict(f"{rule}; it also has {_listed(more)}", code="parts_left_over")


def _listed(numbers: Collection[int]) -> str:
    shown = ", ".join(map(str, sorted(numbers)[:_MAX_NAMED]))
    return f"{len(numbers)}: {shown}" + (", …" if len(numbers) > _MAX_NAMED else "")


def _description_of(session: Session, upload: Upload, format_: Format) -> TableFields:
    """Raises NotFound or Conflict for a version that can no longer be created."""
    if VERSION_OF not in upload.fields:
        return describe(upload.fields)
    parent_id, new = _version_of(upload.fields)
    parent = datasets.find_parent(session, upload.owner, parent_id, new.mode)
    return datasets.describe_as(parent, new, format_)


def _version_of(fields: Mapping[str, str]) -> tuple[str, VersionFields]:
    """Return the parent dataset's id and the description of the version. Raises Invalid."""
    if VERSION_OF not in fields:
        detail = f"{MODE} requires {VERSION_OF}: the dataset that the files are a new version of"
        raise Invalid(detail, errors=[{"parameter": MODE, "detail": detail}])
    new = describe_version({name: fields[name] for name in fields if name != VERSION_OF})
    return fields[VERSION_OF], new


def _find_open(session: Session, owner: str, upload_id: str, *, lock: bool = False) -> Upload:
    """Raises Conflict if the upload is closed."""
    upload = find(session, owner, upload_id, lock=lock)
    if upload.dataset_id is not None:
        raise Conflict(
            f"{upload.id} is closed and has become the dataset {upload.dataset_id}: its parts cannot be "
            "changed",
            code="upload_closed",
        )
    return upload
