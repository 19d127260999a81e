"""``Wait``: an effect that waits until another thread or task resolves a future.

The owner of the future (a queue, the leader of identical calls, a budget) resolves it from any thread. A wait that ends early
cancels the future: a flag, which the owner sees when it comes to the future. Each waiter has a future of its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sigwire.effects.cancellation import StreamCancelled, on_cancel
from sigwire.effects.waiting import result_of
from sigwire.errors import LMTimeoutError

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Wait", "claim"]

T = TypeVar("T")
_LOOP = "sigwire_loop"  # in a future: the event loop of its waiter


@dataclass(frozen=True, slots=True)
class Wait(Generic[T]):
    """Effect: wait for a future and return its value, or raise its error.

    ``deadline`` is a time of ``time.monotonic()``; when it passes first, ``LMTimeoutError`` is raised. The deadline, an
    interrupt and cancellation cancel the future. If its owner has resolved it at the same moment, ``future.cancelled()`` is
    False: the steps then give back what the future holds.

    >>> from concurrent.futures import Future
    >>> future = Future()
    >>> future.set_result("slot 3")
    >>> Wait(future, None).run()
    'slot 3'
    """

    future: Future[T]
    deadline: float | None

    def run(self) -> T:
        from concurrent.futures import CancelledError

        try:
            with on_cancel(self.future.cancel):
                return result_of(self.future, self._seconds())
        except CancelledError:  # by the cancel scope: the blocking wait knows no other
            raise StreamCancelled from None
        except TimeoutError:
            return self._after_deadline()
        except BaseException:
            self.future.cancel()
            raise

    async def arun(self) -> T:
        import asyncio

        try:
            vars(self.future)[_LOOP] = asyncio.get_running_loop()
            async with asyncio.timeout(self._seconds()):
                return await asyncio.wrap_future(self.future)
        except TimeoutError:
            return self._after_deadline()
        except BaseException:
            self.future.cancel()
            raise

    def _seconds(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def _after_deadline(self) -> T:
        """Cancel the future and raise; or return or raise what the future has got at the same moment."""
        if not self.future.cancel():
            return self.future.result(0)
        error = LMTimeoutError(
            "The deadline of the call has passed (waiting to send). Raise timeout, or that of deadline()."
        )
        error.retryable = False
        raise error from None


def claim(future: Future[Any]) -> bool:
    """Return True if a waiter takes the result of a future: the owner must set it at once, and nothing cancels it any more.

    False if the waiter has cancelled it, or its event loop is closed.
    """
    loop = vars(future).get(_LOOP)
    return (loop is None or not loop.is_closed()) and future.set_running_or_notify_cancel()
