"""What a model file holds, before the columns of a table are known."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from core.base.state import Floats
from core.base.table import check_categories
from core.errors import MAX_VALUE, InvalidData, InvalidModelFile, InvalidParameter, shorten

from .linked import Columns, LinkedTree


class ParsedModel(NamedTuple):
    """A model file: its trees and features. Neither is checked yet."""

    source: str
    """The library and the version of the file, such as "LightGBM v4"."""
    names: Sequence[str]
    """The features. Without `has_names` they are numbered."""
    is_categorical: Sequence[bool]
    words: Mapping[int, Sequence[Any]] | list[list[Any]]
    """The categories of features, in the order of their codes; a list if it is open whose they are."""
    trees: Sequence[LinkedTree]
    start: float
    is_float32: bool
    """Whether the sum is rounded to float32 after each tree."""
    missing_low: Floats
    missing_high: Floats
    """Values between these count as missing; NaN for none. Shape (n_features,)."""
    has_names: bool
    writes_spaces_as: str | None = None
    """What stands for spaces in names."""


def name_columns(
    model: ParsedModel,
    columns: Sequence[str] | None,
    features: Sequence[str] | None,
    categories: Mapping[str, Sequence[str]] | Sequence[str] | None,
) -> Columns:
    """Return the names and categories of a model's features, by what the caller declares; see `import_model`."""
    names = _find_names(model, columns, features)
    words: dict[int, Sequence[Any]] = {}
    declared: Mapping[str, Sequence[str]] = categories if isinstance(categories, Mapping) else {}
    if isinstance(model.words, Mapping):
        words |= model.words
    if categories is not None and not isinstance(categories, Mapping):
        if not isinstance(model.words, list) or len(categories) != len(model.words):
            n = len(model.words) if isinstance(model.words, list) else 0
            raise InvalidParameter(
                f"categories must name the columns of the {n} open lists of pandas_categorical, got {len(categories)}"
            )
        declared = dict(zip(categories, model.words, strict=True))
    places = {name: j for j, name in enumerate(names)}
    unknown = [name for name in declared if name not in places]
    if unknown:
        raise InvalidParameter(
            f"categories must name features of the model, got {shorten(repr(unknown[0]), MAX_VALUE)}"
        )
    words |= {places[name]: of_column for name, of_column in declared.items()}
    of_features: list[Sequence[str] | None] = []
    for j, name in enumerate(names):
        if j not in words and model.is_categorical[j]:
            raise InvalidParameter(
                f"categories must be declared for feature {name!r}: the file does not say which category each code "
                "stands for"
            )
        of_features.append(_check_words(name, words[j]) if j in words else None)
    return Columns(names, of_features)


def _find_names(
    model: ParsedModel, columns: Sequence[str] | None, features: Sequence[str] | None
) -> list[str]:
    n = len(model.names)
    if features is not None:
        if len(features) != n or len(set(features)) != n:
            raise InvalidParameter(
                f"features must be {n} distinct names, as the model has, got {len(features)}"
            )
        return list(features)
    if not model.has_names:
        raise InvalidParameter(
            f"features must be declared: the file does not name its {n} features"
        )
    if len(set(model.names)) != n:
        raise InvalidModelFile("feature names must be distinct")
    if columns is None:
        return list(model.names)
    named: dict[str, list[str]] = {name: [name] for name in columns}
    if model.writes_spaces_as is not None:
        for name in columns:
            written = name.replace(" ", model.writes_spaces_as)
            if written != name:
                named.setdefault(written, []).append(name)
    found = []
    for name in model.names:
        matches = named.get(name, [])
        if len(matches) != 1:
            got = "none" if not matches else f"{len(matches)} columns"
            raise InvalidParameter(
                f"feature {shorten(repr(name), MAX_VALUE)} must be one column of the table, got {got}; declare features"
            )
        found.append(matches[0])
    return found


def _check_words(name: str, words: Sequence[Any]) -> list[str]:
    texts = [str(word) if type(word) is int else word for word in words]
    if not texts or not all(isinstance(word, str) for word in texts):
        raise InvalidParameter(
            f"categories of feature {name!r} must be text or integers, got {shorten(repr(words), MAX_VALUE)}; declare "
            "them"
        )
    try:
        check_categories(f"categories of feature {name!r}", sorted(texts))
    except InvalidData as error:
        raise InvalidModelFile(str(error)) from error
    return texts
