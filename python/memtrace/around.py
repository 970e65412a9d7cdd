"""Runs functions, generators and coroutines inside a context manager: the decorators of this package."""
from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractContextManager
from typing import Any, Callable, Optional, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
Opener = Callable[[], "AbstractContextManager[Any]"]


def around(function: Function, opened: Opener, overlapping: Optional[Opener] = None) -> Function:
    """Returns `function` with a context manager around each call. A generator or a coroutine keeps
    it open until it ends, so several of them may overlap: `overlapping` makes their context manager
    if it is a different one."""
    import inspect  # takes half of the time to import this package

    other = overlapping or opened
    if inspect.isasyncgenfunction(function):
        return cast(Function, _async_generator(function, other))
    if inspect.iscoroutinefunction(function):
        return cast(Function, _coroutine(function, other))
    if inspect.isgeneratorfunction(function):
        return cast(Function, _generator(function, other))

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with opened():
            return function(*arguments, **named)

    return cast(Function, call)


def _coroutine(function: Callable[..., Any], opened: Opener) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*arguments: Any, **named: Any) -> Any:
        with opened():
            return await function(*arguments, **named)

    return call


def _generator(function: Callable[..., Any], opened: Opener) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
        with opened():
            return (yield from function(*arguments, **named))

    return call


def _async_generator(function: Callable[..., Any], opened: Opener) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*arguments: Any, **named: Any) -> AsyncGenerator[Any, Any]:
        with opened():
            inner = function(*arguments, **named)
            try:
                resume: Any = inner.__anext__()
                while True:
                    try:
                        value = await resume
                    except StopAsyncIteration:
                        return
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # pylint: disable=broad-except
                        resume = inner.athrow(error)
                    else:
                        resume = inner.asend(sent)
            finally:
                await inner.aclose()

    return call
