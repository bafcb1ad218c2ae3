"""POST /v1/models: import a model that was trained elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import orjson
from fastapi import APIRouter
from pydantic import Field, TypeAdapter, ValidationError
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.datasets.service import StoredUpload
from app.datasets.uploads import (
    Received,
    TableRequestDep,
    UploadHandler,
    accept_upload,
    field_docs,
)
from app.http.bodies import MAX_BODY, takes_body
from app.http.dependencies import CallerDep
from app.http.forms import FORM
from app.http.idempotency import validated
from app.http.openapi import names_resources
from app.http.schemas import Tags, bytes_of
from app.ingest.fields import (
    NamesField,
    TextField,
    TextFields,
    WholeField,
    find_unknown,
    join_names,
)
from app.jobs.acceptance import WAITED_DOCS
from app.jobs.endpoints import JOB, show
from app.jobs.schemas import Job
from app.platform import catalogue
from app.platform.errors import refuse_all, shown
from app.platform.sql import Json, Session
from app.platform.tables import Job as JobRow
from app.training import imports
from app.training.imports import ImportRequest

PATH = "/v1/models"
router = APIRouter(prefix=PATH, tags=["models"], route_class=GuardedRoute)

MAX_TEXT = 1 << 23
"""Characters of a field, within the limit of the form."""


class _MissingField(TextField):
    """A number, or NaN. The text is kept, since JSON has no NaN."""

    def read(self, name: str, text: str) -> str:
        try:
            return str(float(text))
        except ValueError:
            raise ValueError(f"{name} must be nan or a number, got {shown(text)}") from None


class _CategoriesField(TextField):
    """A JSON object of lists of strings, or a list of strings."""

    def read(self, name: str, text: str) -> Any:
        try:
            value = orjson.loads(super().read(name, text))
        except orjson.JSONDecodeError as error:
            raise ValueError(
                f'{name} must be JSON, such as {{"town": ["Bonn"]}}: {error}'
            ) from None
        lists = list(value.values()) if isinstance(value, dict) else [value]
        if not all(
            isinstance(each, list) and all(isinstance(word, str) for word in each) for each in lists
        ):
            raise ValueError(
                f"{name} must be a JSON object of lists of strings, or a list of strings, got {shown(text)}"
            )
        return value

    def write(self, value: Any) -> str:
        return orjson.dumps(value).decode()


_TAGS = TypeAdapter(Tags)


class _TagsField(NamesField):
    """Tags, as `team=risk,run=7`."""

    hint: ClassVar[str] = "Several are separated by commas."

    def read(self, name: str, text: str) -> Any:
        pairs = [each.partition("=") for each in super().read(name, text)]
        tags = {tag: value for tag, sign, value in pairs if sign}
        if len(tags) < len(pairs):
            raise ValueError(f"{name} must be name=value, each name once, got {shown(text)}")
        try:
            return _TAGS.validate_python(tags)
        except ValidationError as error:
            raise ValueError(f"{name}: {error.errors()[0]['msg']}") from None

    def write(self, value: Any) -> str:
        return join_names(f"{name}={text}" for name, text in value.items())


class ImportFields(TextFields):
    """The fields of a model file. `FormFields` adds the field that only a form can have."""

    name: Annotated[str | None, TextField()] = Field(
        default=None,
        description="Name of the model. The import is a new version of it. Required.",
        examples=["churn"],
    )
    dataset_id: Annotated[str | None, TextField()] = Field(
        default=None,
        description="Dataset of kind `bipartite` to evaluate the model on. It must have the model's features as "
        "features, and no training rows of the model. Required.",
        examples=["ds_0197f2c3a4b87c11a2b3c4d5e6f70812"],
    )
    missing: Annotated[str | None, _MissingField()] = Field(
        default=None,
        description="XGBoost only, required there: the number that means a missing value. `nan` is XGBoost's default.",
        examples=["nan"],
    )
    n_trees: Annotated[int | None, WholeField(least=1, most=10**9)] = Field(
        default=None,
        description="Number of trees to use, from the first. Required if XGBoost's `best_iteration` is not the last.",
    )
    features: Annotated[list[str] | None, NamesField(max_length=MAX_TEXT, what="features")] = Field(
        default=None,
        description="Names of the model's features in their order. Required if the file has no names.",
        examples=["age,income"],
    )
    categories: Annotated[
        dict[str, list[str]] | list[str] | None, _CategoriesField(max_length=MAX_TEXT)
    ] = Field(
        default=None,
        description="JSON: for each categorical feature its categories in the order of their codes; or, for LightGBM, "
        "a list of the features that the lists of `pandas_categorical` belong to. Required if the file does not have "
        "them.",
        examples=['{"town": ["Bonn", "Ulm"]}'],
    )
    protected_features: Annotated[list[str] | None, NamesField(max_length=MAX_TEXT)] = Field(
        default=None,
        description="Protected columns of the dataset that are features of the model.",
    )
    tags: Annotated[dict[str, str] | None, _TagsField(max_length=MAX_TEXT, what="tags")] = Field(
        default=None,
        description="Tags of the model, each as `name=value`.",
        examples=["team=risk,run=7"],
    )


class FormFields(ImportFields):
    """The fields of a form."""

    expected: Annotated[str | None, TextField(max_length=MAX_TEXT)] = Field(
        default=None,
        description="The library's raw scores of all rows of the dataset, in their order, one per line. The job fails "
        "with `expected_scores` if the model's scores differ, and creates no model.",
    )


_BODY: Json = {
    "required": True,
    "content": {
        **bytes_of("application/octet-stream"),
        FORM: {
            "schema": {
                "title": "ModelForm",
                "type": "object",
                "required": ["file"],
                "properties": {
                    "file": {
                        "type": "string",
                        "format": "binary",
                        "description": "The model file.",
                    },
                    **FormFields.schemas(),
                },
            }
        },
    },
}
_DOCS: dict[str, Any] = {
    "parameters": field_docs(ImportFields.schemas()),
    "requestBody": _BODY,
}


@validated(router, "", "import", openapi_extra=_DOCS)
@router.post(
    "",
    status_code=202,
    response_model=Job,
    summary="Import a model",
    openapi_extra=_DOCS,
    responses={201: {"model": Job, **WAITED_DOCS}},
)
@names_resources
@needs("train")
@takes_body("max_upload_bytes", MAX_BODY)
async def import_model(sending: TableRequestDep, caller: CallerDep) -> Response:
    """Send the file that LightGBM (text) or XGBoost (JSON or UBJSON) saved, or the artifact of a model of this or
    another installation, as raw bytes or in a form with a part `file`. A job of kind `import` reads it and evaluates
    the model on a dataset. The result is a model like a trained one, which scores as the original does. The job fails
    if the file is damaged, the model is not supported, or something must be declared; then nothing is stored.
    """
    context, owner = sending.context, sending.owner

    def check(given: Received[ImportRequest]) -> Json:
        context.db.reading(imports.check, owner, given.description)
        return {"valid": True}

    def accept(session: Session, given: Received[ImportRequest], upload: StoredUpload) -> JobRow:
        asked = given.description
        scores = None if asked.expected is None else expected.blob
        job = imports.submit(session, context.settings, owner, asked, upload.blob, scores)
        if scores is not None:
            catalogue.commit(session, expected)
        return job

    def stage(asked: ImportRequest) -> None:
        if asked.expected is not None:
            expected.write(asked.expected.encode())
            expected.sync()

    def describe(given: Mapping[str, str]) -> ImportRequest:
        return _describe(given, caller.name)

    handler = UploadHandler(
        route=f"POST {PATH}",
        of=[],
        describe=describe,
        check=check,
        accept=accept,
        stage=stage,
        show=show,
        made=JOB,
        makes="models",
        max_field_bytes=context.settings.max_body_bytes,
    )
    with context.blobs.writer("uploads") as expected:
        return await accept_upload(sending, handler)


def _describe(given: Mapping[str, str], author: str | None) -> ImportRequest:
    """Raises Invalid with all errors."""
    refuse_all(find_unknown(given, tuple(FormFields.model_fields)))
    fields, errors = FormFields.read(given)
    wrong = {each["parameter"] for each in errors}
    for name, words in (("name", "name the model"), ("dataset_id", "be the id of a dataset")):
        if getattr(fields, name) is None and name not in wrong:
            errors.append({"parameter": name, "detail": f"{name} must {words}; it is missing"})
    refuse_all(errors)
    return ImportRequest(
        name=fields.name or "",
        dataset_id=fields.dataset_id or "",
        missing=fields.missing,
        n_trees=fields.n_trees,
        features=fields.features,
        categories=fields.categories,
        protected_features=fields.protected_features or (),
        expected=fields.expected,
        tags=fields.tags or {},
        author=author,
    )
