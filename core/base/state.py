"""Fitted state as declared fields: one declaration defines how a field is stored, validated and checkpointed.

A class declares its state in annotations: which array or JSON value a field is, and which values it may have::

    @dataclass(frozen=True, eq=False)
    class StumpSum(State):
        n_categories: Integers  # not stored: the reader of the state knows it
        feature: Annotated[Integers, Array("n_rounds"), Index("n_features")]
        alpha: Annotated[Floats, Array("n_rounds"), FINITE]
        n_values: Annotated[Integers, Array("n_rounds"), Ge(1), Totals("n_all_values")]
        values: Annotated[Floats, Array("n_all_values"), Ge(-1.0), Le(1.0)]
        stop_reason: Annotated[Literal["n_rounds", "no_edge"], Value()]

        def check(self) -> None:  # rules across fields
            if self.n_categories[self.feature].any():
                raise ArtifactError("feature must be numeric")

`arrays()` returns the state. `from_arrays(arrays, known)` reads it from an untrusted source, and raises ArtifactError
with the name, the rule and the first value that breaks it. Sizes have names: a size in `known` is required, any other
is set by the first array that has it. Fields are read in the order of their declaration, those of base classes first.
The annotation of an array has its dtype: `Floats`, `Integers` and so on. `None` in an annotation makes the array
optional. A field's name in an artifact is its attribute's, without underscores at either end, unless the field has
another.

A ranker declares its fitted attributes in the same way; `Ranker` writes and reads them, and `_restore` derives the
others. State that is stored in another form than it is used in is a property, annotated with the declaration, and has a
setter.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Le, Lt

from core.errors import ArtifactError

Floats = Annotated[npt.NDArray[np.float64], np.dtype(np.float64)]
Integers = Annotated[npt.NDArray[np.int64], np.dtype(np.int64)]
Signs = Annotated[npt.NDArray[np.int8], np.dtype(np.int8)]
Indices = Annotated[npt.NDArray[np.uint32], np.dtype(np.uint32)]
Words = Annotated[npt.NDArray[np.uint64], np.dtype(np.uint64)]
Booleans = Annotated[npt.NDArray[np.bool_], np.dtype(np.bool_)]
"""Arrays that may be declared as fields: the type, and the dtype that is read.

The dtype is given apart from numpy's generic type, as versions of numpy build that type in different ways.
"""

Arrays = dict[str, npt.NDArray[Any]]
Meta = dict[str, Any]
Known = Mapping[str, Any]
"""What the reader of a state knows: sizes, classes of nested states, and fields that are not stored."""

# The dtypes that are stored: safetensors' name of each, and numpy's.
ARRAY_TYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F32": "float32",
    "F64": "float64",
}

MAX_COUNT = 1 << 31  # largest count that is read, so that sums of counts fit an int64


class Constraint(NamedTuple):
    """A rule for a field's values: in words, and as a function from an array to a mask of valid values."""

    says: str
    holds: Callable[[npt.NDArray[Any]], npt.NDArray[np.bool_]]


FINITE = Constraint("finite", np.isfinite)
NOT_NAN = Constraint("a number", lambda values: ~np.isnan(values))
NOT_INFINITE = Constraint("finite or NaN", lambda values: ~np.isinf(values))
SIGN = Constraint("1 or -1", lambda values: np.asarray(abs(values) == 1))


class Index(NamedTuple):
    """Rule: values are indices from `least` to `size` - 1; with `least` -1 the index -1 means none."""

    size: str
    least: int = 0


class Totals(NamedTuple):
    """Rule: values are counts, at least 0, whose sum (or that of `of(counts)`) is the size of this name."""

    size: str
    of: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] | None = None

    def counts(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if self.of is None else self.of(values)


class _Reader:
    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Known, known: Known) -> None:
        self.arrays, self.meta, self.known = arrays, meta, known
        self.sizes = {name: int(n) for name, n in known.items() if isinstance(n, int | np.integer)}

    def length(self, term: str | int, given: int = -1) -> int:
        """An unknown name is set so that the sum is `given`."""
        if isinstance(term, int) or term in self.sizes:
            return term if isinstance(term, int) else self.sizes[term]
        total, sign, unknown = 0, 1, None
        for word in term.split():
            if word in ("+", "-"):
                sign = 1 if word == "+" else -1
            elif word.isdigit():
                total += sign * int(word)
            elif word in self.sizes:
                total += sign * self.sizes[word]
            else:
                unknown = word
        if unknown is None or given < total:
            assert unknown is None or given >= 0, f"{unknown} is unknown"
            return total
        self.sizes[unknown] = given - total
        return given

    def array(
        self, name: str, dtype: Any, shape: tuple[str | int, ...], rules: tuple[Any, ...]
    ) -> npt.NDArray[Any]:
        if name not in self.arrays:
            raise ArtifactError(f"array {name} is missing")
        array = self.arrays[name]
        expected: tuple[str | int, ...] = shape
        if array.ndim == len(shape):
            expected = tuple(map(self.length, shape, array.shape))
        check_array(name, array, dtype, expected)
        self.check(name, array, rules)
        return np.array(array, order="C")

    def check(self, name: str, values: npt.NDArray[Any], rules: tuple[Any, ...]) -> None:
        for rule in rules:
            holds = self._holds(rule, values)
            if not holds.all():
                says = " and ".join(map(self._says, rules))
                raise ArtifactError(f"{name} must be {says}, got {values[~holds].tolist()[0]!r}")
            if isinstance(rule, Totals):
                self.sizes[rule.size] = int(rule.counts(values).sum())

    def _holds(self, rule: Any, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """NaN obeys no bound."""
        match rule:
            case Ge(low):
                return np.asarray(values >= low)
            case Gt(low):
                return np.asarray(values > low)
            case Le(high):
                return np.asarray(values <= high)
            case Lt(high):
                return np.asarray(values < high)
            case Index(size, least):
                return (values >= least) & (values < self.length(size))
            case Totals():
                counts = rule.counts(values)
                return (counts >= 0) & (counts <= MAX_COUNT)
        assert isinstance(rule, Constraint), f"{rule!r} is not a rule"
        return rule.holds(values)

    def _says(self, rule: Any) -> str:
        match rule:
            case Ge(low):
                return f"at least {low:.10g}"
            case Gt(low):
                return f"above {low:.10g}"
            case Le(high):
                return f"at most {high:.10g}"
            case Lt(high):
                return f"below {high:.10g}"
            case Index(size, least):
                return f"from {least} to {self.length(size) - 1}"
            case Totals():
                return "a count"
        return str(rule.says)


class Field(ABC):
    """Base class of the annotations that declare how a field is stored."""

    name: str | None = None
    """Name in artifacts, if it is not the attribute's."""

    @abstractmethod
    def write(self, name: str, value: Any, arrays: Arrays, meta: Meta) -> None:
        """Add the field's value to the arrays or the JSON values of an artifact."""

    @abstractmethod
    def read(self, declared: "Declared", reader: _Reader) -> Any:
        """Return the field's value from an artifact; raise ArtifactError if it breaks the declaration."""


class Declared(NamedTuple):
    """A declared field of a class: attribute, name in artifacts, type, storage and rules."""

    attribute: str
    name: str
    type: Any
    field: Field
    rules: tuple[Any, ...]

    @property
    def dtype(self) -> np.dtype[Any] | None:
        notes = (note for member in _members(self.type) for note in get_args(member)[1:])
        return next((note for note in notes if isinstance(note, np.dtype)), None)


class Array(Field):
    """An array of the annotated type; each size is a number, a name, or a sum such as "n_rounds + 1"."""

    def __init__(self, *shape: str | int, name: str | None = None) -> None:
        self.shape, self.name = shape, name

    def write(self, name: str, value: Any, arrays: Arrays, meta: Meta) -> None:
        if value is not None:
            arrays[name] = value

    def read(self, declared: Declared, reader: _Reader) -> Any:
        members = _members(declared.type)
        if NoneType in members and declared.name not in reader.arrays:
            return None
        return reader.array(declared.name, declared.dtype, self.shape, declared.rules)


class Records(Field):
    """A structured array, stored as one array per field (prefix + name). `rules` has one or several rules by field."""

    def __init__(self, dtype: np.dtype[np.void], length: str, prefix: str = "", **rules: Any):
        self.dtype, self.length, self.prefix = dtype, length, prefix
        self.rules = {
            name: rule if type(rule) is tuple else (rule,) for name, rule in rules.items()
        }
        assert self.rules.keys() <= set(dtype.names or ()), "each rule is of a field"

    def write(self, name: str, value: Any, arrays: Arrays, meta: Meta) -> None:
        arrays |= {f"{self.prefix}{field}": value[field].copy() for field in self.dtype.names or ()}

    def read(self, declared: Declared, reader: _Reader) -> Any:
        columns = {
            field: reader.array(
                f"{self.prefix}{field}",
                self.dtype[field],
                (self.length,),
                self.rules.get(field, ()),
            )
            for field in self.dtype.names or ()
        }
        records = np.empty(len(next(iter(columns.values()))), dtype=self.dtype)
        for field, column in columns.items():
            records[field] = column
        return records


class Value(Field):
    """A JSON value (number, text, boolean, None, Literal, tuple of these), with rules. `nan_as_null`: NaN as null."""

    def __init__(self, name: str | None = None, *, nan_as_null: bool = False) -> None:
        self.name, self.nan_as_null = name, nan_as_null

    def write(self, name: str, value: Any, arrays: Arrays, meta: Meta) -> None:
        meta[name] = None if self.nan_as_null and math.isnan(value) else _to_json(value)

    def read(self, declared: Declared, reader: _Reader) -> Any:
        name, rules = declared.name, declared.rules
        if name not in reader.meta:
            raise ArtifactError(f"{name} is missing")
        given = reader.meta[name]
        if self.nan_as_null and given is None:
            return math.nan
        value = _from_json(name, given, declared.type)
        if value is not None and rules:
            reader.check(name, np.ravel(np.array(value)), rules)
        return value


class Nested(Field):
    """Another state, of the annotated or a known class. `sizes`: names of sizes there, as sums of sizes here."""

    def __init__(self, **sizes: str) -> None:
        self.sizes = sizes

    def write(self, name: str, value: Any, arrays: Arrays, meta: Meta) -> None:
        own_arrays, own_meta = write_state(value)
        arrays |= own_arrays
        meta |= own_meta

    def read(self, declared: Declared, reader: _Reader) -> Any:
        state_class = reader.known.get(declared.attribute, declared.type)
        sizes = {name: reader.length(term) for name, term in self.sizes.items()}
        return state_class.from_arrays(reader.arrays, {**reader.known, **sizes}, reader.meta)


class State:
    """Base class of stored states: dataclasses whose annotations declare their fields."""

    def arrays(self) -> Arrays:
        return write_state(self)[0]

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.NDArray[Any]],
        known: Known,
        meta: Known | None = None,
    ) -> Self:
        """Return the state read from the arrays of an untrusted source.

        ArtifactError: a field is missing or breaks its declaration.

        known: sizes by name, the fields that are not stored, and classes of nested states by their attributes.
        """
        values = read_state(cls, arrays, meta or {}, known)
        if is_dataclass(cls):
            names = {field.name for field in fields(cls) if field.init} - values.keys()
            values |= {name: known[name] for name in names if name in known}
        make: Any = cls
        state: Self = make(**values)
        state.check()
        return state

    def check(self) -> None:
        """Raise ArtifactError if a rule across fields is broken; called after each field's own rules are checked."""


def write_state(state: object) -> tuple[Arrays, Meta]:
    arrays: Arrays = {}
    meta: Meta = {}
    state_class: type = type(state)
    for declared in declared_fields(state_class):
        declared.field.write(declared.name, getattr(state, declared.attribute), arrays, meta)
    return arrays, meta


def read_state(
    state_class: type, arrays: Mapping[str, npt.NDArray[Any]], meta: Known, known: Known
) -> dict[str, Any]:
    reader = _Reader(arrays, meta, known)
    return {
        declared.attribute: declared.field.read(declared, reader)
        for declared in declared_fields(state_class)
    }


@cache
def declared_fields(state_class: type) -> tuple[Declared, ...]:
    """Return the fields declared by a class and its bases, bases first."""
    hints = get_type_hints(state_class, include_extras=True)
    for base in reversed(state_class.__mro__):
        for attribute, member in vars(base).items():
            if isinstance(member, property) and "return" in member.fget.__annotations__:
                hints[attribute] = get_type_hints(member.fget, include_extras=True)["return"]
    declarations = []
    for attribute, hint in hints.items():
        if get_origin(hint) is not Annotated:
            continue
        kind, *notes = get_args(hint)
        if isinstance(notes[0], np.dtype):  # the annotation of the array and of the field are one
            kind = Annotated[kind, notes.pop(0)]
        for field in notes:
            if isinstance(field, Field):
                rules = tuple(note for note in notes if note is not field)
                name = field.name or attribute.strip("_")
                declared = Declared(attribute, name, kind, field, rules)
                if isinstance(field, Array) and declared.dtype is None:
                    raise TypeError(f"array {attribute} must be declared with a dtype, as Floats")
                declarations.append(declared)
    return tuple(declarations)


def check_array(
    name: str, array: npt.NDArray[Any], dtype: Any, shape: tuple[str | int, ...]
) -> None:
    if array.dtype != np.dtype(dtype) or array.shape != shape:
        sizes = ", ".join(map(str, shape)) + "," * (len(shape) == 1)
        raise ArtifactError(
            f"{name} must be {np.dtype(dtype)} of shape ({sizes}), "
            f"got {array.dtype} of shape {array.shape}"
        )


def to_safetensors(arrays: Arrays, metadata: dict[str, str] | None = None) -> bytes:
    from safetensors.numpy import save

    # safetensors writes the memory of an array without regard to its strides
    dense = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    for name, array in dense.items():
        if array.dtype.name not in ARRAY_TYPES.values():
            raise ArtifactError(f"array {name} must be boolean or a number, got {array.dtype}")
    file: bytes = save(dense, metadata=metadata)
    return file


def pieces(array: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> list[npt.NDArray[Any]]:
    """Return consecutive slices of an array, of `counts` values each, without copying."""
    ends = np.cumsum(counts)
    return [array[start:end] for start, end in zip(ends - counts, ends, strict=True)]


def put_under(prefix: str, named: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}{key}": value for key, value in named.items()}


def take_from(prefix: str, named: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key.removeprefix(prefix): value for key, value in named.items() if key.startswith(prefix)
    }


def _members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _from_json(name: str, value: Any, kind: Any) -> Any:
    """Convert lists to tuples; booleans and numbers are not mixed."""
    for member in _members(kind):
        of = get_args(member)
        if get_origin(member) is Literal:
            if isinstance(value, str) and value in of:
                return value
        elif get_origin(member) is tuple:
            of = of[:1] * len(value) if of[1:] == (...,) and isinstance(value, list) else of
            if isinstance(value, list) and len(value) == len(of):
                return tuple(
                    _from_json(name, each, one) for each, one in zip(value, of, strict=True)
                )
        elif type(value) is member:
            return value
    expected = getattr(kind, "__name__", None) if isinstance(kind, type) else None
    raise ArtifactError(
        f"{name} must be {expected or str(kind).removeprefix('typing.')}, got {value!r}"
    )
