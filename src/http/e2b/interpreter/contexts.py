"""Has the contexts: of each the variables live on from one execution to the next, in a process of its own."""
from __future__ import annotations

import os
import signal
import threading
import uuid

from .events import line_of
from .executions import Execution, Left, Turns
from .processes import Process

MOST_CONTEXTS = 32
START_S = 30
# Code that goes on for so long after it was interrupted is ended with its process.
INTERRUPT_S = 10
# Programs of E2B take this for the home of every sandbox.
THEIR_HOME = "/home/user"
LANGUAGES = ("python", "python3", "py")


class Refused(Exception):
    """Is answered to the client, with a status."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Context:
    """One context. Its process is made anew where it has ended, by whoever executes something next."""

    def __init__(self, command, cwd):
        self.id = str(uuid.uuid4())
        self.cwd = cwd
        self._command = command
        self._turns = Turns()
        self._starting = threading.Lock()
        self._process = None
        self._removed = False

    def shown(self):
        return {"id": self.id, "language": "python", "cwd": self.cwd}

    def start(self):
        """Returns its process, which is ready for code."""
        with self._starting:
            if self._removed:
                raise not_found(self.id)
            if self._process is None or not self._process.lives:
                self._process = self._begun()
            process = self._process
        if not process.ready.wait(START_S) or not process.lives:
            process.end()
            raise Refused(503, "the context does not start")
        return process

    def _begun(self):
        try:
            return Process(self._command, self.cwd)
        except (OSError, RuntimeError) as error:
            # Its folder has gone, or the sandbox has as many processes and threads as it may have.
            raise Refused(503, f"the context does not start: {error}") from None

    def restart(self):
        self.end()
        self.start()

    def remove(self):
        self._removed = True
        self.end()

    def end(self):
        process = self._process
        if process:
            process.end()

    def execute(self, order, lasting, gone, silent_s):
        """Yields what code says, as lines for its client. A client that leaves interrupts it."""
        self._turns.take(gone)
        try:
            process = self.start()
            first, process.fresh = process.fresh, False
            execution = Execution()
            process.execute(execution, {**order, "lasting": lasting if first else {}})
            try:
                yield from execution.pieces(gone, silent_s)
            finally:
                execution.leave()
                self._interrupt(process, execution)
            if not execution.whole:
                yield self._ended(process)
        finally:
            self._turns.give()

    def _interrupt(self, process, execution):
        if execution.over.is_set():
            return
        process.signal(signal.SIGINT, group=True)
        if not execution.over.wait(INTERRUPT_S):
            process.end()

    def _ended(self, process):
        name = "ContextRemoved" if self._removed else "ContextEnded"
        value = f"the process of the context {process.how_it_ended()}; what it knew is gone"
        return line_of(type="error", name=name, value=value, traceback=f"{name}: {value}")[1:]


class Contexts:
    """All contexts, one of them the default."""

    def __init__(self, command):
        self._command = command
        self._all = {}
        self._lock = threading.Lock()
        self._default = None
        self.home = os.environ.get("HOME") or "/"

    def default(self):
        with self._lock:
            if self._default not in self._all:
                self._default = self._add(self.home).id
            return self._all[self._default]

    def find(self, context_id):
        context = self._all.get(context_id)
        if context is None:
            raise not_found(context_id)
        return context

    def list(self):
        return [context.shown() for context in list(self._all.values())]

    def create(self, cwd):
        with self._lock:
            context = self._add(self._place(cwd or self.home))
        try:
            context.start()
        except BaseException:
            self.remove(context.id)
            raise
        return context

    def remove(self, context_id):
        context = self.find(context_id)
        context.remove()
        self._all.pop(context_id, None)

    def _add(self, cwd):
        if len(self._all) >= MOST_CONTEXTS:
            raise Refused(429, f"there are {MOST_CONTEXTS} contexts; remove one")
        context = Context(self._command, cwd)
        self._all[context.id] = context
        return context

    def _place(self, cwd):
        path = os.path.normpath(os.path.join(self.home, cwd))
        if (path + "/").startswith(THEIR_HOME + "/") and not os.path.isdir(THEIR_HOME):
            path = os.path.normpath(self.home + path[len(THEIR_HOME) :])
        if not os.path.isdir(path):
            raise Refused(400, f"cwd: there is no folder {path}")
        if not os.access(path, os.X_OK):
            raise Refused(400, f"cwd: the folder {path} may not be entered")
        return path


def not_found(context_id):
    return Refused(404, f"there is no context {context_id}")


def require_language(language):
    """Refuses any language but Python."""
    if language is not None and language.lower() not in LANGUAGES:
        raise Refused(400, f"language: {language} is not provided, only python")
