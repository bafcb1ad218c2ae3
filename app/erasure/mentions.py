"""Whether documents and texts name an entity."""

from __future__ import annotations

import html
import re
import zipfile
from collections.abc import Collection, Mapping
from typing import Any

import orjson


def mentions(document: Any, text: str | None) -> bool:
    """The text may be a value, or a key."""
    if isinstance(document, Mapping):
        return any(key == text or mentions(value, text) for key, value in document.items())
    if isinstance(document, list | tuple):
        return any(mentions(each, text) for each in document)
    return document is not None and not isinstance(document, bool) and str(document) == text


Words = Mapping[str, Collection[str]]
"""By column, the categories that only the entity had."""


def mentions_words(document: Any, words: Words) -> bool:
    """Return True if what a document says about a column has one of its words."""
    if isinstance(document, Mapping):
        own = words.get(document.get("column", ""), ())
        return _has_text(document, own) or any(
            mentions_words(value, words) for value in document.values()
        )
    return isinstance(document, list | tuple) and any(
        mentions_words(each, words) for each in document
    )


def _has_text(document: Any, words: Collection[str]) -> bool:
    if isinstance(document, Mapping):
        document = list(document.values())
    if isinstance(document, list | tuple):
        return any(_has_text(each, words) for each in document)
    return isinstance(document, str) and document in words


def names(text: str, entity: str) -> bool:
    """The id must not be a part of a longer word."""
    return entity in text and re.search(rf"(?<!\w){re.escape(entity)}(?!\w)", text) is not None


def document_names(document: Any, entity: str) -> bool:
    """Texts may have the id as a word. Of a number, only whole texts count, because many sentences have numbers."""
    if isinstance(document, Mapping):
        return any(
            document_names(key, entity) or document_names(value, entity)
            for key, value in document.items()
        )
    if isinstance(document, list | tuple):
        return any(document_names(each, entity) for each in document)
    if not isinstance(document, str):
        return False
    return document.strip() == entity or (not _is_number(entity) and names(document, entity))


def without_id(document: Any, entity: str) -> Any:
    """Return what a report says without the id, which may be an ordinary word: what is meant and until when it remains
    are not changed. A number is replaced only where it is a text or the name of a model, because reports have many
    numbers.
    """
    if isinstance(document, Mapping):
        own = ("what", "until")
        return {
            key: value if key in own else without_id(value, entity)
            for key, value in document.items()
        }
    if isinstance(document, list):
        return [without_id(each, entity) for each in document]
    if not isinstance(document, str):
        return document
    word = re.escape(entity)
    pattern = rf"^{word}(?=@|$)" if _is_number(entity) else rf"(?<!\w){word}(?!\w)"
    return re.sub(pattern, "[erased]", document)


def search_archive(path: str, entity: str) -> bool:
    """Return True if a file of an archive with evidence names the entity."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith(".json"):
                if document_names(orjson.loads(content), entity):
                    return True
            # a page shows what is in the documents beside it
            elif not _is_number(entity) and names(html.unescape(content.decode()), entity):
                return True
    return False


def _is_number(entity: str) -> bool:
    return re.fullmatch(r"[-+.,\d\s]+", entity) is not None
