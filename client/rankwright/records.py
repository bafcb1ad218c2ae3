"""Records: each JSON object of the service becomes an object of a declared class."""

from __future__ import annotations

import html
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Union

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Do nothing: type checkers alone read it."""
        return lambda cls: cls


R = TypeVar("R", bound="Record")
_Read = Callable[[Any], Any]
_MOST_ROWS = 20
"""Rows of a table within a table, in a notebook."""
_MANY = 8
"""Fields from which on it is faster to take them all at once than one by one."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """Base class of the objects that the service returns; its attributes are the fields of a JSON object.

    A field that the service left out is None. A field that this version of the client does not know is only in
    `to_json()`. Two records are equal if their JSON is. Records cannot be changed.

    Examples
    --------
    >>> from rankwright.types import Interval
    >>> interval = Interval.from_json({"value": 0.83, "low": 0.79, "high": 0.86})
    >>> interval.value
    0.83
    >>> interval.to_json()
    {'value': 0.83, 'low': 0.79, 'high': 0.86}
    """

    _json: Mapping[str, Any]
    _readers: typing.ClassVar[_Readers]

    def __init__(self, **fields: Any) -> None:
        _readers_of(type(self)).fill(self.__dict__, fields)

    if not TYPE_CHECKING:  # a type checker is to know the declared fields alone

        def __getattr__(self, name: str) -> Any:
            read = _readers_of(type(self)).lazy.get(name)
            if read is None:
                raise AttributeError(f"{type(self).__name__} has no field {name!r}")
            value = self._json.get(name)
            found = self.__dict__[name] = None if value is None else read(value)
            return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record of a JSON object.

        Fields that hold several records are converted when they are first read.

        Parameters
        ----------
        data : mapping of str to JSON value
            The JSON object.

        Returns
        -------
        Record
            An object of this class.

        Raises
        ------
        TypeError
            `data` is not an object, or a field has the wrong type.
        """
        # The exact type first: to ask for an abstract one takes as long as to read a small record.
        if type(data) is not dict and not isinstance(data, Mapping):
            raise TypeError(f"{cls.__name__} must be a JSON object, got {type(data).__name__}")
        new = cls.__new__(cls)
        _readers_of(cls).fill(new.__dict__, data)
        return new

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the service sent.

        Returns
        -------
        dict of str to JSON value
            A copy.
        """
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

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_readers_of(type(self)).nothing})

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={_short(getattr(self, name))}"
            for name in _readers_of(type(self)).nothing
            if getattr(self, name) is not None
        )
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        found = {name: getattr(self, name) for name in _readers_of(type(self)).nothing}
        return html_table(type(self).__name__, found)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def html_table(title: str, fields: Mapping[str, Any]) -> str:
    """Return a table of the fields that are neither None nor an empty list, for a notebook."""
    rows = "".join(
        f"<tr><th style='text-align: left'>{html.escape(name)}</th>"
        f"<td style='text-align: left'>{_cell(value)}</td></tr>"
        for name, value in fields.items()
        if value not in (None, [])
    )
    return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"


def _cell(value: Any) -> str:
    """Return the HTML of a value: records are a table of their own."""
    if isinstance(value, Record) and not _is_interval(value):
        return _table([value])
    if isinstance(value, (list, tuple)) and value and all(isinstance(e, Record) for e in value):
        return _table(value)
    return html.escape(_in_a_line(value))


def _in_a_line(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if _is_interval(value):
        return f"{value.value:.4g}\N{NO-BREAK SPACE}[{value.low:.4g},\N{NO-BREAK SPACE}{value.high:.4g}]"
    return value if isinstance(value, str) else _short(value)


def _is_interval(value: Any) -> bool:
    if not isinstance(value, Record):
        return False
    names = [*_readers_of(type(value)).nothing]
    return names == ["value", "low", "high"] and all(
        isinstance(getattr(value, name), float) for name in names
    )


def _fits(value: Any) -> bool:
    """Return True for what stands in a line of a table."""
    return _is_interval(value) or not isinstance(value, (Record, list, dict))


def _table(records: Sequence[Record]) -> str:
    """Return a table with a row of each record, and a column of each field that fits into a line."""
    first, more = records[:_MOST_ROWS], len(records) - _MOST_ROWS
    names = dict.fromkeys(name for each in first for name in _readers_of(type(each)).nothing)
    columns = {name: [getattr(each, name, None) for each in first] for name in names}
    shown = {
        name: values
        for name, values in columns.items()
        if all(map(_fits, values)) and any(value is not None for value in values)
    }
    if not shown:  # all is nested
        return html.escape(_short(records[0] if len(records) == 1 else list(records)))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
    rows = [
        "".join(f"<td>{'' if v is None else html.escape(_in_a_line(v))}</td>" for v in row)
        for row in zip(*shown.values(), strict=True)
    ]
    if more > 0:
        rows.append(f"<td>… and {more} more</td>")
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _short(value: Any) -> str:
    if isinstance(value, (list, tuple, dict)) and len(value) > 3:
        return f"<{len(value)} of {type(value).__name__}>"
    return repr(value)


class _Readers:
    """How the fields of a class are read, and how an object is told to be of it; made when it is first needed.

    Attributes
    ----------
    plain : list of str
        Fields whose value is their JSON.
    read : list of (str, callable)
        Fields that hold a record, with what turns their JSON into a value.
    lazy : dict of str to callable
        Fields that hold several records: who asks for a list rarely looks at all of it.
    nothing : dict of str to None
        All fields as they are if the service leaves them out.
    required : set of str
        Fields that the service never leaves out.
    fixed : dict of str to tuple
        Fields with fixed values.
    """

    def __init__(self, cls: type[Record]) -> None:
        hints = {
            name: hint
            for name, hint in typing.get_type_hints(cls).items()
            if not name.startswith("_")
        }
        found = {name: _reader(hint) for name, hint in hints.items()}
        self.nothing = dict.fromkeys(hints)
        self.required = {name for name in hints if not hasattr(cls, name)}
        self.plain = [name for name, read in found.items() if read is _as_it_is]
        self.lazy = {
            name: read
            for name, read in found.items()
            # A field with a default is an attribute of the class: it would be found without being read.
            if read is not _as_it_is and _holds_several(hints[name]) and not hasattr(cls, name)
        }
        self.read = [
            (name, read)
            for name, read in found.items()
            if read is not _as_it_is and name not in self.lazy
        ]
        self.fixed = {
            name: typing.get_args(hint)
            for name, hint in hints.items()
            if typing.get_origin(hint) is typing.Literal
        }

    def fill(self, put: dict[str, Any], data: Mapping[str, Any]) -> None:
        """Put the fields of a JSON object into a record's attributes."""
        get = data.get
        put["_json"] = data
        if len(self.plain) > _MANY and self.nothing.keys() >= data.keys():
            put.update(self.nothing)
            put.update(data)
            for name in self.lazy:
                del put[name]
        else:
            for name in self.plain:
                put[name] = get(name)
        for name, read in self.read:
            value = get(name)
            put[name] = None if value is None else read(value)


def _readers_of(cls: type[Record]) -> _Readers:
    found: _Readers | None = cls.__dict__.get("_readers")
    if found is None:
        found = cls._readers = _Readers(cls)
    return found


def _holds_several(hint: Any) -> bool:
    return typing.get_origin(hint) in (list, dict) or any(
        typing.get_origin(each) in (list, dict) for each in typing.get_args(hint)
    )


def _as_it_is(value: Any) -> Any:
    return value


def _record_reader(kind: type[Record]) -> _Read:
    fill: Callable[[dict[str, Any], Any], None] | None = None

    def read(value: Any) -> Any:
        nonlocal fill
        if type(value) is not dict:
            return value if isinstance(value, Record) else kind.from_json(value)
        # As `from_json`, without its calls: a curve is thousands of records.
        if fill is None:
            fill = _readers_of(kind).fill
        new = kind.__new__(kind)
        fill(new.__dict__, value)
        return new

    return read


def _reader(hint: Any) -> _Read:
    if isinstance(hint, type) and issubclass(hint, Record):
        return _record_reader(hint)
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

    A field with a fixed value decides alone: the class whose value the object has. Next come the fields that the
    service never leaves out: an object that lacks one is of another class.
    """
    if not isinstance(data, Mapping) or isinstance(data, Record):
        return data

    def fit(kind: type[R]) -> tuple[bool, bool, int]:
        readers = _readers_of(kind)
        fixed = all(data[name] in values for name, values in readers.fixed.items() if name in data)
        common, fields = len(readers.nothing.keys() & data.keys()), len(readers.nothing)
        whole = readers.required <= data.keys()
        return fixed, whole, common - (fields + len(data) - 2 * common)

    return max(kinds, key=fit).from_json(data)
