"""Ctrl-C as a request: the first asks to stop after what is in flight, the second interrupts at once.

An interrupt is an exception that Python raises wherever the program happens to be, and where that is a callback, of the
compiler for instance, exceptions are dropped. So the second one is repeated until the work is left.
"""

import _thread
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_PATIENCE = 2.0  # seconds after which an interrupt that nobody heard is repeated


@contextmanager
def first_interrupt(say: Callable[[], object]) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, after which `say` is called at once; a second raises `KeyboardInterrupt`.

    Where a program has its own handler, or outside the main thread, nothing is changed and the event is never set.
    """
    asked, left = threading.Event(), threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, insist)
        asked.set()
        threading.Thread(target=say).start()  # a handler may interrupt a print, so it must not print itself

    def insist(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=repeat, daemon=True).start()
        raise KeyboardInterrupt

    def repeat() -> None:
        while not left.wait(_PATIENCE):
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(main.ident or 0, signal.SIGINT)  # wakes it, too
            else:  # Windows
                _thread.interrupt_main()

    main = threading.main_thread()
    if threading.current_thread() is not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield asked
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield asked
    finally:
        left.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
