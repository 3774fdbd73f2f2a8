"""Hands over what an execution says, and has those of one context wait for one another."""
from __future__ import annotations

import collections
import queue
import threading
import time

LOOK_S = 1
KEEPALIVE = b'{"type": "keepalive"}\n'


class Left(Exception):
    """The client has gone."""


class Execution:
    """Hands what one execution says to its reader, piece by piece; whoever says it waits where nobody reads."""

    def __init__(self):
        self._pieces = queue.Queue(maxsize=8)
        self._left = False
        self.over = threading.Event()
        self.whole = False

    def put(self, piece):
        while not self._left:
            try:
                return self._pieces.put(piece, timeout=LOOK_S)
            except queue.Full:
                pass

    def finish(self, whole):
        self.whole = whole
        self.over.set()
        self.put(None)

    def leave(self):
        """Has nobody wait for a reader any more."""
        self._left = True

    def pieces(self, gone, silent_s):
        """Yields what is said until the end, and after so long a silence that there is nothing; raises Left."""
        silent_since = time.monotonic()
        while True:
            try:
                piece = self._pieces.get(timeout=LOOK_S)
            except queue.Empty:
                if gone():
                    raise Left from None
                if time.monotonic() - silent_since < silent_s:
                    continue
                piece = KEEPALIVE
            if piece is None:
                return
            yield piece
            silent_since = time.monotonic()


class Turns:
    """Lets one at a time, in the order in which they came."""

    def __init__(self):
        self._waiting = collections.deque()
        self._changed = threading.Condition()

    def take(self, gone):
        """Resolves at one's turn, which is to be given back; raises Left where the client goes before."""
        me = object()
        with self._changed:
            self._waiting.append(me)
            while self._waiting[0] is not me:
                self._changed.wait(LOOK_S)
                if self._waiting[0] is not me and gone():
                    self._waiting.remove(me)
                    raise Left

    def give(self):
        with self._changed:
            self._waiting.popleft()
            self._changed.notify_all()
