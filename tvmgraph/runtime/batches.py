"""Dynamic batching: requests that arrive while others run, or within a moment, become one call.

A module can be batched if axis 0 of every input and output is one size that varies (exported with
``dynamic={"x": {0: "batch"}}``), and its calls change nothing. Others run call by call.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvmgraph.runtime.module import Module

Arrays = dict[str, np.ndarray]


class Overloaded(Exception):
    """As many requests wait as may."""


@dataclass
class Counts:
    """What was done since the start.

    Attributes:
        requests: Requests that were answered.
        calls: Calls of the module.
        rows: Rows of all calls.
        largest: Rows of the largest call.
        seconds: Time in calls.
        failed: Requests whose call raised.
    """

    requests: int = 0
    calls: int = 0
    rows: int = 0
    largest: int = 0
    seconds: float = 0.0
    failed: int = 0


@dataclass(eq=False)
class _Request:
    arrays: Arrays
    rows: int
    kind: Any  # what requests of one call have in common
    answer: asyncio.Future[list[np.ndarray]]
    arrived: float = field(default_factory=time.monotonic)


def why_single(module: Module) -> str | None:
    """Returns why requests cannot share a call, None if they can.

    Args:
        module: The module, whose inputs may have a symbolic first axis.
    """
    m = module.manifest
    if m.written:
        return "its calls change parameters"
    labels = {e.shape[0] if e.shape else None for e in (*m.inputs, *m.outputs)}
    if len(labels) != 1 or not isinstance(next(iter(labels)), str):
        return "axis 0 of its inputs and outputs is not one size that varies"
    return None


class Batcher:
    """Calls a module for many requests at once.

    Args:
        module: The module.
        max_rows: Rows of one call at most; larger requests run alone.
        max_wait: Seconds that a request waits for others while the module is free.
        max_queue: Requests that may wait; more are refused.
        calls: How many calls run at the same time; each uses all of the module's threads.

    Attributes:
        counts: What was done.
        single: Why every request is a call of its own, None if they share calls.
    """

    def __init__(
        self, module: Module, max_rows: int = 32, max_wait: float = 0.002, max_queue: int = 1024,
        calls: int = 1,
    ) -> None:  # fmt: skip
        self.module = module
        self.max_rows, self.max_wait, self.max_queue = max_rows, max_wait, max_queue
        self.counts = Counts()
        self.single = why_single(module)
        self._calls = calls
        self._queue: deque[_Request] = deque()
        self._running = 0
        self._changed = asyncio.Condition()
        self._workers: list[asyncio.Task[None]] = []
        self._pool = ThreadPoolExecutor(calls, thread_name_prefix="tvmgraph-call")

    @property
    def waiting(self) -> int:
        """Requests that no call has taken yet."""
        return len(self._queue)

    async def start(self) -> None:
        """Begins to take requests."""
        self._workers = [asyncio.create_task(self._work()) for _ in range(self._calls)]

    async def stop(self) -> None:
        """Answers what waits, and ends."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._queue and not self._running)
        for task in self._workers:
            task.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._pool.shutdown()

    async def infer(self, arrays: Arrays) -> list[np.ndarray]:
        """Computes the outputs of one request.

        Args:
            arrays: The inputs, which were checked: a call with a wrong one fails for all in it.

        Raises:
            Overloaded: if too many wait.
        """
        if len(self._queue) >= self.max_queue:
            raise Overloaded(f"{self.max_queue} requests wait already")
        if self.single is None:
            rows = len(next(iter(arrays.values())))
            kind = tuple((name, a.shape[1:]) for name, a in sorted(arrays.items()))
        else:
            rows, kind = self.max_rows, None
        answer = asyncio.get_running_loop().create_future()
        async with self._changed:
            self._queue.append(_Request(arrays, rows, kind, answer))
            self._changed.notify_all()
        return await answer

    async def _work(self) -> None:
        while True:
            taken = await self._next()
            if taken:
                await self._answer(taken)
                self._running -= 1
            async with self._changed:
                self._changed.notify_all()

    async def _next(self) -> list[_Request]:
        """Waits for a request, then a moment for others that fit with it, and takes them."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._queue)
            first = self._queue[0]
            while not self._is_full(first):
                left = first.arrived + self.max_wait - time.monotonic()
                if left <= 0:
                    break
                try:
                    await asyncio.wait_for(self._changed.wait(), left)
                except TimeoutError:
                    break
            taken = self._take(first)
            self._running += bool(taken)
            return taken

    def _is_full(self, first: _Request) -> bool:
        alike = (r.rows for r in self._queue if r.kind == first.kind)
        return self.single is not None or sum(alike) >= self.max_rows

    def _take(self, first: _Request) -> list[_Request]:
        """Takes requests like the first one, as many as fit into a call."""
        taken: list[_Request] = []
        left: deque[_Request] = deque()
        rows = 0
        for request in self._queue:
            if request.answer.done():  # its client has gone
                continue
            fits = not taken or rows + request.rows <= self.max_rows
            if request.kind != first.kind or not fits:
                left.append(request)
                continue
            taken.append(request)
            rows += request.rows
        self._queue = left
        return taken

    async def _answer(self, taken: list[_Request]) -> None:
        loop = asyncio.get_running_loop()
        start = time.monotonic()
        try:
            outputs = await loop.run_in_executor(self._pool, self._call, taken)
        except Exception as e:
            self.counts.failed += len(taken)
            for request in taken:
                if not request.answer.done():
                    request.answer.set_exception(e)
            return
        self._count(taken, time.monotonic() - start)
        at = 0
        for request in taken:
            end = at + request.rows
            part = outputs if self.single is not None else [o[at:end] for o in outputs]
            if not request.answer.done():
                request.answer.set_result(part)
            at = end

    def _call(self, taken: list[_Request]) -> list[np.ndarray]:
        arrays = taken[0].arrays
        if len(taken) > 1:
            arrays = {name: np.concatenate([r.arrays[name] for r in taken]) for name in arrays}
        found = self.module(**arrays)
        return list(found) if isinstance(found, tuple) else [found]

    def _count(self, taken: list[_Request], seconds: float) -> None:
        rows = sum(r.rows for r in taken) if self.single is None else 1
        self.counts.requests += len(taken)
        self.counts.calls += 1
        self.counts.rows += rows
        self.counts.largest = max(self.counts.largest, rows)
        self.counts.seconds += seconds
