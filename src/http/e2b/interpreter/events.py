"""Tells the server what the code of a context does: lines by a pipe, `+` and JSON for the client, `.` and a word for the server."""
from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
import traceback

# Bytes that one line may have: a result that is longer is left out, and says so.
MOST_EVENT = 16 << 20
# Characters of what is printed that go into one line at most.
PIECE = 32 << 10
MOST_TRACEBACK = 256 << 10
# What is printed is held back for so long, in seconds, to go out in fewer lines.
HELD_S = 0.02
OURS = "<sandpool_interpreter/"


class Interrupts:
    """Lets SIGINT end the code that runs, and nothing besides: never between two executions, never within a line."""

    def __init__(self):
        self._runs = self._came = False
        self._holds = 0
        self._main = threading.main_thread()
        signal.signal(signal.SIGINT, self._take)

    def __enter__(self):
        signal.signal(signal.SIGINT, self._take)
        self._came, self._runs = False, True

    def __exit__(self, *_):
        self._runs = False
        signal.signal(signal.SIGINT, self._take)

    def _take(self, *_):
        if self._runs and self._holds == 0:
            raise KeyboardInterrupt
        self._came = True

    def held(self):
        return _Held(self) if threading.current_thread() is self._main else _NotHeld()


class _Held:
    def __init__(self, interrupts):
        self._of = interrupts

    def __enter__(self):
        self._of._holds += 1

    def __exit__(self, *_):
        self._of._holds -= 1
        if self._of._holds == 0 and self._of._came and self._of._runs:
            self._of._came = False
            raise KeyboardInterrupt


class _NotHeld:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


class Events:
    """Writes events, each whole, from whichever thread; waits where nobody takes them."""

    def __init__(self, descriptor, interrupts):
        self._descriptor = descriptor
        self._interrupts = interrupts
        self._lock = threading.Lock()
        # What was printed before something else happened is told before it.
        self.flush = lambda: None

    def word(self, word):
        self._write(b"." + word.encode() + b"\n")

    def printed(self, stream, text):
        self._write(line_of(type=stream, text=text, timestamp=time.time_ns()))

    def result(self, fields, main):
        self.flush()
        line = line_of(type="result", is_main_result=main, **fields)
        if len(line) > MOST_EVENT:
            return self.printed("stderr", f"[a result of {len(line)} bytes is left out: it may have {MOST_EVENT}]\n")
        self._write(line)

    def failed(self, error):
        """Says how code ended that raised; what it shows begins with the code's own frames."""
        self.flush()
        frame = error.__traceback__
        while frame and frame.tb_frame.f_code.co_filename.startswith(OURS):
            frame = frame.tb_next
        try:
            shown = "".join(traceback.format_exception(type(error), error, frame))
            value = str(error)
        except Exception:
            shown = value = "<it can not be shown>"
        name = type(error).__name__
        shown = shown[-MOST_TRACEBACK:]
        self._write(line_of(type="error", name=name, value=value[:MOST_TRACEBACK], traceback=shown))

    def counted(self, count):
        self._write(line_of(type="number_of_executions", execution_count=count))

    def _write(self, line):
        with self._interrupts.held(), self._lock:
            left = memoryview(line)
            while left:
                left = left[os.write(self._descriptor, left) :]


def line_of(**event):
    return b"+" + json.dumps(event).encode() + b"\n"


class Printed(io.TextIOBase):
    """Stands for sys.stdout or sys.stderr: what is written goes out as lines of events, a little late and in fewer pieces."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, events, interrupts, stream, descriptor):
        super().__init__()
        self.name = f"<{stream}>"
        self.buffer = open(descriptor, "wb", closefd=False)
        self._events, self._interrupts, self._stream = events, interrupts, stream
        self._descriptor = descriptor
        self._parts, self._held = [], 0
        self._lock = threading.RLock()
        self._waits = threading.Event()
        threading.Thread(target=self._send_late, daemon=True).start()

    def writable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        return self._descriptor

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self._interrupts.held(), self._lock:
            self._parts.append(text)
            self._held += len(text)
            if self._held >= PIECE:
                self._send()
        self._waits.set()
        return len(text)

    def flush(self):
        with self._interrupts.held(), self._lock:
            self._send()
            self.buffer.flush()

    def close(self):
        self.flush()

    def _send(self, whole_lines=False):
        """Sends what is held; of several lines the last, if it has no end yet, a little later."""
        text = "".join(self._parts)
        end = text.rfind("\n") + 1 if whole_lines else 0
        rest = text[end:] if end else ""
        text = text[: len(text) - len(rest)]
        self._parts, self._held = ([rest] if rest else []), len(rest)
        for at in range(0, len(text), PIECE):
            self._events.printed(self._stream, text[at : at + PIECE])

    def _send_late(self):
        while self._waits.wait():
            time.sleep(HELD_S)
            self._waits.clear()
            with self._lock:
                self._send(whole_lines=True)
                if self._held:
                    self._waits.set()
