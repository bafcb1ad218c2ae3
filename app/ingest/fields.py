"""Text fields that describe a table, in a query or a form. A model declares each once; parsing, formatting, error
messages and the JSON Schema follow.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self
from urllib.parse import unquote_plus

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import core_schema

from app.platform.errors import (
    MAX_ERRORS,
    PATTERN_RULES,
    PLAIN_PATTERN,
    Invalid,
    first_doubled,
    is_plain,
    nearest,
    refuse_all,
    shown,
)

MAX_TEXT_LENGTH = 255  # characters of a name
MAX_LIST_LENGTH = 4096  # characters of a list of names
_SHOWN = 100


def split_names(text: str) -> list[str]:
    """Return the names in a comma-separated text; a name with a comma must be quoted, as in CSV."""
    line = " ".join(text.splitlines())
    return [name.strip() for name in next(csv.reader([line], skipinitialspace=True)) or [""]]


def join_names(names: Iterable[str]) -> str:
    """Inverse of `split_names`."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(list(names))
    return line.getvalue()


@dataclass(frozen=True)
class TextField:
    """The type of a text field. `not_for` has the kinds of tables that cannot have the field, with the reason."""

    not_for: Mapping[str, str] = field(default_factory=dict)
    max_length: int = MAX_TEXT_LENGTH
    hint: ClassVar[str] = ""
    """What the description of the text adds to that of the value."""

    def read(self, name: str, text: str) -> Any:
        if not 0 < len(text) <= self.max_length or "\0" in text:
            raise ValueError(f"{name} must have 1 to {self.max_length} characters without NUL")
        return text

    def write(self, value: Any) -> str:
        return str(value)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the text."""
        return {"type": "string", "minLength": 1, "maxLength": self.max_length}

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        def read(value: Any, info: core_schema.ValidationInfo) -> Any:
            return self.read(info.field_name or "", value) if isinstance(value, str) else value

        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return self.schema


class NameField(TextField):
    def read(self, name: str, text: str) -> Any:
        if not is_plain(text):
            raise ValueError(f"{name} {PATTERN_RULES[PLAIN_PATTERN]}, got {shown(text)}")
        return super().read(name, text)

    @property
    def schema(self) -> dict[str, Any]:
        return super().schema | {"pattern": PLAIN_PATTERN}


class ColumnField(TextField):
    """The name of a table column, to which no other field may refer."""


@dataclass(frozen=True)
class NamesField(TextField):
    max_length: int = MAX_LIST_LENGTH
    max_names: int | None = None
    what: str = "columns"
    hint: ClassVar[str] = (
        "Several names are separated by commas; put a name that contains a comma in double quotes."
    )

    def read(self, name: str, text: str) -> list[str]:
        names = self._tidy(split_names(super().read(name, text)))
        if not all(names):
            raise ValueError(f"{name} must list {self.what}, for example {name}=a,b,c")
        if self.max_names is not None and len(names) > self.max_names:
            raise ValueError(f"{name} must list at most {self.max_names} columns, got {len(names)}")
        if (twice := first_doubled(names)) is not None:
            raise ValueError(f"{name} must list each name once; {twice!r} occurs twice")
        return names

    def write(self, value: Any) -> str:
        return join_names(value)

    def _tidy(self, names: list[str]) -> list[str]:
        return names


class ColumnsField(NamesField):
    """Names of table columns, to which no other field may refer."""


class MarkedColumnsField(NamesField):
    """Names of table columns that are marked; `categorical` and `numeric` may refer to them, too."""


class TokensField(NamesField):
    """Texts that denote a missing value, in addition to the empty text."""

    hint: ClassVar[str] = "Several are separated by commas."

    def write(self, value: Any) -> str:
        """A comma denotes the empty list."""
        return join_names(value) or ","

    def _tidy(self, names: list[str]) -> list[str]:
        return [name for name in names if name]


@dataclass(frozen=True)
class ChoiceField(TextField):
    """One of a few words. `words` maps each to its meaning for the reader."""

    words: Mapping[str, Any] = field(default_factory=dict)

    def read(self, name: str, text: str) -> Any:
        if text not in self.words:
            known = ", ".join(self.words)
            raise ValueError(f"{name} must be one of {known}, got {text[:_SHOWN]!r}")
        return text

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": [str(word) for word in self.words]}


@dataclass(frozen=True)
class FlagField(ChoiceField):
    words: Mapping[str, Any] = field(default_factory=lambda: {"true": True, "false": False})

    def read(self, name: str, text: str) -> bool:
        if text not in self.words:
            raise ValueError(f"{name} must be true or false, got {text[:_SHOWN]!r}")
        return bool(self.words[text])

    def write(self, value: Any) -> str:
        return str(value).lower()


@dataclass(frozen=True)
class WholeField(TextField):
    least: int = 0
    most: int = 0

    def read(self, name: str, text: str) -> int:
        digits = len(str(self.most))
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= digits else -1
        if not self.least <= number <= self.most:
            raise ValueError(
                f"{name} must be a whole number from {self.least} to {self.most}, got {shown(text)}"
            )
        return number

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class NumberField(TextField):
    """A finite number strictly between two bounds."""

    above: float = -math.inf
    below: float = math.inf

    def read(self, name: str, text: str) -> float:
        number = math.nan
        if text.isascii() and "_" not in text:  # Python takes 1_0e-2 for 0.1
            with suppress(ValueError):
                number = float(text)
        if not self.above < number < self.below:
            rule = f"be strictly between {self.above:g} and {self.below:g}"
            rule = rule if math.isfinite(self.above) else "be a finite number"
            raise ValueError(f"{name} must {rule}, got {shown(text)}")
        return number

    @property
    def schema(self) -> dict[str, Any]:
        bounds = {"exclusiveMinimum": self.above, "exclusiveMaximum": self.below}
        return {"type": "number", **{key: at for key, at in bounds.items() if math.isfinite(at)}}


class TextFields(BaseModel):
    """A model whose fields are texts. Each is declared as `Annotated[type of its value, Text()]`, with a default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    @cache
    def types(cls) -> dict[str, TextField]:
        return {
            name: next(each for each in field.metadata if isinstance(each, TextField))
            for name, field in cls.model_fields.items()
        }

    @classmethod
    def schemas(cls) -> dict[str, dict[str, Any]]:
        """Return the JSON Schema of each field's text, with its description, by name."""
        found = {}
        for name, type_ in cls.types().items():
            own = cls.model_fields[name]
            words = " ".join(filter(None, (own.description, type_.hint)))
            found[name] = {**type_.schema, "description": words}
            if own.examples:
                found[name]["examples"] = own.examples
        return found

    @classmethod
    def read(cls, given: Mapping[str, str]) -> tuple[Self, list[dict[str, str]]]:
        """Parse texts; returns fields and errors. Fields with errors have their defaults; unknown ones are ignored."""
        given = {name: given[name] for name in cls.types() if name in given}
        try:
            return cls.model_validate(given), []
        except ValidationError as error:
            wrong = {
                str(each["loc"][0]): each["msg"].removeprefix("Value error, ")
                for each in error.errors()
            }
        rest = {name: text for name, text in given.items() if name not in wrong}
        errors = [{"parameter": name, "detail": detail} for name, detail in wrong.items()]
        return cls.model_validate(rest), errors

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Raises Invalid with all errors."""
        fields, errors = cls.read(given)
        refuse_all(errors)
        return fields

    def texts(self) -> dict[str, str]:
        types = type(self).types()
        return {
            name: types[name].write(value) for name, value in self if value not in (None, False)
        }


class QueryFields(TextFields):
    """Fields that may be in a query among the features of a model. A feature of the same name takes precedence."""

    marks: ClassVar[tuple[bytes, ...]] = ()
    """A query without any of these has none of the fields. By default: their names."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if "marks" not in vars(cls):
            cls.marks = tuple(name.encode() for name in cls.model_fields)


def take_fields(
    query: bytes, features: Collection[str], fields: Iterable[type[QueryFields]]
) -> tuple[bytes, list[dict[str, str]]]:
    """Split a query into the rest, and the texts of the fields of each class. Raises Invalid for a repeated field."""
    left: list[bytes] = []
    found = [(each, dict[str, str]()) for each in fields]
    owner = {name: texts for each, texts in found for name in each.model_fields}
    for pair in query.split(b"&"):
        raw_name, _, raw = pair.partition(b"=")
        name = raw_name.decode("latin-1")
        if name not in owner or name in features:
            left.append(pair)
            continue
        if name in owner[name]:
            detail = f"{name} must be given once"
            raise Invalid(detail, errors=[{"parameter": name, "detail": detail}])
        owner[name][name] = unquote_plus(raw.decode("latin-1"))
    return b"&".join(left), [texts for _, texts in found]


def find_unknown(given: Iterable[str], names: Sequence[str], why: str = "") -> list[dict[str, str]]:
    """Each error has the most similar known name."""
    unknown = [field for field in given if field not in names][:MAX_ERRORS]
    return [
        {
            "parameter": field,
            "detail": f"{field[:_SHOWN]} is not a known field{why}; "
            + (nearest(field, names) or f"available are {', '.join(names)}"),
        }
        for field in unknown
    ]
