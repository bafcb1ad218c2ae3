"""Names of metrics, such as precision@1% or pauc:0,0.05: each class declares the forms of its own names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from core.base.parameters import check_value
from core.errors import InvalidParameter

Metric = TypeVar("Metric")

_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,12})?"
_FORM = re.compile(r"([a-z_]+)(?:([:@])(.+))?")
_LETTERS = {"count": "K", "share": "P"}


class _Form(NamedTuple):
    """A form of metric names, such as `precision@{count}`: the class, a pattern, and the parameters in it."""

    metric: type[Any]
    pattern: re.Pattern[str]
    parameters: tuple[str, ...]
    shown: str


class MetricNames(Generic[Metric]):
    """The registry of metrics of one kind by name; modules that declare metrics must be imported before a look-up."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._forms: list[_Form] = []

    def named(self, *forms: str) -> Callable[[type[Metric]], type[Metric]]:
        """Declare name forms such as "precision@{count}", "precision@{share}%" (a whole number, a percentage)."""

        def declare(metric: type[Metric]) -> type[Metric]:
            for form in forms:
                pattern = re.sub(r"\{\w+\}", f"({_NUMBER})", form)
                shown = re.sub(r"\{(\w+)\}", lambda found: _letter(found[1]), form)
                parameters = tuple(re.findall(r"\{(\w+)\}", form))
                self._forms.append(_Form(metric, re.compile(pattern), parameters, shown))
            return metric

        return declare

    def find(self, name: str) -> Metric:
        check_value("the name of a metric", str, name)
        shown = name if len(name) <= 60 else f"{name[:59]}…"
        for form in self._forms:
            if found := form.pattern.fullmatch(name):
                try:
                    numbers = map(_read, form.parameters, found.groups())
                    metric: Metric = form.metric(**dict(zip(form.parameters, numbers, strict=True)))
                except InvalidParameter as error:
                    raise InvalidParameter(f"metric {shown!r}: {error}") from error
                return metric
        *others, last = (form.shown for form in self._forms)
        raise InvalidParameter(f"{self._what} must be {', '.join(others)} or {last}, got {shown!r}")


def _letter(parameter: str) -> str:
    return _LETTERS.get(parameter, parameter.upper())


def _read(parameter: str, text: str) -> float:
    """Return a parameter's value from its text in a name; a share is written as a percentage."""
    number = float(text)
    if parameter == "share":
        return number / 100.0
    if parameter != "count":
        return number
    if number != int(number):
        raise InvalidParameter(f"a number of rows must be a whole number, got {number:g}")
    return int(number)
