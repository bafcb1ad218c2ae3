"""Base classes and fields that the request and response bodies of all domains share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import islice
from typing import Annotated, Any, Generic, Self, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    StringConstraints,
    create_model,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue, WithJsonSchema
from pydantic_core import CoreSchema, PydanticKnownError

from app.ingest.formats import CSV, NDJSON
from app.platform.documents import document_of, on_one_line
from app.platform.errors import MAX_ERRORS, NO_NUL_PATTERN, PLAIN_PATTERN
from app.platform.sql import Page
from app.platform.tables import DatasetKind

Item = TypeVar("Item")
Row = TypeVar("Row")
Model = TypeVar("Model", bound=BaseModel)


class _Described(BaseModel):
    """A model whose attribute docstrings are the descriptions of its members."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        on_one_line(handler.resolve_ref_schema(schema))
        return schema


class Body(_Described):
    """A request body: no conversions, no unknown members, no NaN."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, data: Any) -> Any:
        """Drop unknown members beyond what an error lists: pydantic's error for each takes 100 times its bytes."""
        if not isinstance(data, dict) or len(data) <= len(cls.model_fields) + MAX_ERRORS:
            return data
        unknown = (name for name in data if name not in cls.model_fields)
        return {
            name: data[name]
            for name in (*cls.model_fields.keys() & data.keys(), *islice(unknown, MAX_ERRORS))
        }


class Resource(_Described):
    """A response body, made from a row or from keywords."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def from_row(cls, row: object, **members: Any) -> Self:
        """Other members are attributes of the row."""
        others = cls.model_fields.keys() - members.keys()
        return cls.model_validate({name: getattr(row, name) for name in others} | members)


ALL_MEMBERS = ConfigDict(json_schema_serialization_defaults_required=True)
"""Of a dataclass that is part of a response body: all its members are always present, also those with defaults."""


def _rfc3339(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def earliest_shown(moment: datetime) -> float:
    """Return the least Unix time whose `Timestamp` is `moment` or later.

    So a filter compares times in whole milliseconds, as answers show them. Clocks have more digits, and doubles are not
    decimal.
    """
    milliseconds = -((_EPOCH - moment) // timedelta(milliseconds=1))  # rounded up
    # Half a microsecond less: `datetime.fromtimestamp` rounds to whole microseconds, halves to the even one.
    exact = Fraction(2000 * milliseconds - 1, 2_000_000)
    nearest = float(exact)
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


Timestamp = Annotated[
    float,
    PlainSerializer(_rfc3339, return_type=str),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "examples": ["2026-01-31T12:00:00.000Z"]},
    ),
]
Text = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=NO_NUL_PATTERN)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=PLAIN_PATTERN)]
"""A name that the caller chooses."""


ReasonText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=2000, pattern=NO_NUL_PATTERN),
]
"""A person's text of up to 2,000 characters: a reason, or a comment."""


def at_most(most: int) -> BeforeValidator:
    """Reject an object with more than `most` members before any of them is validated."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and len(value) > most:
            said = {"field_type": "Dictionary", "max_length": most, "actual_length": len(value)}
            raise PydanticKnownError("too_long", said)
        return value

    return BeforeValidator(check)


Tags = Annotated[
    dict[Name, Annotated[str, StringConstraints(max_length=255, pattern=PLAIN_PATTERN)]],
    Field(max_length=50),
    at_most(50),
]
Rate = Annotated[float, Field(ge=0, le=1)]

ModelId = Annotated[str, Field(description="Id of the model.")]
DatasetId = Annotated[str, Field(description="Id of the dataset.")]
JobId = Annotated[str, Field(description="Id of the job that made this.")]
EvaluationId = Annotated[str, Field(description="Id of the evaluation.")]
AliasName = Annotated[str, Field(description="The alias.")]
BaseOdds = Annotated[
    float, Field(description="Number of negatives to one positive at `base_score`.")
]
BaseScore = Annotated[float, Field(description="Points at which the odds are `base_odds`.")]
ColumnName = Annotated[str, Field(description="Name of the column.")]
FeatureName = Annotated[str, Field(description="Name of the feature.")]
High = Annotated[float, Field(description="Upper end of the confidence interval.")]
Low = Annotated[float, Field(description="Lower end of the confidence interval.")]
ModelName = Annotated[str, Field(description="Name of the model.")]
ModelVersion = Annotated[int, Field(description="Version of the model.")]
ModelsName = Annotated[str, Field(description="Name of the models.")]
PointsToDouble = Annotated[float, Field(description="Points to double the odds.")]
PositiveOutcomes = Annotated[int, Field(description="Number of positive outcomes.")]
CreatedAt = Annotated[Timestamp, Field(description="Time of creation.")]
Level = Annotated[float, Field(description="Confidence level of each interval.")]
FprMin = Annotated[float, Field(description="Lower end of the window of false positive rates.")]
FprMax = Annotated[float, Field(description="Upper end of the window of false positive rates.")]
PValue = Annotated[
    float, Field(description="p-value of the hypothesis that there is no difference.")
]
Words = Annotated[str, Field(description="The result in one sentence.")]
Positives = Annotated[int, Field(description="Number of positive rows.")]
Negatives = Annotated[int, Field(description="Number of negative rows.")]
IsValid = Annotated[
    bool, Field(description="Always true. An invalid request returns an error instead.")
]


LABELS = "x-enum-descriptions"
"""The key of a schema with the words for each value of its `enum`, in that order; documentation pages show it."""


def one_of(values: Iterable[str] | Mapping[str, str]) -> WithJsonSchema:
    """A mapping also has a phrase for each value."""
    schema: dict[str, Any] = {"type": "string", "enum": [str(value) for value in values]}
    if isinstance(values, Mapping):
        schema[LABELS] = list(values.values())
    return WithJsonSchema(schema)


Kind = Annotated[str, one_of(DatasetKind)]
"""A kind of dataset."""


def with_members(members: Mapping[str, tuple[Any, Any]]) -> Callable[[type[Model]], type[Model]]:
    """Add members to a schema by their types and fields."""

    def add(schema: type[Model]) -> type[Model]:
        return create_model(
            schema.__name__,
            __base__=schema,
            __module__=schema.__module__,
            __doc__=schema.__doc__,
            **cast(Any, members),
        )

    return add


class PageOf(Resource, Generic[Item]):
    """One page of a list. OpenAPI has the name of the subclass."""

    data: list[Item]
    """The items of this page."""
    has_more: bool
    """True if more items follow this page."""
    next: str | None
    """Cursor of the next page: pass it as `after`. Null on the last page."""

    @classmethod
    def of(cls, page: Page[Row], show: Callable[[Row], Item]) -> Self:
        """`show` makes the item of a row."""
        data = [show(row) for row in page.data]
        return cls(data=data, has_more=page.has_more, next=page.next)


class DatasetVersion(Resource):
    """The dataset version that was used, under its name at that time. It may have been deleted since."""

    id: str
    """Id of the dataset."""
    name: str
    """Name of the dataset at the time of use."""
    version: int
    """Version number, from 1."""
    sha256: str
    """SHA-256 of the content."""
    pairs_sha256: str | None = None
    """SHA-256 of the pairs. Null unless the dataset is of kind `preferences`."""


class Problem(BaseModel):
    """An error, as RFC 9457 problem details."""

    type: str = Field(
        examples=["urn:rankwright:problem:invalid"],
        description="URI that identifies the type of error: `urn:rankwright:problem:` and `code`.",
    )
    title: str = Field(examples=["Invalid request"], description="Short name of the type of error.")
    status: int = Field(examples=[422], description="HTTP status code of the response.")
    detail: str = Field(
        description="What is wrong with this request: the parameter, the rule and the value received.",
        examples=["n_rounds must be greater than or equal to 1, got 0"],
    )
    instance: str | None = Field(
        description="Path of the request. Null if the request could not be parsed or if the path is longer than "
        "1,000 characters.",
        examples=["/v1/jobs"],
    )
    code: str = Field(
        description="Error code for programs. Codes do not change between versions.",
        examples=["invalid"],
    )
    request_id: str | None = Field(
        examples=["req_0198f0c2a4d37c1e8a4b5c6d7e8f9012"],
        description="Id of the request, as in `X-Request-ID`. Quote it when you report a problem. Null if the "
        "request could not be parsed.",
    )
    errors: list[dict[str, Any]] | None = Field(
        default=None,
        description="The individual errors. Each has a `detail` and a location: `pointer` (JSON Pointer into the "
        "body), `parameter`, `header`, or `line` and `column` of an uploaded table, with `sheet` and `cell` in "
        "a workbook.",
        examples=[
            [
                {
                    "pointer": "/algorithm/n_rounds",
                    "detail": "n_rounds must be greater than or equal to 1, got 0",
                }
            ]
        ],
    )


class Valid(Resource):
    """The request is valid. Nothing was created."""

    valid: IsValid


FiniteOrNull = Annotated[float | None, BeforeValidator(document_of)]
"""A number of a result of `core`: JSON has neither NaN nor infinity."""


class Interval(Resource):
    """An estimate with its confidence interval. All three are null if the value cannot be estimated."""

    value: FiniteOrNull
    """The estimate. Null if it cannot be computed."""
    low: FiniteOrNull
    """Lower end of the confidence interval. Null if there is no finite bound."""
    high: FiniteOrNull
    """Upper end of the confidence interval. Null if there is no finite bound."""


GINI = "2 AUC − 1: the Gini coefficient, also called the accuracy ratio."
KS = (
    "Kolmogorov–Smirnov distance: the largest difference between TPR and FPR. It is biased "
    "upwards in small samples."
)
NULL_IF_TOO_FEW = (
    "Null if the window holds fewer than 3 effective negatives (4 in each fold), or if there are "
    "fewer than 3 positives. A warning says how many are needed."
)


def bytes_of(*media_types: str) -> dict[str, Any]:
    """Describe a body of tables as binary data. An example would need a format that generated clients write."""
    content: dict[str, Any] = {}
    for media_type in media_types:
        content[media_type] = {"schema": {"type": "string", "format": "binary"}}
        if media_type == NDJSON:
            said = (
                'JSON: one object a line, in UTF-8, such as `{"age": 41, "contract": "two year"}`.'
            )
            content[media_type]["schema"]["description"] = said
    return content


def tables_of(example: str, *others: str) -> dict[str, Any]:
    """Describe a body that is a table: CSV, like the example, or one of the media types `others`.

    CSV is both the first and the last media type: generated clients send a file as the first one, or as the last one
    (openapi-python-client). The first one has no charset, so that the caller chooses it.
    """
    csv: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}, "example": example}
    said = "As `text/csv`. It is listed again for generated clients that send the last media type."
    again = {**csv, "schema": {**csv["schema"], "description": said}}
    return {CSV: csv, **bytes_of(*others), f"{CSV}; charset=utf-8": again}
