"""What the service answers: a JSON object becomes an object of a declared class."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Union

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Do nothing: type checkers alone read it."""
        return lambda cls: cls


R = TypeVar("R", bound="Record")
_Read = Callable[[Any], Any]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """An object of the API. Its fields are those of the JSON object; `to_json` returns that object.

    A field that the service left out is None. A field that a newer service has, and this client does not know, is
    only in `to_json()`. Two records are equal if their JSON is.
    """

    _json: Mapping[str, Any]
    _readers: typing.ClassVar[dict[str, _Read]]

    def __init__(self, **fields: Any) -> None:
        self._set(fields)

    def _set(self, data: Mapping[str, Any]) -> None:
        readers = _readers_of(type(self))
        put = self.__dict__
        put["_json"] = data
        for name, read in readers.items():
            value = data.get(name)
            put[name] = None if value is None else read(value)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record of a JSON object. TypeError: if it is no object, or a field is not of its type."""
        if not isinstance(data, Mapping):
            raise TypeError(f"{cls.__name__} must be a JSON object, got {type(data).__name__}")
        new = cls.__new__(cls)
        new._set(data)
        return new

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the service sent."""
        return _plain(self._json)  # type: ignore[no-any-return]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} is what the service answered: it cannot be changed"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and (
            type(other) is type(self) and self.to_json() == other.to_json()
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={_short(self.__dict__[name])}"
            for name in _readers_of(type(self))
            if self.__dict__[name] is not None
        )
        return f"{type(self).__name__}({shown})"


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _short(value: Any) -> str:
    if isinstance(value, (list, tuple, dict)) and len(value) > 3:
        return f"<{len(value)} of {type(value).__name__}>"
    return repr(value)


def _readers_of(cls: type[Record]) -> dict[str, _Read]:
    """Return for each field what turns its JSON into a value; made when the first record of the class is read."""
    if "_readers" not in cls.__dict__:
        hints = typing.get_type_hints(cls)
        cls._readers = {
            name: _reader(hint) for name, hint in hints.items() if not name.startswith("_")
        }
    return cls._readers


def _as_it_is(value: Any) -> Any:
    return value


def _reader(hint: Any) -> _Read:
    if isinstance(hint, type) and issubclass(hint, Record):
        return lambda value: value if isinstance(value, Record) else hint.from_json(value)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        read = _reader(arguments[0])
        return _as_it_is if read is _as_it_is else lambda value: [read(each) for each in value]
    if origin is dict:
        read = _reader(arguments[1])
        if read is _as_it_is:
            return _as_it_is
        return lambda value: {name: read(each) for name, each in value.items()}
    if origin in (Union, types.UnionType):
        records = [
            each for each in arguments if isinstance(each, type) and issubclass(each, Record)
        ]
        if records:
            return lambda value: read_one_of(records, value)
        lists = [each for each in arguments if typing.get_origin(each) in (list, dict)]
        return _reader(lists[0]) if len(lists) == 1 else _as_it_is
    return _as_it_is


def read_one_of(kinds: list[type[R]], data: Any) -> Any:
    """Return the record of the class whose fields the JSON object has the most of and lacks the fewest.

    A field with a fixed value decides alone: the class whose value the object has.
    """
    if not isinstance(data, Mapping) or isinstance(data, Record):
        return data

    def fit(kind: type[R]) -> tuple[bool, int]:
        hints = typing.get_type_hints(kind)
        fixed = all(
            data.get(name) in typing.get_args(hint)
            for name, hint in hints.items()
            if typing.get_origin(hint) is typing.Literal and name in data
        )
        fields = {name for name in hints if not name.startswith("_")}
        return fixed, len(fields & data.keys()) - len(fields ^ data.keys())

    return max(kinds, key=fit).from_json(data)
