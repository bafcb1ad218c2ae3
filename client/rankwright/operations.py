"""One description of an operation for the blocking and the asynchronous client.

An operation is a method that is a generator of steps (`transport`). Under a blocking owner it is called and returns;
under an asynchronous owner it is awaited. Type checkers see both signatures.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from rankwright.transport import (
    AsyncTransport,
    Items,
    Steps,
    Transport,
    iterate,
    iterate_async,
    run,
    run_async,
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


class Blocking:
    """What is asked by blocking calls."""

    _transport: Transport


class Asynchronous:
    """What is asked by calls that are awaited."""

    _transport: AsyncTransport


class Operation(Generic[P, S, A]):
    """A method that blocks and returns S, or that is awaited and returns A."""

    def __init__(self, describe: Callable[..., Steps[Any]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, owner: Blocking, kind: Any = None) -> Callable[P, S]: ...
    @overload
    def __get__(self, owner: Asynchronous, kind: Any = None) -> Callable[P, Awaitable[A]]: ...
    @overload
    def __get__(self, owner: object, kind: Any = None) -> Operation[P, S, A]: ...
    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self
        describe = self.describe
        if isinstance(owner, Asynchronous):

            async def call_async(*args: Any, **kwargs: Any) -> Any:
                return await run_async(describe(owner, *args, **kwargs), owner._transport)

            return update_wrapper(call_async, describe)

        def call(*args: Any, **kwargs: Any) -> Any:
            return run(describe(owner, *args, **kwargs), owner._transport)

        return update_wrapper(call, describe)


class Iteration(Generic[P, S, A]):
    """A method that returns an iterator of S, or an asynchronous iterator of A."""

    def __init__(self, describe: Callable[..., Items[Any]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, owner: Blocking, kind: Any = None) -> Callable[P, Iterator[S]]: ...
    @overload
    def __get__(self, owner: Asynchronous, kind: Any = None) -> Callable[P, AsyncIterator[A]]: ...
    @overload
    def __get__(self, owner: object, kind: Any = None) -> Iteration[P, S, A]: ...
    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self
        describe = self.describe

        def call(*args: Any, **kwargs: Any) -> Any:
            steps = describe(owner, *args, **kwargs)
            if isinstance(owner, Asynchronous):
                return iterate_async(steps, owner._transport)
            return iterate(steps, owner._transport)

        return update_wrapper(call, describe)


def operation(describe: Callable[Concatenate[Any, P], Steps[T]]) -> Operation[P, T, T]:
    """Make a method of both clients from its steps."""
    return Operation(describe)


def iteration(describe: Callable[Concatenate[Any, P], Items[T]]) -> Iteration[P, T, T]:
    """Make a method of both clients, which yields items, from its steps."""
    return Iteration(describe)


class Either(Generic[S, A]):
    """For type checkers: a result that can itself be asked, S for the blocking client, A for the asynchronous one."""


def returning(describe: Callable[Concatenate[Any, P], Steps[Either[S, A]]]) -> Operation[P, S, A]:
    """Make an operation whose result can itself be asked."""
    return Operation(describe)


def yielding(describe: Callable[Concatenate[Any, P], Items[Either[S, A]]]) -> Iteration[P, S, A]:
    """Make an iteration whose items can themselves be asked."""
    return Iteration(describe)
