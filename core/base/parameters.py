"""An estimator's `__init__` signature is the schema of its parameters.

Every parameter is keyword-only, annotated and has a default::

    n_rounds: Annotated[int, Ge(1), Doc("Number of boosting rounds.")] = 100

The HTTP schema, the command line's flags and the documentation are generated from these
annotations; here they check the values when `fit` is called. Nothing is listed twice.
"""

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from numbers import Integral, Real
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

from core.errors import MAX_VALUE, InvalidParameter, shorten

MAX_SEED = 2**32 - 1
"""The greatest seed that scikit-learn and numpy's older generators take."""

Seed = Annotated[int, Ge(0), Le(MAX_SEED)]
"""A seed of an estimator; functions that take a seed check it by `check_seed`."""


@dataclass(frozen=True)
class Since:
    """Annotation marker of a parameter that is newer than the first version, or whose default is newer.

    Artifacts and jobs leave the parameter out where it has its default, so that an API or a worker of an older version,
    which does not know it, takes whatever does not use it. The default must stay: it stands for what is left out.
    """

    version: str
    """The first version that has the parameter, or the default."""
    of: str | None = None
    """Name of a parameter at whose default this one means nothing, so that it is left out, too, whatever it is. What
    is loaded then has the default: the seed of a `Logistic` without crosses is not kept.
    """


@dataclass(frozen=True)
class Parameter:
    """One constructor parameter of an estimator: name, annotation, default and documentation."""

    name: str
    annotation: Any
    """The whole annotation, `Annotated[...]` included, as pydantic reads it."""
    default: Any
    doc: str
    """What the parameter does, in one sentence."""

    @property
    def json_annotation(self) -> Any:
        """The annotation without types that JSON lacks: estimators and other Python objects."""
        if get_origin(self.annotation) is not Annotated:
            return self.annotation
        choices, *metadata = get_args(self.annotation)
        if get_origin(choices) not in (Union, UnionType):
            return self.annotation
        kept = [member for member in get_args(choices) if _is_json(member)]
        return Annotated[(reduce(or_, kept), *metadata)]


def list_parameters(estimator_class: type) -> tuple[Parameter, ...]:
    """Return parameters in signature order. TypeError: one lacks an annotation, a `Doc` or a default."""
    initialiser: Any = inspect.getattr_static(estimator_class, "__init__")
    annotations = get_type_hints(initialiser, include_extras=True)
    parameters = []
    for name, parameter in inspect.signature(initialiser).parameters.items():
        if name == "self":
            continue
        annotation = annotations.get(name)
        docs = [m.documentation for m in getattr(annotation, "__metadata__", ()) if _is_doc(m)]
        if not docs or parameter.default is inspect.Parameter.empty:
            raise TypeError(
                f"{estimator_class.__name__}.{name} needs an annotation with a Doc and a default"
            )
        parameters.append(Parameter(name, annotation, parameter.default, docs[0]))
    return tuple(parameters)


def leave_out_newer(estimator_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter values without those that older versions do not know and that equal the default."""
    parameters = {parameter.name: parameter for parameter in list_parameters(estimator_class)}

    def is_default(name: str) -> bool:
        default = parameters[name].default
        return name not in values or (
            type(values[name]) is type(default) and values[name] == default
        )

    def is_left_out(name: str) -> bool:
        notes = get_args(parameters[name].annotation) if name in parameters else ()
        since = next((note for note in notes if isinstance(note, Since)), None)
        return since is not None and (
            is_default(name) or (since.of is not None and is_default(since.of))
        )

    return {name: value for name, value in values.items() if not is_left_out(name)}


def plain_value(value: Any) -> Any:
    """Convert numpy scalars, also within lists, tuples and dicts, as scikit-learn's `ParameterGrid` yields them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {plain_value(key): plain_value(of) for key, of in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(plain_value, value))
    return value


def check_values(estimator_class: type, values: Mapping[str, Any]) -> None:
    """Check the type, choice and bounds of values against the annotations of the parameters.

    A numpy scalar counts as the Python value that it holds, see `plain_value`. InvalidParameter: a name is unknown, or
    a value breaks its rule; the message has the name and the rule.

    values: any subset of the parameters.
    """
    parameters = {parameter.name: parameter for parameter in list_parameters(estimator_class)}
    for name, value in values.items():
        if name not in parameters:
            known = ", ".join(parameters)
            raise InvalidParameter(
                f"{estimator_class.__name__} has no parameter {name!r}; it has {known}"
            )
        _check(name, parameters[name].annotation, plain_value(value))


def check_value(name: str, annotation: Any, value: Any) -> Any:
    """Return an argument, a numpy scalar as the Python value that it holds; InvalidParameter if it does not have the
    annotated type or breaks a bound. A float must be finite, and is no boolean.
    """
    plain = plain_value(value)
    _check(name, annotation, plain)
    return plain


def check_items(name: str, values: Any, annotation: Any = Any) -> list[Any]:
    is_one = isinstance(values, str | bytes) or (isinstance(values, np.ndarray) and not values.ndim)
    if is_one or not isinstance(values, Iterable):
        raise InvalidParameter(f"{name} must be a sequence, got {_shown(values)}")
    return [check_value(f"an item of {name}", annotation, each) for each in values]


def check_seed(random_state: Any) -> int:
    return int(check_value("random_state", Seed, random_state))


def _is_json(annotation: Any) -> bool:
    return not isinstance(annotation, type) or annotation in (bool, int, float, str, NoneType)


def _is_doc(metadata: object) -> bool:
    return isinstance(metadata, Doc)


def _check(name: str, annotation: Any, value: Any) -> None:
    metadata: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        metadata = tuple(rest)
    if not _has_type(annotation, value):
        raise InvalidParameter(f"{name} must be {_describe(annotation)}, got {_shown(value)}")
    if value is None:
        return
    for member in _members(annotation):  # a member may have bounds of its own: a number or "auto"
        if get_origin(member) is Annotated and _has_type(member, value):
            metadata += get_args(member)[1:]
    for bound in metadata:
        broken = _broken_bound(bound, value)
        if broken:
            raise InvalidParameter(f"{name} must be {broken}, got {_shown(value)}")


def _shown(value: Any) -> str:
    return shorten(repr(value), MAX_VALUE)


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ()


def _has_type(annotation: Any, value: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _has_type(get_args(annotation)[0], value)
    if origin is Literal:
        return any(
            type(value) is type(choice) and value == choice for choice in get_args(annotation)
        )
    if origin in (Union, UnionType):
        return any(_has_type(member, value) for member in get_args(annotation))
    if origin is dict:
        of_key, of_value = get_args(annotation)
        return isinstance(value, dict) and all(
            _has_type(of_key, key) and _has_type(of_value, of) for key, of in value.items()
        )
    if annotation is Any:
        return True
    if origin is list:
        (of_item,) = get_args(annotation)
        return isinstance(value, list) and all(_has_type(of_item, item) for item in value)
    if annotation is bool:
        return isinstance(value, bool)
    if annotation is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if annotation is float:
        return isinstance(value, Real) and not isinstance(value, bool) and _is_finite(value)
    return isinstance(value, annotation)


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float is as large as
        return False


def _describe(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _describe(get_args(annotation)[0])
    if origin is Literal:
        return "one of " + ", ".join(repr(choice) for choice in get_args(annotation))
    if origin in (Union, UnionType):
        return " or ".join(_describe(member) for member in get_args(annotation))
    if origin is dict:
        of_key, of_value = get_args(annotation)
        return f"a mapping from {_describe(of_key)} to {_describe(of_value)}"
    if origin is list:
        return f"a list of {_describe_many(get_args(annotation)[0])}"
    names = {
        bool: "true or false",
        str: "text",
        int: "an integer",
        float: "a finite number",
        Real: "a number",
        NoneType: "None",
    }
    return names.get(annotation, f"of type {getattr(annotation, '__name__', annotation)}")


def _describe_many(annotation: Any) -> str:
    if get_origin(annotation) is list:
        return f"lists of {_describe_many(get_args(annotation)[0])}"
    plurals = {int: "integers", float: "finite numbers", str: "texts", Any: "values"}
    return plurals.get(annotation, f"items, each {_describe(annotation)}")


def _broken_bound(bound: Any, value: Any) -> str | None:
    """Return the bound that a value breaks in words, such as "at least 1"; None if it breaks none."""
    match bound:
        case Ge(ge=limit) if not value >= limit:
            return f"at least {limit}"
        case Gt(gt=limit) if not value > limit:
            return f"greater than {limit}"
        case Le(le=limit) if not value <= limit:
            return f"at most {limit}"
        case Lt(lt=limit) if not value < limit:
            return f"less than {limit}"
    return None
