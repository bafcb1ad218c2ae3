"""What a model file holds, before the columns of a table are known."""

import math
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
    words: Mapping[int, Sequence[Any]]
    """The categories of features, in the order of their codes."""
    lists: Sequence[Sequence[Any]]
    """Categories in the order of the features that they are of; `words` has them if the file says which these are."""
    highest_code: Sequence[float]
    """The highest category code among the values of each feature: -1 if the file does not say, infinity if they are
    not codes.
    """
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
    """Return the names of a model's features and the categories as the file or the caller writes them; see
    `import_model`.
    """
    names = _find_names(model, columns, features)
    places = {name: j for j, name in enumerate(names)}
    unknown = [name for name in categories or () if name not in places]
    if unknown:
        raise InvalidParameter(
            f"categories must name features of the model, got {shorten(repr(unknown[0]), MAX_VALUE)}"
        )
    words = dict(model.words)
    if isinstance(categories, Mapping):
        words |= {places[name]: of_column for name, of_column in categories.items()}
    elif categories is not None or (model.lists and not words):
        words = _share_lists(model.lists, categories, places)
    for j, of_column in words.items():
        _check_fit(model, j, names[j], of_column)
    for j, name in enumerate(names):
        if j not in words and model.is_categorical[j]:
            raise InvalidParameter(
                f"categories must be declared for feature {shorten(repr(name), MAX_VALUE)}, as a mapping: the file "
                "does not say which category each code stands for"
            )
    return Columns(names, [words.get(j) for j in range(len(names))])


def _share_lists(
    lists: Sequence[Sequence[Any]], names: Sequence[str] | None, places: Mapping[str, int]
) -> dict[int, Sequence[Any]]:
    """Return the lists of the features that the caller names."""
    shown = shorten(repr(lists[:MAX_VALUE]), MAX_VALUE)
    if names is None:
        raise InvalidParameter(
            f"categories must be declared: the file does not say which features the lists {shown} of "
            "pandas_categorical belong to. Name those that were of dtype category, or map each categorical feature "
            "to its categories"
        )
    if len(set(names)) != len(lists):
        raise InvalidParameter(
            f"categories must name a feature for each of the {len(lists)} lists {shown} of pandas_categorical, got "
            f"{len(set(names))}"
        )
    return dict(zip(sorted(places[name] for name in set(names)), lists, strict=True))


def _check_fit(model: ParsedModel, j: int, name: str, words: Sequence[Any]) -> None:
    check_words(name, words)
    highest = model.highest_code[j]
    if highest >= len(words):
        got = "numbers" if math.isinf(highest) else f"the code {highest:.0f}"
        raise InvalidParameter(
            f"categories of feature {name!r} must have a category for each of its values, got {len(words)} "
            f"categories, but the model was trained on {got}"
        )
    if not math.isnan(model.missing_low[j]):
        raise InvalidModelFile(
            f"feature {name!r} has categories, so 0 must not count as missing (zero_as_missing)"
        )


def _find_names(
    model: ParsedModel, columns: Sequence[str] | None, features: Sequence[str] | None
) -> list[str]:
    n = len(model.names)
    if features is not None:
        if len(features) != n or len(set(features)) != n:
            raise InvalidParameter(
                f"features must be {n} distinct names, as the model has, got {len(features)}"
            )
        known = set(features if columns is None else columns)
        for own, name in zip(model.names, features, strict=True):
            if model.has_names and own not in (name, _as_written(model, name)):
                raise InvalidParameter(
                    f"features must be the names in the file, in their order: {shorten(repr(own), MAX_VALUE)} in "
                    f"place of {shorten(repr(name), MAX_VALUE)}. Rename the columns of the table to use others"
                )
            if name not in known:
                raise InvalidParameter(
                    f"features must be columns of the table, got {shorten(repr(name), MAX_VALUE)}"
                )
        return list(features)
    if not model.has_names:
        raise InvalidParameter(
            f"features must be declared: a file of {model.source} does not name its {n} features"
        )
    if len(set(model.names)) != n:
        raise InvalidModelFile("feature names must be distinct")
    if columns is None:
        return list(model.names)
    named: dict[str, list[str]] = {name: [name] for name in columns}
    for name in columns:
        if (written := _as_written(model, name)) != name:
            named.setdefault(written, []).append(name)
    found = []
    for name in model.names:
        matches = named.get(name, [])
        if len(matches) != 1:
            got = "none" if not matches else f"{len(matches)} columns; declare features"
            raise InvalidParameter(
                f"feature {shorten(repr(name), MAX_VALUE)} must be one column of the table, got {got}"
            )
        found.append(matches[0])
    return found


def _as_written(model: ParsedModel, name: str) -> str:
    return name if model.writes_spaces_as is None else name.replace(" ", model.writes_spaces_as)


def check_words(name: str, words: Sequence[Any]) -> list[str]:
    """Return the categories as texts, as a table of pandas has them."""
    if not words or not all(isinstance(word, str | int | float) for word in words):
        raise InvalidParameter(
            f"categories of feature {name!r} must be texts, numbers or booleans, got "
            f"{shorten(repr(words[:MAX_VALUE]), MAX_VALUE)}; declare them"
        )
    texts = list(map(str, words))
    try:
        check_categories(f"categories of feature {name!r}", sorted(texts))
    except InvalidData as error:
        raise InvalidModelFile(str(error)) from error
    return texts
