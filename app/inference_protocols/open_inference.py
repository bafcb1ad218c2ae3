"""The Open Inference Protocol, version 2, over HTTP: scoring for unmodified clients of Triton and KServe.

The protocol is https://github.com/kserve/open-inference-protocol (`inference_rest.md`), with the extension for binary
tensors of Triton Inference Server. A model takes its features as tensors in one of three forms: one tensor per feature
of shape [N] or [N, 1], or one tensor of shape [N, F] that has all F features in the model's order. Tensors that are no
feature are passed over, and named in the header `X-Ignored-Inputs`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson

from app.datasets.description import CONTENT_ENCODINGS
from app.ingest import json_text
from app.ingest.errors import BadTable, Errors, too_many_rows
from app.ingest.rows import Rows, Source
from app.ingest.values import NUMERIC, spell
from app.platform.errors import (
    Invalid,
    Malformed,
    TooLarge,
    UnsupportedMedia,
    first_doubled,
    shown,
)
from app.scoring import service as scoring
from app.scoring.decisions import DECISION_ID, REVIEW, Decisions
from app.scoring.json_rows import check_brackets
from app.scoring.probabilities import DEFAULT, PROBABILITY
from app.scoring.reasons import Estimates
from app.scoring.service import RowScores, Served
from app.scoring.table_rows import ALL, Bounds, RowReader, TableOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from core.base.ranker import Floats

HEADER_LENGTH = "inference-header-content-length"
"""Names the length of the JSON before the binary tensors, in bytes, before compression."""
EXTENSIONS = ("binary_tensor_data",)
DTYPES: Mapping[str, str] = {
    "BOOL": "|b1",
    "UINT8": "|u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "|i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}
"""numpy's name of each datatype of the protocol but BYTES, little-endian as the binary extension has them."""
BYTES = "BYTES"
OUTPUTS = ("score", "fpr", "tpr", "probability", "reasons")
"""For a model with several labels, `score` has the scores of all labels, in the shape [N, labels]."""
MAX_INPUTS = 100_000
"""Tensors of one request: more than any table may have columns."""
BATCH_ROWS = 65_536
"""Rows that are checked and scored at a time."""


@dataclass(frozen=True)
class Tensor:
    """An input tensor: a flat numpy array, or a flat list of JSON values or bytes."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: Any

    @property
    def n_columns(self) -> int:
        return self.shape[1] if len(self.shape) == 2 else 1


@dataclass(frozen=True)
class RequestedOutput:
    """Its name, and whether its data are binary."""

    name: str
    binary: bool


@dataclass(frozen=True)
class InferRequest:
    """`outputs` is empty if the client names none."""

    id: str | None
    inputs: list[Tensor]
    outputs: list[RequestedOutput]
    binary: bool
    row_ids: Tensor | None = None
    """The tensor that has the id of each row, if it is asked to come back."""

    @property
    def rows(self) -> int:
        """As the shapes state it."""
        return max(tensor.shape[0] for tensor in self.inputs)

    @property
    def asks_for_reasons(self) -> bool:
        """True if reasons for the scores are requested."""
        return any(output.name == "reasons" for output in self.outputs)


def decompress(body: bytes, encoding: str | None, max_bytes: int) -> bytes:
    """Decompress by Content-Encoding, also deflate, as Triton's client may send.

    UnsupportedMedia: for another one. Malformed: if it is damaged. TooLarge: if it takes more than `max_bytes`.
    """
    name = (encoding or "").strip().lower()
    if name in ("", "identity"):
        return body
    if name not in (known := (*CONTENT_ENCODINGS, "deflate")):
        raise UnsupportedMedia(
            f"Content-Encoding must be one of {', '.join(known)}, got {shown(encoding)}"
        )
    from app.ingest.stream import Stream

    try:
        with Stream(body, name, max_bytes) as stream:
            return stream.read()
    except BadTable as error:
        kind = TooLarge if error.code == "too_large" else Malformed
        raise kind(error.detail) from error


def read_request(
    body: bytes,
    header_length: str | None,
    max_text: int,
    max_rows: int,
    row_id: str | None = None,
) -> InferRequest:
    """Parse a request; `row_id` names the tensor of ids, unless the body does. Raises Malformed and Invalid.

    Memory is never allocated by the sizes that the body states: shapes are checked against the values received. Raises
    TooLarge if JSON and the texts of BYTES tensors exceed `max_text` bytes, because each of their values becomes an
    object that needs many times its bytes.
    """
    end = _end_of_json(body, header_length)
    _check_text(end, max_text)
    given = parse_json(body[:end], max_rows)
    if not isinstance(given, dict):
        raise Malformed("the body must be a JSON object")
    inputs = _objects(given, "inputs", required=True)
    names = [_name(each, "inputs", i) for i, each in enumerate(inputs)]
    if (twice := first_doubled(names)) is not None:
        raise Invalid(f"input names must differ; {shown(twice)} occurs twice")
    position, text = end, end
    tensors = []
    for i, each in enumerate(inputs):
        pointer = f"/inputs/{i}"
        size = _binary_size(each.get("parameters"), f"{pointer}/parameters")
        if size is not None and each.get("datatype") == BYTES:
            text += min(size, len(body))
            _check_text(text, max_text)
        tensors.append(_read_tensor(each, pointer, body, position, size))
        position += size or 0
    if position != len(body):
        raise Malformed(
            f"the body has {len(body) - position} bytes after its last binary tensor"
            if position > end
            else f"the body has {len(body) - end} bytes after its JSON"
        )
    binary = _flag(given.get("parameters"), "binary_data_output", "/parameters") or False
    outputs = _read_outputs(given, binary)
    id_ = given.get("id")
    if id_ is not None and not isinstance(id_, str):
        raise _wrong("/id", "id must be a string")
    row_ids = _row_ids(given.get("parameters"), row_id, tensors)
    return InferRequest(id_, tensors, outputs, binary, row_ids)


def _row_ids(parameters: Any, name: str | None, tensors: Sequence[Tensor]) -> Tensor | None:
    """Return the named tensor of ids. Raises Invalid without it, or without one id for each row."""
    if isinstance(parameters, dict) and "id" in parameters:
        if name is not None:
            raise _wrong("/parameters/id", "id must be given once: in the query or in the body")
        name = parameters["id"]
        if not isinstance(name, str) or not name:
            raise _wrong("/parameters/id", f"id must name an input, got {shown(name)}")
    if name is None:
        return None
    found = next((tensor for tensor in tensors if tensor.name == name), None)
    if found is None or found.n_columns != 1:
        raise Invalid(
            f"the inputs must include {shown(name)}, which has the ids, with the shape [rows] or [rows, 1]",
            code="invalid_id",
        )
    for number, value in enumerate(found.values if isinstance(found.values, list) else ()):
        if not _is_id(value):
            raise Invalid(
                f"id {number} must be a string, a number, true, false or null, got {shown(value)}",
                code="invalid_id",
            )
    if any(tensor.shape[0] != found.shape[0] for tensor in tensors):
        raise Invalid(f"{shown(name)} must have an id for each row", code="invalid_id")
    return found


def _is_id(value: Any) -> bool:
    if isinstance(value, bytes):
        try:
            value.decode()
        except UnicodeDecodeError:
            return False
        return True
    return value is None or isinstance(value, str | int | float)


def _check_text(size: int, most: int) -> None:
    """Raise TooLarge for more than `most` bytes of JSON and strings."""
    if size > most:
        raise TooLarge(
            f"JSON and the strings of tensors can have at most {most} bytes after decompression, got "
            f"{size}"
        )


def _end_of_json(body: bytes, header_length: str | None) -> int:
    """The header states the length; by default the whole body. Raises Malformed."""
    if header_length is None:
        return len(body)
    if not (header_length.isascii() and header_length.isdigit() and len(header_length) < 19):
        raise Malformed(f"{HEADER_LENGTH} must be a number of bytes, got {shown(header_length)}")
    if int(header_length) > len(body):
        raise Malformed(
            f"{HEADER_LENGTH} must be at most the length of the body ({len(body)}), got {header_length}"
        )
    return int(header_length)


def parse_json(text: bytes, max_rows: int) -> Any:
    """Parse JSON; a bare NaN, as Triton's clients send it, is null. Raises Invalid for too many lists and objects.

    Both forms are parsed by the same parser, so that it rejects the same texts in both (invalid Unicode, too deep
    nesting).
    """
    check_brackets(text, max_rows)
    try:
        return json_text.parse(text)
    except orjson.JSONDecodeError as error:
        if b"NaN" not in text:
            raise Malformed(f"the body is not JSON: {error}", code="malformed_json") from error
    try:
        return json_text.parse(_TEXT_OR_NAN.sub(_null_for_nan, text))
    except orjson.JSONDecodeError as error:
        raise Malformed(f"the body is not JSON: {error}", code="malformed_json") from error


# All between two bare NaNs is one match, of which nothing is ever tried again: otherwise a hostile body would take a
# hundred times its memory. A string without its end matches as well.
_TEXT_OR_NAN = re.compile(rb'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[^"N]++|N(?!aN))++|NaN', re.DOTALL)


def _null_for_nan(found: re.Match[bytes]) -> bytes:
    return b"null" if found[0] == b"NaN" else found[0]


def _objects(given: Mapping[str, Any], name: str, *, required: bool) -> list[dict[str, Any]]:
    """Return nothing if it is absent and not required. Raises Invalid."""
    found = given.get(name)
    if found is None and not required:
        return []
    if not isinstance(found, list) or not (found or not required):
        raise _wrong(f"/{name}", f"{name} must be a list of at least one object")
    if len(found) > MAX_INPUTS:
        raise _wrong(f"/{name}", f"{name} must have at most {MAX_INPUTS} members, got {len(found)}")
    for i, each in enumerate(found):
        if not isinstance(each, dict):
            raise _wrong(f"/{name}/{i}", f"{name}[{i}] must be an object")
    return found


def _name(given: Mapping[str, Any], of: str, i: int) -> str:
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise _wrong(f"/{of}/{i}/name", f"the name of {of}[{i}] must be a string")
    return name


def _read_tensor(
    given: Mapping[str, Any], pointer: str, body: bytes, position: int, size: int | None
) -> Tensor:
    """Read `size` binary bytes at this position, or JSON data if it is None."""
    name, datatype = given["name"], given.get("datatype")
    if not isinstance(datatype, str) or (datatype not in DTYPES and datatype != BYTES):
        known = ", ".join([*DTYPES, BYTES])
        raise _wrong(
            f"{pointer}/datatype",
            f"the datatype of {shown(name)} must be one of {known}, got {shown(datatype)}",
        )
    shape = given.get("shape")
    if (
        not isinstance(shape, list)
        or len(shape) not in (1, 2)
        or not all(type(n) is int and 0 <= n < 2**40 for n in shape)
    ):
        raise _wrong(
            f"{pointer}/shape",
            f"the shape of {shown(name)} must be [rows] or [rows, columns], got {shown(shape)}",
        )
    count = math.prod(shape)
    if size is None:
        flat = _flat(given.get("data"), shape, name, f"{pointer}/data")
        return Tensor(name, datatype, tuple(shape), flat)
    if "data" in given:
        raise _wrong(
            f"{pointer}/data", f"{shown(name)} must have either data or binary data, not both"
        )
    if size > len(body) - position:
        raise Malformed(
            f"the binary data of {shown(name)} must have {size} bytes, but the body has only "
            f"{len(body) - position} left"
        )
    part = body[position : position + size]
    read: Callable[..., Any] = _split_bytes if datatype == BYTES else _read_numbers
    values = read(part, datatype, count, name, f"{pointer}/shape")
    return Tensor(name, datatype, tuple(shape), values)


def _binary_size(parameters: Any, pointer: str) -> int | None:
    """Return None for data in JSON. Raises Invalid."""
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        raise _wrong(pointer, "parameters must be an object")
    size = parameters.get("binary_data_size")
    if size is not None and (type(size) is not int or size < 0):
        raise _wrong(
            f"{pointer}/binary_data_size",
            f"binary_data_size must be a number of bytes, got {shown(size)}",
        )
    return size


def _flat(data: Any, shape: Sequence[int], name: str, pointer: str) -> list[Any]:
    """Data may be a flat list, or a list of rows."""
    if not isinstance(data, list):
        raise _wrong(pointer, f"the data of {shown(name)} must be a list")
    if data and isinstance(data[0], list):
        columns = shape[1] if len(shape) == 2 else 1
        for i, row in enumerate(data):
            if not isinstance(row, list) or len(row) != columns:
                raise _wrong(
                    f"{pointer}/{i}", f"row {i} of {shown(name)} must have {columns} values"
                )
        data = [value for row in data for value in row]
    _check_count(len(data), shape, name, pointer)
    values: list[Any] = data
    return values


def _check_count(count: int, shape: Sequence[int], name: str, pointer: str) -> None:
    """Raise Invalid unless the count fits the shape."""
    if count != math.prod(shape):
        raise _wrong(
            pointer,
            f"{shown(name)} must have {math.prod(shape)} values for its shape {list(shape)}, got {count}",
        )


def _read_numbers(
    part: bytes, datatype: str, count: int, name: str, pointer: str
) -> npt.NDArray[Any]:
    """Raises Invalid for a wrong number of bytes."""
    kind = np.dtype(DTYPES[datatype])
    if len(part) != count * kind.itemsize:
        raise _wrong(
            pointer,
            f"{shown(name)} must have {count * kind.itemsize} bytes for its shape and datatype,"
            f" got {len(part)}",
        )
    if datatype == "BOOL":  # any byte but 0 and 1 would be a bool that is neither
        return np.not_equal(np.frombuffer(part, np.uint8), 0)
    return np.frombuffer(part, kind)


def _split_bytes(part: bytes, datatype: str, count: int, name: str, pointer: str) -> list[bytes]:
    """Each element is preceded by its length as a little-endian uint32."""
    found: list[bytes] = []
    position = 0
    while position < len(part):
        length = int.from_bytes(part[position : position + 4], "little")
        start, position = position + 4, position + 4 + length
        if position > len(part):
            raise Malformed(
                f"element {len(found)} of {shown(name)} extends beyond the end of its binary data"
            )
        found.append(part[start:position])
    if len(found) != count:
        raise _wrong(pointer, f"{shown(name)} must have {count} elements, got {len(found)}")
    return found


def _read_outputs(given: Mapping[str, Any], binary: bool) -> list[RequestedOutput]:
    """`binary` is the default of `binary_data`. Raises Invalid."""
    found: list[RequestedOutput] = []
    for i, each in enumerate(_objects(given, "outputs", required=False)):
        name = _name(each, "outputs", i)
        if name not in OUTPUTS:
            raise _wrong(
                f"/outputs/{i}/name",
                f"an output must be one of {', '.join(OUTPUTS)}, got {shown(name)}",
            )
        if any(name == other.name for other in found):
            raise _wrong(f"/outputs/{i}/name", f"output names must differ; {name} occurs twice")
        own = _flag(each.get("parameters"), "binary_data", f"/outputs/{i}/parameters")
        found.append(RequestedOutput(name, binary if own is None else own))
    return found


def _flag(parameters: Any, name: str, pointer: str) -> bool | None:
    """Raises Invalid."""
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        raise _wrong(pointer, "parameters must be an object")
    value = parameters.get(name)
    if value is not None and not isinstance(value, bool):
        raise _wrong(f"{pointer}/{name}", f"{name} must be true or false, got {shown(value)}")
    return value


def _wrong(pointer: str, detail: str) -> Invalid:
    return Invalid(detail, errors=[{"pointer": pointer, "detail": detail}])


# --- tensors as a table ---------------------------------------------------------------------------


class TensorTable(Source):
    """A table whose columns are the features in tensors, for a `RowReader`."""

    def __init__(self, inputs: Sequence[Tensor], names: Sequence[str], bounds: Bounds) -> None:
        import pyarrow as pa

        counts = {tensor.shape[0] for tensor in inputs}
        if len(counts) > 1:
            raise Invalid(
                "all inputs must have the same number of rows, got"
                f" {', '.join(map(str, sorted(counts)[:10]))}"
            )
        self.rows = counts.pop()
        if self.rows > bounds.max_rows(len(names)):
            raise too_many_rows(bounds.max_rows(len(names)))
        known = set(names)
        columns: dict[str, pa.Array] = {}
        self.ignored: list[str] = []
        for i, tensor in enumerate(inputs):
            if tensor.name in known and tensor.n_columns == 1:
                columns[tensor.name] = _column(tensor, tensor.values, i)
            elif len(inputs) == 1 and tensor.n_columns == len(names):
                columns.update(_columns(tensor, names))
            elif tensor.name in known:
                raise _wrong(
                    f"/inputs/{i}/shape",
                    f"the feature {shown(tensor.name)} must have the shape [rows] or [rows, 1],"
                    f" got {list(tensor.shape)}",
                )
            elif len(inputs) == 1:
                raise _wrong(
                    f"/inputs/{i}/shape",
                    f"{shown(tensor.name)} is not a feature; an input with all features must have the shape [rows, "
                    f"{len(names)}], got {list(tensor.shape)}",
                )
            else:
                self.ignored.append(tensor.name)
        if not columns:
            raise Invalid(
                f"no input is a feature of the model; its features are {', '.join(names)[:1000]}"
            )
        self.names = list(columns)
        self._batch = pa.RecordBatch.from_arrays(list(columns.values()), names=self.names)
        self.schema = self._batch.schema

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        chosen = self._batch if columns is None else self._batch.select(list(columns))
        for start in range(0, chosen.num_rows, BATCH_ROWS):
            yield Rows(chosen.slice(start, BATCH_ROWS), start)

    def progress(self) -> tuple[int, int]:
        return 1, 1


def _columns(tensor: Tensor, names: Sequence[str]) -> dict[str, pa.Array]:
    width = len(names)
    if isinstance(tensor.values, np.ndarray):
        table = tensor.values.reshape(tensor.shape[0], width)
        return {name: _column(tensor, table[:, j], 0) for j, name in enumerate(names)}
    return {name: _column(tensor, tensor.values[j::width], 0) for j, name in enumerate(names)}


def _column(tensor: Tensor, values: Any, i: int) -> pa.Array:
    """NaN and null are missing."""
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return pa.array(np.ascontiguousarray(values))
    try:
        if tensor.datatype == BYTES:
            return pa.array([_text(value) for value in values], pa.string())
        if tensor.datatype == "BOOL":
            return pa.array(values, pa.bool_())
        if not all(value is None or type(value) in (int, float, bool) for value in values):
            odd = next(v for v in values if v is not None and type(v) not in (int, float, bool))
            raise _wrong(
                f"/inputs/{i}/data",
                f"the data of {shown(tensor.name)} must be numbers of type {tensor.datatype}, got {shown(odd)}",
            )
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    except (pa.ArrowException, OverflowError, UnicodeDecodeError, TypeError) as error:
        raise _wrong(
            f"/inputs/{i}/data",
            f"the data of {shown(tensor.name)} is not valid {tensor.datatype}: {str(error)[:200]}",
        ) from error


def _text(value: Any) -> str | None:
    """Return None if it is missing."""
    if isinstance(value, bytes):
        return value.decode()
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return None if math.isnan(value) else spell(value)
    raise TypeError(f"an element must be a string, got {type(value).__name__}")


# --- the answer -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class InferResponse:
    """The body, the length of its JSON if binary tensors follow, and the ignored inputs."""

    body: bytes
    header_length: int | None
    ignored: list[str]


def infer(
    served: Served,
    asked: InferRequest,
    name: str,
    version: str | None,
    bounds: Bounds,
    explained: Callable[[Served, int], Estimates | None],
) -> InferResponse:
    """Score a request. Raises Invalid and BadTable with each invalid value.

    `explained` is called with the number of rows that are to be explained; see `service.check_explained`.
    """
    options = TableOptions(ignore=(ALL,))
    names, max_rows = served.columns.names, bounds.max_rows(len(served.columns.names))
    inputs = [each for each in asked.inputs if each is not asked.row_ids or each.name in names]
    if not inputs:
        raise Invalid("the inputs must contain features, not only ids")
    rows, ignored = _matrix_of_numbers(served, inputs, max_rows), list[str]()
    if rows is not None:
        n_rows, parts_of_rows = len(rows), iter([rows])
    else:
        table = TensorTable(inputs, names, bounds)
        table.notation = served.columns.notation.or_point
        reader = RowReader(served.columns, options, served.columns.missing, max_rows)
        n_rows, ignored = table.rows or 0, table.ignored
        parts_of_rows = (X for batch in reader.batches(table) for X in batch.blocks(len(names)))
    wanted = asked.outputs or [
        RequestedOutput(output, asked.binary)
        for output in ("score", *(("fpr", "tpr") if served.curve is not None else ()))
    ]
    reasoned = asked.asks_for_reasons
    _check_outputs(served, wanted)
    estimates = explained(served, n_rows) if reasoned else None
    blocks: list[RowScores] = []
    kept: list[Floats] = []
    start = 0
    for X in parts_of_rows:
        ids = None if served.recording is None else _ids_of(asked.row_ids, start, len(X))
        blocks.append(served.score_identified(X, ids))
        start += len(X)
        if reasoned:
            kept.append(X.copy())
    scores = scoring.join_scores(served, blocks)
    found: dict[str, Any] = {"score": scores.scores, "fpr": scores.fprs, "tpr": scores.tprs}
    if any(output.name == PROBABILITY for output in wanted):
        found |= DEFAULT.columns(served, scores.scores)
    if reasoned:
        X = np.concatenate(kept) if kept else np.empty((0, len(names)))
        found["reasons"] = [
            orjson.dumps(each) for each in scoring.explain(served, X, estimates=estimates)
        ]
    outputs, parts = [], []
    for output in wanted:
        described, part = _write(output, found[output.name])
        outputs.append(described)
        parts.append(part)
    if asked.row_ids is not None:
        described, part = _write_ids("id", asked.row_ids, asked.binary)
        outputs.append(described)
        parts.append(part)
    if scores.decisions is not None:
        for described, part in _write_decisions(scores.decisions, asked.binary):
            outputs.append(described)
            parts.append(part)
    answer: dict[str, Any] = {"model_name": name, "outputs": outputs}
    if version is not None:
        answer["model_version"] = version
    if asked.id is not None:
        answer["id"] = asked.id
    text = orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
    if served.recording is not None:  # the request has no error
        served.recording.commit()
    if asked.binary or any(output.binary for output in wanted):
        return InferResponse(b"".join([text, *parts]), len(text), ignored)
    return InferResponse(text, None, ignored)


def _matrix_of_numbers(served: Served, inputs: Sequence[Tensor], max_rows: int) -> Floats | None:
    """Return a few rows of binary floats as a matrix; None for other features or more than `max_rows`.

    If it is None, a `RowReader` reads the rows through a table, and reports errors. For a few rows that takes twice the
    time of all the rest.
    """
    features = served.features
    if not all(
        isinstance(tensor.values, np.ndarray) and tensor.values.dtype.kind == "f"
        for tensor in inputs
    ) or any(kind != NUMERIC for kind in features.types):
        return None
    width, n_rows = len(features.names), inputs[0].shape[0]
    if not 0 < n_rows <= min(BATCH_ROWS, max_rows):
        return None
    if len(inputs) == 1 and inputs[0].n_columns == width:
        X = inputs[0].values.reshape(n_rows, width).astype(np.float64)
    else:
        columns = {tensor.name: tensor for tensor in inputs}
        if len(inputs) != width or not all(name in columns for name in features.names):
            return None
        if any(tensor.shape[0] != n_rows or tensor.n_columns != 1 for tensor in inputs):
            return None
        flat = np.concatenate([columns[name].values for name in features.names], dtype=np.float64)
        X = np.ascontiguousarray(flat.reshape(width, n_rows).T)
    return None if np.isinf(X).any() else features.codes.blank(X)


def _check_outputs(served: Served, wanted: Sequence[RequestedOutput]) -> None:
    """Raise Invalid for outputs that the model does not have."""
    for output in wanted:
        if output.name in ("fpr", "tpr") and served.curve is None:
            raise Invalid(f"the model has no {output.name}: it has no ROC curve of held-out rows")
        if output.name == PROBABILITY:
            check_probability(served)


def check_probability(served: Served) -> None:
    """Raises Invalid."""
    if served.calibration is None:
        raise Invalid(f"the model has no {PROBABILITY}: {served.why_no_calibration}")


def _write(output: RequestedOutput, values: Any) -> tuple[dict[str, Any], bytes]:
    """Return a description, with data unless they are binary; and binary data."""
    if output.name == "reasons":
        described: dict[str, Any] = {"name": output.name, "datatype": BYTES, "shape": [len(values)]}
        if not output.binary:
            return {**described, "data": [value.decode() for value in values]}, b""
        part = b"".join(len(value).to_bytes(4, "little") + value for value in values)
    else:
        described = {"name": output.name, "datatype": "FP64", "shape": list(values.shape)}
        if not output.binary:
            return {**described, "data": np.ascontiguousarray(values).ravel()}, b""
        part = np.ascontiguousarray(values, "<f8").tobytes()
    return {**described, "parameters": {"binary_data_size": len(part)}}, part


def _ids_of(ids: Tensor | None, start: int, n_rows: int) -> pa.Array | None:
    """Return ids as text, for decisions."""
    if ids is None:
        return None
    import pyarrow as pa

    some = ids.values[start : start + n_rows]
    texts = [_text(each.item() if isinstance(each, np.generic) else each) for each in some]
    return pa.array(texts, pa.string())


def _write_decisions(decisions: Decisions, binary: bool) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the outputs that an alias with feedback adds."""
    n_rows = len(decisions.ids)
    yield _write_ids(DECISION_ID, Tensor(DECISION_ID, BYTES, (n_rows,), decisions.ids), binary)
    described = {"name": REVIEW, "datatype": "BOOL", "shape": [n_rows]}
    if not binary:
        yield {**described, "data": decisions.review}, b""
    else:
        yield {**described, "parameters": {"binary_data_size": n_rows}}, decisions.review.tobytes()


def _write_ids(name: str, ids: Tensor, binary: bool) -> tuple[dict[str, Any], bytes]:
    """Return the ids unchanged; values that came as JSON, as JSON."""
    described: dict[str, Any] = {"name": name, "datatype": ids.datatype, "shape": [*ids.shape]}
    texts = [each.decode() if isinstance(each, bytes) else each for each in ids.values]
    if isinstance(ids.values, np.ndarray):
        part, values = np.ascontiguousarray(ids.values).tobytes(), ids.values.tolist()
    elif all(isinstance(text, str) for text in texts):
        encoded, values = [text.encode() for text in texts], texts
        part = b"".join(len(text).to_bytes(4, "little") + text for text in encoded)
    else:
        return {**described, "data": texts}, b""
    if not binary:
        return {**described, "data": values}, b""
    return {**described, "parameters": {"binary_data_size": len(part)}}, part


def describe_config(served: Served, name: str) -> dict[str, Any]:
    """Describe a model as Triton does, without batching, so that dimensions are those of the tensors."""
    types = {"FP64": "TYPE_FP64", "BOOL": "TYPE_BOOL", BYTES: "TYPE_STRING"}
    described = describe_model(served, name, [])

    def tensors(part: str) -> list[dict[str, Any]]:
        return [
            {"name": each["name"], "data_type": types[each["datatype"]], "dims": each["shape"]}
            for each in described[part]
        ]

    return {
        "name": name,
        "platform": described["platform"],
        "backend": described["platform"],
        "max_batch_size": 0,
        "input": tensors("inputs"),
        "output": tensors("outputs"),
    }


def describe_model(served: Served, name: str, versions: list[str]) -> dict[str, Any]:
    """Features are inputs."""
    kinds = {"numeric": "FP64", "boolean": "BOOL"}
    labels = served.labels
    scores = {
        "name": "score",
        "datatype": "FP64",
        "shape": [-1] if labels is None else [-1, len(labels)],
    }
    beside = [] if served.curve is None else ["fpr", "tpr"]
    if served.calibration is not None:
        beside.append(PROBABILITY)
    places = [{"name": output, "datatype": "FP64", "shape": [-1]} for output in beside]
    described: dict[str, Any] = {
        "name": name,
        "versions": versions,
        "platform": "rankwright",
        "inputs": [
            {"name": feature, "datatype": kinds.get(kind, BYTES), "shape": [-1]}
            for feature, kind in zip(served.features.names, served.features.types, strict=True)
        ],
        "outputs": [scores, *places],
    }
    if labels is not None:
        described["parameters"] = {"labels": ",".join(labels)}
    return described
