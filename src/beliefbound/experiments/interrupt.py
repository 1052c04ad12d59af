"""Ctrl-C as a request: the first asks to stop after what is in flight, the second interrupts at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def first_interrupt(say: Callable[[], object]) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, after which `say` is called at once; a second raises `KeyboardInterrupt`.

    Where a program has its own handler, or outside the main thread, nothing is changed and the event is never set.
    """
    asked = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        asked.set()
        threading.Thread(target=say).start()  # a handler may interrupt a print, so it must not print itself

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield asked
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
