"""One description of an operation for the blocking and the asynchronous client.

An operation is a method that is a generator of steps (`transport`). Under a blocking owner it is called and returns;
under an asynchronous owner it is awaited. Type checkers see both signatures. Most methods do no more than to send a
request of `api`: `bound`, `free` and their like make a method of such a function.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import re
import textwrap
import typing
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass
from functools import partial, update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from rankwright.errors import ConfigurationError, NotFound, RankwrightError
from rankwright.records import Record, read_one_of
from rankwright.transport import (
    AsyncTransport,
    Item,
    Items,
    Request,
    Response,
    Steps,
    Transport,
    as_text,
    hide_our_frames,
    iterate,
    iterate_async,
    run,
    run_async,
    send,
)

if TYPE_CHECKING:
    from typing import Concatenate

    from typing_extensions import ParamSpec

    P = ParamSpec("P")
else:
    from typing import Concatenate, ParamSpec

    P = ParamSpec("P")

S = TypeVar("S")
A = TypeVar("A")
T = TypeVar("T")
R = TypeVar("R", bound=Record)
F = TypeVar("F", bound=Callable[..., Any])

PAGE = 200
"""Things that one page of a list holds: the most that the service allows."""
HEADER = "header"
"""Marks a keyword that is a header of the request."""
REPEATED = "repeated"
"""Marks a keyword that takes several values."""
NULL: Any = object()
"""A value that is sent as null: a keyword that is None is left out."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list.

    Attributes
    ----------
    data : list
        The entries of the page.
    has_more : bool
        Whether there are more pages.
    next : str, int or None
        Pass it as `after` to read the next page.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> page = client.models.page(limit=1)
    >>> len(page.data), page.has_more
    (1, True)
    """

    data: list[T]
    has_more: bool
    next: str | int | None


@dataclass(kw_only=True)
class ApiRequest(Request, Generic[T]):
    """A request of an operation of the service, with what reads the answer."""

    read: Callable[[Response], T]

    @classmethod
    def of(
        cls,
        method: str,
        path: str,
        read: Callable[[Response], T],
        fields: Mapping[str, Any] | None = None,
        *,
        headers: Collection[str] = (),
        body: Collection[str] | None = None,
        joined: Collection[str] = (),
    ) -> ApiRequest[T]:
        """Return a request with these fields. Those that are None are left out, and `NULL` is sent as null.

        Fields that are named in `headers` or `body` are sent there, all others in the query. `body=None`: the request
        has no JSON body. Lists of fields in `joined` are sent as one text, with commas between.
        ConfigurationError: if a header or JSON cannot have a value.
        """
        said = {
            name: _joined(value) if name in joined and value is not NULL else value
            for name, value in (fields or {}).items()
            if value is not None
        }
        new = cls(
            method,
            path,
            {
                name: v
                for name, v in said.items()
                if name not in headers and name not in (body or ())
            },
            {_header(name): _header_text(name, said[name]) for name in headers if name in said},
            read=read,
        )
        if body is not None:
            new.set_json(
                {name: None if v is NULL else v for name, v in said.items() if name in body}
            )
        return new

    def set_json(self, body: Any) -> None:
        """Make JSON the body. ConfigurationError: if JSON does not have a value of it, such as NaN."""
        try:
            data = json.dumps(body, allow_nan=False, separators=(",", ":"))
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"the request cannot be sent: {error}") from error
        self.body = data.encode()
        self.headers["Content-Type"] = "application/json"


def _header(name: str) -> str:
    return name.replace("_", "-").title()


def _header_text(name: str, value: Any) -> str:
    text = as_text(value)
    if not (text.isascii() and text.isprintable() and text):
        raise ConfigurationError(
            f"{name} must be a non-empty string of printable ASCII characters, got {value!r}"
        )
    return text


def _joined(names: object) -> str:
    """Return names as one text, with commas between; a name with a comma is quoted. One value, such as True, is one
    name.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        return as_text(names)
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(map(as_text, names))
    return line.getvalue()


# --- what reads an answer -------------------------------------------------------------------------


def record_of(kind: type[R]) -> Callable[[Response], R]:
    """Return what reads a record."""
    return lambda response: kind.from_json(response.json())


def page_of(kind: type[R]) -> Callable[[Response], Page[R]]:
    """Return what reads one page of a list."""

    def read(response: Response) -> Page[R]:
        found = response.json()
        data = [kind.from_json(each) for each in found["data"]]
        return Page(data, found["has_more"], found.get("next"))

    return read


def one_of(*kinds: type[Record]) -> Callable[[Response], Any]:
    """Return what reads a record that is of one of these classes."""
    return lambda response: read_one_of([*kinds], response.json())


def json_of(response: Response) -> Any:
    """Return the JSON of an answer."""
    return response.json()


def bytes_of(response: Response) -> bytes:
    """Return the bytes of an answer."""
    return response.content


def nothing_of(response: Response) -> None:
    """Read nothing."""


# --- methods --------------------------------------------------------------------------------------


class Blocking:
    """What is asked by blocking calls."""

    _transport: Transport


class Asynchronous:
    """What is asked by calls that are awaited."""

    _transport: AsyncTransport


class Operation(Generic[P, S, A]):
    """A method that blocks and returns S, or that is awaited and returns A.

    Read from a class it is a plain function, so that `help`, `inspect` and editors show its signature and docstring.
    """

    def __init__(self, describe: Callable[..., Steps[Any]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__
        self._functions: dict[bool, Callable[..., Any]] = {}

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: Blocking, kind: Any = None) -> Callable[P, S]: ...
    @overload
    def __get__(self, owner: Asynchronous, kind: Any = None) -> Callable[P, Awaitable[A]]: ...
    @overload
    def __get__(self, owner: object, kind: Any = None) -> Operation[P, S, A]: ...
    def __get__(self, owner: Any, kind: Any = None) -> Any:
        awaited = issubclass(type(owner) if kind is None else kind, Asynchronous)
        function = self._functions.get(awaited)
        if function is None:
            made = _awaited(self.describe) if awaited else _blocking(self.describe)
            function = _presented(made, self.describe, kind or type(owner), self._name)
            self._functions[awaited] = function
        return function if owner is None else MethodType(function, owner)


def _blocking(describe: Callable[..., Steps[Any]]) -> Callable[..., Any]:
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return run(describe(self, *args, **kwargs), self._transport)
        except RankwrightError as error:
            hide_our_frames(error)
            raise

    return call


def _awaited(describe: Callable[..., Steps[Any]]) -> Callable[..., Any]:
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return await run_async(describe(self, *args, **kwargs), self._transport)
        except RankwrightError as error:
            hide_our_frames(error)
            raise

    return call


class Iteration(Generic[P, S, A]):
    """A method that returns an iterator of S, or an asynchronous iterator of A. Read from a class: as `Operation`."""

    def __init__(
        self, describe: Callable[..., Items[Any]], kinds: tuple[type, type] | None = None
    ) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__
        self._kinds = kinds
        self._functions: dict[bool, Callable[..., Any]] = {}

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: Blocking, kind: Any = None) -> Callable[P, Iterator[S]]: ...
    @overload
    def __get__(self, owner: Asynchronous, kind: Any = None) -> Callable[P, AsyncIterator[A]]: ...
    @overload
    def __get__(self, owner: object, kind: Any = None) -> Iteration[P, S, A]: ...
    def __get__(self, owner: Any, kind: Any = None) -> Any:
        awaited = issubclass(type(owner) if kind is None else kind, Asynchronous)
        function = self._functions.get(awaited)
        if function is None:
            describe, walk = self.describe, cast(Any, iterate_async if awaited else iterate)

            def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
                return walk(describe(self, *args, **kwargs), self._transport)

            entry = _entry_type(str(inspect.signature(describe).return_annotation))
            if self._kinds is not None:
                entry = self._kinds[awaited].__name__
            function = _presented(call, describe, kind or type(owner), self._name, entry)
            self._functions[awaited] = function
        return function if owner is None else MethodType(function, owner)


# --- how methods present themselves ---------------------------------------------------------------

_HEAD = re.compile(r"^([A-Z]\w+)\n-{3,}\n", re.MULTILINE)
_SECTIONS = ("Parameters", "Returns", "Yields", "Raises", "Notes", "Examples")


def _presented(
    call: Callable[..., Any],
    describe: Callable[..., Any],
    kind: type,
    name: str,
    entry: str | None = None,
) -> Callable[..., Any]:
    """Return a method with the signature and the docstring of its description, and with its own name.

    Its result is that of the call, without the steps that lead there. `entry` is what an iterator yields; None: the
    result is no iterator.
    """
    update_wrapper(call, describe)
    call.__name__, call.__qualname__ = name, f"{kind.__qualname__}.{name}"
    call.__module__ = kind.__module__
    found = inspect.signature(describe)
    given = [each for each in found.parameters.values() if each.name not in ("self", "_")]
    is_positional = bool(given) and given[0].kind is given[0].POSITIONAL_ONLY
    first = inspect.Parameter(
        "self", given[0].kind if is_positional else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    awaited = issubclass(kind, Asynchronous)
    returns = _result_type(str(found.return_annotation), awaited)
    sections = _sections_of(describe.__doc__ or "")
    own = sections.get("Parameters", "")
    added = _described(describe.__dict__.get("keywords"), but=_entries_of(own))
    if added:
        sections["Parameters"] = "\n".join([own, *added] if own else added)
    if entry is not None:
        sections.setdefault("Yields", entry)
        returns = f"{'Async' if awaited else ''}Iterator[{entry}]"
    elif returns != "None":
        sections.setdefault("Returns", returns)
    call.__doc__ = _docstring_of(sections)
    call.__dict__["describe"] = describe
    call.__signature__ = found.replace(parameters=[first, *given], return_annotation=returns)  # type: ignore[attr-defined]
    return call


def _result_type(annotation: str, awaited: bool) -> str:
    """Return the type that a caller gets, from the annotation of the steps or of the request."""
    inner = re.sub(r"^(?:Steps|ApiRequest)\[(.*)\]$", r"\1", annotation)
    if either := re.match(r"Either\[(\w+(?:\[\w+\])?), (\w+(?:\[\w+\])?)\]$", inner):
        return either[2] if awaited else either[1]
    return inner


def _entry_type(annotation: str) -> str:
    """Return the type of what an iterator yields, from the annotation of its items or of the request for a page."""
    found = re.search(r"(?:Items|Page)\[(.*?)\]+$", annotation)
    return found[1] if found else "Any"


def _sections_of(doc: str) -> dict[str, str]:
    """Return the sections of a docstring; the text before the first has the name ""."""
    first, *rest = _HEAD.split(inspect.cleandoc(doc))
    named = {name: text.strip("\n") for name, text in zip(rest[::2], rest[1::2], strict=True)}
    return {"": first.strip("\n"), **named}


def _entries_of(text: str) -> dict[str, str]:
    """Return the entries of a section by the name that each describes."""
    entries = re.split(r"^(?=\w)", text, flags=re.MULTILINE)
    return {each.partition(" : ")[0]: each.rstrip("\n") for each in entries if each.strip()}


def _described(kind: type[Any] | None, but: Collection[str]) -> list[str]:
    """Return the entries of a docstring for the keywords of a TypedDict, without those in `but`."""
    if kind is None:
        return []
    texts = {
        name: typing.get_args(hint)[1]
        for name, hint in typing.get_type_hints(kind, include_extras=True).items()
    }
    return [
        f"{name} : {_type_of(hint).removesuffix(' | None')}, optional\n{_indented(texts[name])}"
        for name, hint in kind.__annotations__.items()
        if name not in but and texts[name]
    ]


def _indented(text: str) -> str:
    return textwrap.fill(text, 100, initial_indent="    ", subsequent_indent="    ")


def _docstring_of(sections: Mapping[str, str]) -> str:
    named = [name for name in _SECTIONS if name in sections]
    return "\n\n".join(
        [sections[""], *(f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in named)]
    )


def operation(describe: Callable[Concatenate[Any, P], Steps[T]]) -> Operation[P, T, T]:
    """Make a method of both clients from its steps."""
    return Operation(describe)


def iteration(describe: Callable[Concatenate[Any, P], Items[T]]) -> Iteration[P, T, T]:
    """Make a method of both clients, which yields items, from its steps."""
    return Iteration(describe)


def ask(request: ApiRequest[T]) -> Steps[T]:
    """Send a request; return what its answer says. What is gone after a try whose answer was lost, that try has
    deleted.
    """
    try:
        response = yield from send(request)
    except NotFound:
        if request.read is not nothing_of or not request.lost_answer:
            raise
        return cast(T, None)
    return request.read(response)


def each_of(
    request: Callable[..., ApiRequest[Page[Any]]],
    fields: Mapping[str, Any],
    read: Callable[[Any], Any] | None = None,
) -> Items[Any]:
    """Yield the entries of a list, page after page: `limit` of them, or all. `read` makes something else of each."""
    left, after = fields.get("limit"), fields.get("after")
    while left is None or left > 0:
        size = PAGE if left is None else min(left, PAGE)
        page = yield from ask(request(**{**fields, "limit": size, "after": after}))
        for entry in page.data:
            yield Item(entry if read is None else read(entry))
        if not page.has_more or page.next is None:
            return
        left, after = None if left is None else left - len(page.data), page.next


def keywords(kind: type[Any]) -> Callable[[F], F]:
    """Return a decorator that puts the keywords of a TypedDict into a function's signature, where help shows them.

    The function refuses others as any function does, unless it takes any.
    """

    def put(function: F) -> F:
        found = inspect.signature(function)
        parameters = [*found.parameters.values()]
        others = [each for each in parameters if each.kind is each.VAR_KEYWORD]
        own = parameters[: len(parameters) - len(others)]
        added = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_type_of(hint)
            )
            for name, hint in kind.__annotations__.items()
            if name not in found.parameters
        ]
        known = {each.name for each in (*own, *added)}
        takes_any = any(each.annotation == "Any" for each in others)

        def call(*args: Any, **fields: Any) -> Any:
            if not takes_any and (unknown := fields.keys() - known):
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument {min(unknown)!r}"
                )
            return function(*args, **fields)

        update_wrapper(call, function)
        shown = [*own, *added, *(others if takes_any else ())]
        call.__signature__ = found.replace(parameters=shown)  # type: ignore[attr-defined]
        call.__dict__["keywords"] = kind
        return cast(F, call)

    return put


def _type_of(hint: Any) -> str:
    """Return the type in the annotation of a keyword, without its description."""
    annotated = getattr(hint, "__forward_arg__", hint)
    return f"{annotated.removeprefix('Annotated[').partition(' | None, ')[0]} | None"


def keywords_of(request: Callable[..., ApiRequest[Any]]) -> Callable[[F], F]:
    """Return a decorator that gives a method the keywords of a function of `api`, with their descriptions."""
    return keywords(request.__dict__["keywords"])


def free(make: Callable[P, ApiRequest[T]]) -> Operation[P, T, T]:
    """Make a method that sends a request and returns what the answer says."""

    def describe(_: Any, *args: Any, **fields: Any) -> Steps[T]:
        return (yield from ask(make(*args, **fields)))

    return Operation(update_wrapper(describe, make))


def bound(make: Callable[Concatenate[str, P], ApiRequest[T]]) -> Operation[P, T, T]:
    """Make a method that sends a request about its owner and returns what the answer says."""

    def describe(self: Any, *args: Any, **fields: Any) -> Steps[T]:
        return (yield from ask(make(self._key, *args, **fields)))

    return Operation(_without_owner(update_wrapper(describe, make)))


def one(
    make: Callable[P, ApiRequest[Any]], blocking: type[S], asynchronous: type[A]
) -> Operation[P, S, A]:
    """Make a method that sends a request and returns an object that can itself be asked."""

    def describe(self: Any, *args: Any, **fields: Any) -> Steps[Either[S, A]]:
        found = yield from ask(make(*args, **fields))
        return cast("Either[S, A]", self._make(blocking, asynchronous, found))

    update_wrapper(describe, make)
    made = f"Steps[Either[{blocking.__name__}, {asynchronous.__name__}]]"
    shown = inspect.signature(make).replace(return_annotation=made)
    describe.__signature__ = shown  # type: ignore[attr-defined]
    return Operation(describe)


def free_items(make: Callable[P, ApiRequest[Page[T]]]) -> Iteration[P, T, T]:
    """Make a method that yields the entries of a list."""

    def describe(_: Any, *args: Any, **fields: Any) -> Items[T]:
        yield from each_of(partial(make, *args), fields)

    return Iteration(update_wrapper(describe, make))


def bound_items(make: Callable[Concatenate[str, P], ApiRequest[Page[T]]]) -> Iteration[P, T, T]:
    """Make a method that yields the entries of a list that its owner has."""

    def describe(self: Any, *args: Any, **fields: Any) -> Items[T]:
        yield from each_of(partial(make, self._key, *args), fields)

    return Iteration(_without_owner(update_wrapper(describe, make)))


def _without_owner(describe: F) -> F:
    """Return a description without its first parameter, which is the owner, in its signature and its docstring."""
    found = inspect.signature(describe)
    owner, *others = found.parameters.values()
    describe.__signature__ = found.replace(parameters=others)  # type: ignore[attr-defined]
    sections = _sections_of(describe.__doc__ or "")
    entries = _entries_of(sections.pop("Parameters", ""))
    kept = [text for name, text in entries.items() if name != owner.name]
    if kept:
        sections["Parameters"] = "\n".join(kept)
    describe.__doc__ = _docstring_of(sections)
    return describe


class Either(Generic[S, A]):
    """For type checkers: a result that can itself be asked, S for the blocking client, A for the asynchronous one."""


def returning(describe: Callable[Concatenate[Any, P], Steps[Either[S, A]]]) -> Operation[P, S, A]:
    """Make an operation whose result can itself be asked."""
    return Operation(describe)
