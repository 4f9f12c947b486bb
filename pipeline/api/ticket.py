"""A candidate on its way: it can be awaited, and it can be cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic

import anyio

from kernelproof.api.results import C, Result
from kernelproof.errors import UsageError


class Ticket(Generic[C]):
    """What `Verifier.submit` returns. Belongs to the event loop of its Verifier.

        ticket = verifier.submit(candidate)
        result = await ticket

    It may be awaited several times, by several tasks. Cancelling a task that awaits it cancels the candidate.
    """

    def __init__(self, candidate: C) -> None:
        self.candidate = candidate
        self._scope = anyio.CancelScope()
        self._over = anyio.Event()
        self._result: Result[C] | None = None
        self._error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether `await` returns at once."""
        return self._over.is_set()

    def cancel(self) -> bool:
        """Ends the candidate; its state is then `cancelled`. False when it was over before.

        One that waits or is compiled ends at once. One that is judged gives its place free within 20 seconds.
        """
        if self.done or self._scope.cancel_called:
            return False
        self._scope.cancel()
        return True

    def __await__(self) -> Generator[Any, None, Result[C]]:
        """The result. Raises MachineError, and UsageError when the Verifier was closed before."""
        return self._waited().__await__()

    async def _waited(self) -> Result[C]:
        try:
            await self._over.wait()
        except anyio.get_cancelled_exc_class():
            self.cancel()
            raise
        if self._result is None:
            raise self._error or UsageError("the Verifier was closed before this candidate was done")
        return self._result

    async def follow(self, judge: Callable[[C], Awaitable[Result[C]]]) -> None:
        """Has the candidate judged. For the Verifier; called once."""
        try:
            with self._scope:
                self._result = await judge(self.candidate)
            if self._result is None:
                self._result = Result(self.candidate, "cancelled", error="cancelled by its caller")
        except Exception as error:
            self._error = error
        finally:
            self._over.set()
