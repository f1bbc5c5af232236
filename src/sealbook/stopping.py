"""How a command is stopped: SIGINT and SIGTERM take one way, from the first import to the last swap.

A signal ends at once what would outlive the process (whoever starts such a thing says so by `end_at_stop`),
and then raises `Stopped` wherever the main thread is, but not where `uninterrupted` says that it must wait.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SECONDS_TO_TRY_AGAIN = 0.01
_SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a command."""


class Outliving(Protocol):
    """What would outlive this process."""

    def end(self) -> None:
        """Begin to end it, whatever it is doing, and return at once. Asked again, do not give it any time."""
        ...

    def wait(self) -> None:
        """Return when it has ended."""
        ...


_outliving: list[Outliving] = []


class Stopped(KeyboardInterrupt):
    """The user, or whoever runs the command, wants it to end."""


class Stop:
    """The wish to stop a command, which may come at any time."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._holds = 0
        self._is_pending = False
        self._is_lost = False
        self._is_in_hook = False

    @property
    def exit_code(self) -> int | None:
        """What the command returns if it was to stop, 130 or 143; None if nobody wanted that."""
        return None if self._number is None else _SIGNALLED + self._number

    def receive(self, number: int, _frame: FrameType | None = None) -> None:
        """Be the handler of a signal."""
        if self._is_lost:
            if not self._is_in_hook:
                self._is_lost = False
                self._raise()
            return
        is_second = self._number is not None
        self._number = number
        # What breaks from here on breaks because of the stop: only the command itself still speaks.
        logging.disable()
        threading.excepthook = lambda _: None
        sys.unraisablehook = self._raise_again
        for each in _outliving:
            each.end()
        if is_second:  # whatever the command still waits for, its user does not
            os._exit(_SIGNALLED + number)
        self._raise()

    def settle(self) -> int | None:
        """Raise nothing from here on, whatever comes; return what `exit_code` is for good."""
        self._holds += 1
        self._is_lost = False
        return self.exit_code

    def _raise(self) -> None:
        if not self._holds:
            raise Stopped
        self._is_pending = True

    def _raise_again(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Try once more: the signal came while an object was cleaned up, where nothing can be raised."""
        if isinstance(unraisable.exc_value, Stopped):
            self._is_in_hook = self._is_lost = True
            threading.Thread(target=self._send_again, name="stop-again", daemon=True).start()
            self._is_in_hook = False

    def _send_again(self) -> None:
        """Send the signal until the main thread has been reached where it can be raised."""
        main = threading.main_thread().ident
        while self._is_lost and main is not None and self._number is not None:
            signal.pthread_kill(main, self._number)
            time.sleep(_SECONDS_TO_TRY_AGAIN)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait with `Stopped` until the block has ended."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
        if self._is_pending and not self._holds:
            self._is_pending = False
            raise Stopped


_current: Stop | None = None


@contextmanager
def stoppable(*, until_exit: bool = False) -> Iterator[Stop]:
    """Let SIGINT and SIGTERM stop the block; in the main thread only, for no other gets signals.

    With `until_exit` they are handled to the end of the process, which the block was all there is to: a late
    one stops nothing then, and does not end the process by itself.
    """
    global _current
    stop = Stop()
    if not _is_main():
        yield stop
        return
    outer, excepthook, unraisablehook = _current, threading.excepthook, sys.unraisablehook
    if until_exit:
        # The last that is done at exit: Python then gives signals that it handles back to the system, by
        # which they would end the process. Those that are ignored stay so.
        atexit.register(_handle, dict.fromkeys(_SIGNALS, signal.SIG_IGN))
    before = {number: signal.signal(number, stop.receive) for number in _SIGNALS}
    _current = stop
    try:
        yield stop
    finally:
        if stop.settle() is not None:
            for each in _outliving:
                each.wait()
        if not until_exit:
            _current = outer
            _handle(before)
            if stop.exit_code is not None:
                threading.excepthook, sys.unraisablehook = excepthook, unraisablehook
                logging.disable(logging.NOTSET)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a stop wait until the block has ended: for what is short, and must not be left half told."""
    if _current is None or not _is_main():
        yield
        return
    with _current.held():
        yield


def end_at_stop(outliving: Outliving) -> None:
    """Have something ended at the moment of a signal."""
    _outliving.append(outliving)


def _handle(handlers: Mapping[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
