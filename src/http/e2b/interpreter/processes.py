"""Is a process in which code of a context runs, as the server sees it."""
from __future__ import annotations

import codecs
import json
import os
import selectors
import signal
import subprocess
import threading
import time

from .events import line_of
from .executions import Execution

CHUNK = 64 << 10
# Reads that empty a pipe, whatever goes on writing into it.
DRAIN = 4
# A line that is longer than any that a context makes.
MOST_LINE = 17 << 20
END_S = 30
CONTEXT_VARIABLE = "SANDPOOL_INTERPRETER_CONTEXT"


class Process:
    """Runs the code of a context until it ends or is ended; after that nothing comes of it."""

    def __init__(self, command, cwd):
        orders, self._orders = piped()
        self._told, told = piped()
        # Is closed when it has ended, by which its reader knows.
        self._woken, self._waker = piped()
        with orders, told:
            theirs = (orders.fileno(), told.fileno())
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**os.environ, CONTEXT_VARIABLE: ",".join(map(str, theirs))},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=theirs,
                start_new_session=True,
            )
        self._execution = None
        self.fresh = True
        self.ready = threading.Event()
        self.ended = threading.Event()
        try:
            for watch in (self._read, self._wait):
                threading.Thread(target=watch, daemon=True).start()
        except RuntimeError:
            self.signal(signal.SIGKILL, group=True)
            self._wait()
            raise

    @property
    def lives(self):
        return not self.ended.is_set()

    def execute(self, execution, order):
        """Has it carry out an order; `execution` is told what comes of it, and the end."""
        self._execution = execution
        if not self.lives:
            return self._finish(whole=False)
        left = memoryview(json.dumps(order).encode() + b"\n")
        try:
            while left:
                left = left[self._orders.write(left) :]
        except OSError:
            pass  # it has ended, which its reader tells

    def signal(self, number, group=False):
        if self._process.returncode is None:
            try:
                (os.killpg if group else os.kill)(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def end(self):
        """Ends it with all that it started, and waits for that."""
        self.signal(signal.SIGKILL, group=True)
        self.ended.wait(END_S)

    def how_it_ended(self):
        code = self._process.returncode
        return f"ended with {code}" if code is None or code >= 0 else f"was ended by {signal.Signals(-code).name}"

    def _wait(self):
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self.signal(signal.SIGKILL, group=True)
        self._process.wait()
        self._waker.close()

    def _read(self):
        printed = {
            self._process.stdout.fileno(): ("stdout", codecs.getincrementaldecoder("utf-8")("replace")),
            self._process.stderr.fileno(): ("stderr", codecs.getincrementaldecoder("utf-8")("replace")),
        }
        told, woken = self._told.fileno(), self._woken.fileno()
        for descriptor in (told, *printed):
            os.set_blocking(descriptor, False)
        with selectors.DefaultSelector() as selector:
            for descriptor in (told, woken, *printed):
                selector.register(descriptor, selectors.EVENT_READ)
            line = bytearray()
            over = False
            while not over:
                ready = [key.fd for key, _ in selector.select()]
                over = woken in ready
                for descriptor in printed if over else [fd for fd in ready if fd in printed]:
                    self._pass_printed(selector, descriptor, printed[descriptor], drain=over)
                if over or told in ready:
                    while self._pass_told(selector, line, printed) and over:
                        pass
        self._close()

    def _pass_printed(self, selector, descriptor, stream, drain=False):
        name, decoder = stream
        for _ in range(DRAIN if drain else 1):
            read = read_from(selector, descriptor)
            if not read:
                return
            text = decoder.decode(read)
            if self._execution and text:
                self._execution.put(line_of(type=name, text=text, timestamp=time.time_ns())[1:])

    def _pass_told(self, selector, line, printed):
        read = read_from(selector, self._told.fileno())
        if not read:
            return False
        *whole, rest = (line + read).split(b"\n") if b"\n" in read else (line + read,)
        for one in whole:
            self._tell(selector, bytes(one), printed)
        line[:] = rest
        if len(line) > MOST_LINE:
            self.signal(signal.SIGKILL, group=True)
            line.clear()
        return True

    def _tell(self, selector, line, printed):
        if line == b".ready":
            self.ready.set()
        elif line == b".done":
            for descriptor, stream in printed.items():
                self._pass_printed(selector, descriptor, stream, drain=True)
            self._finish(whole=True)
        elif line.startswith(b"+") and self._execution:
            self._execution.put(line[1:] + b"\n")

    def _finish(self, whole):
        execution, self._execution = self._execution, None
        if execution:
            execution.finish(whole)

    def _close(self):
        self.ended.set()
        self.ready.set()
        self._finish(whole=False)
        for pipe in (self._process.stdout, self._process.stderr, self._told, self._woken):
            pipe.close()


def piped():
    """Makes a pipe; an end that nobody holds any more is closed."""
    read, write = os.pipe()
    return open(read, "rb", buffering=0), open(write, "wb", buffering=0)


def read_from(selector, descriptor):
    """Reads what is there; empty where nothing is, and where nothing comes any more."""
    try:
        read = os.read(descriptor, CHUNK)
    except BlockingIOError:
        return b""
    if not read and descriptor in selector.get_map():
        selector.unregister(descriptor)
    return read
