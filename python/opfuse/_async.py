"""Runs in other threads. opfuse gives the interpreter's lock back while it runs, so threads are all that is needed."""
from __future__ import annotations

import asyncio
import concurrent.futures
import os
import typing
from collections.abc import Mapping

if typing.TYPE_CHECKING:
    from . import Executable

_pool: concurrent.futures.ThreadPoolExecutor | None = None


def _threads() -> concurrent.futures.ThreadPoolExecutor:
    """Made on first use, and anew in a child of fork, where threads do not survive."""
    global _pool
    if _pool is None:
        _pool = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="opfuse")
    return _pool


def _forget_threads() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def submit(exe: Executable, inputs: Mapping[str, object],
           out: Mapping[str, object]) -> concurrent.futures.Future[dict[str, object]]:
    return _threads().submit(exe.run, dict(inputs), dict(out))


async def run_async(exe: Executable, inputs: Mapping[str, object], out: Mapping[str, object]) -> dict[str, object]:
    return await asyncio.wrap_future(submit(exe, inputs, out))
