"""Answers requests for code to be run, over HTTP on the loopback: what it speaks is described in docs/e2b.md."""
from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler

from .contexts import Contexts, Refused, require_language
from .executions import Left

PORT = 49999
MOST_CONNECTIONS = 128
MOST_BODY = 8 << 20
# Of a body that is refused so much is read, and left: a connection that is closed before takes the answer with it.
MOST_LEFT = 64 << 20
PIECE = 64 << 10
MOST_TRAILERS = 100
MOST_PHRASE = 200
# For a request to come, and for a piece of an answer to be taken.
STALL_S = 60
# Clients give up on a stream that is silent for 300 s; they, or what stands between, may ask for more signs of life.
SILENT_S = 50
PING = "Keepalive-Ping-Interval"
# Variables of the claim, which are not known when the sandbox starts.
LASTING = "Sandpool-Claim-Env"
END = b'{"type": "end_of_execution"}\n'


def main(command):
    reap_as_init()
    contexts = Contexts(command)
    # Nobody finds the port open before code can run.
    contexts.default().start()
    listener = socket.create_server(("127.0.0.1", PORT), backlog=MOST_CONNECTIONS)
    places = threading.BoundedSemaphore(MOST_CONNECTIONS)
    while True:
        connection, address = listener.accept()
        places.acquire()
        try:
            threading.Thread(target=serve, args=(connection, address, contexts, places), daemon=True).start()
        except RuntimeError:  # code has as many processes and threads as the sandbox may have
            connection.close()
            places.release()


def serve(connection, address, contexts, places):
    try:
        with connection:
            Handler(connection, address, contexts)
    except OSError:
        pass  # whoever asked has gone
    finally:
        places.release()


def reap_as_init():
    """Where this is the first process of a container, has another be the server, and takes in orphans."""
    if os.getpid() != 1:
        return
    server = os.fork()
    if server == 0:
        return
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        ended, status = os.wait()
        if ended == server:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


class Handler(BaseHTTPRequestHandler):
    """One connection, and its requests one after another."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "sandpool", ""
    timeout = STALL_S
    disable_nagle_algorithm = True
    wbufsize = 64 << 10

    def log_message(self, *_):
        """Writes nothing: what is asked is nobody else's business."""

    def do_GET(self):
        self._answer()

    do_POST = do_DELETE = do_PUT = do_PATCH = do_GET

    def _answer(self):
        self._head_sent = False
        try:
            body = self._body()
            self._route(self.path.split("?")[0].rstrip("/").split("/")[1:], body)
        except Refused as refused:
            self._refuse(refused.status, str(refused))
        except Left:
            self.close_connection = True
        except OSError:
            raise
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            self._refuse(500, "the code interpreter failed")

    def _refuse(self, status, message):
        if self._head_sent:
            self.close_connection = True
        else:
            self._json(status, {"code": status, "message": message[:2_000]}, message)

    def _route(self, path, body):
        contexts, method = self.server, self.command
        if path == ["health"]:
            self._require("GET")
            self._json(200, {"status": "ok"})
        elif path == ["execute"]:
            self._require("POST")
            self._execute(object_of(body))
        elif path == ["contexts"] and method == "GET":
            self._json(200, contexts.list())
        elif path == ["contexts"]:
            self._require("POST")
            given = object_of(body)
            require_language(text_of(given, "language"))
            self._json(201, contexts.create(text_of(given, "cwd")).shown())
        elif len(path) == 2 and path[0] == "contexts":
            self._require("DELETE")
            contexts.remove(path[1])
            self._nothing()
        elif len(path) == 3 and path[0] == "contexts" and path[2] == "restart":
            self._require("POST")
            contexts.find(path[1]).restart()
            self._nothing()
        else:
            raise Refused(404, "there is nothing at this path")

    def _require(self, method):
        if self.command != method:
            raise Refused(405, f"this is asked by {method}")

    def _execute(self, given):
        code, context_id, language = (text_of(given, name) for name in ("code", "context_id", "language"))
        if code is None:
            raise Refused(400, "code: is required")
        if context_id is not None and language is not None:
            raise Refused(400, "language: the context has one already")
        require_language(language)
        order = {"code": code, "env": variables_of(given.get("env_vars"))}
        context = self.server.default() if context_id is None else self.server.find(context_id)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        self._head_sent = True
        try:
            pieces = context.execute(order, self._lasting(), self._gone, self._silence())
            with contextlib.closing(pieces):
                for piece in pieces:
                    self._chunk(piece)
        except Refused as refused:
            error = {"type": "error", "name": "ContextEnded", "value": str(refused), "traceback": str(refused)}
            self._chunk(json.dumps(error).encode() + b"\n")
        self._chunk(END)
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _chunk(self, piece):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.flush()

    def _gone(self):
        """Says whether the client has left. One that sends more in the meantime has not."""
        if not select.select([self.connection], [], [], 0)[0]:
            return False
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _silence(self):
        asked = self.headers.get(PING, "")
        return min(max(int(asked), 1), SILENT_S) if asked.isdecimal() and len(asked) < 6 else SILENT_S

    def _lasting(self):
        """Returns the variables that the daemon says were given with the sandbox."""
        try:
            given = base64.b64decode("".join(self.headers.get_all(LASTING, [])), validate=True)
            return variables_of(json.loads(given)) if given else {}
        except (binascii.Error, ValueError, Refused):
            return {}

    def _body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._body_of(self._chunks())
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdecimal() and len(length) < 16):
            self.close_connection = True
            raise Refused(400, "Content-Length: must be a whole number")
        return self._body_of([int(length)])

    def _body_of(self, lengths):
        body, total = bytearray(), 0
        for length in lengths:
            total += length
            if total > MOST_LEFT:
                break
            while length > 0:
                read = self.rfile.read(min(length, PIECE))
                if not read:
                    raise Left
                length -= len(read)
                if total <= MOST_BODY:
                    body += read
        if total > MOST_BODY:
            self.close_connection = True
            raise Refused(413, f"the body may have {MOST_BODY} bytes")
        return bytes(body)

    def _chunks(self):
        """Yields how long each chunk is, which is to be read before the next is asked for."""
        while True:
            size = self.rfile.readline(1_024).split(b";")[0].strip()
            try:
                length = int(size, 16)
            except ValueError:
                length = -1
            if length < 0:
                self.close_connection = True
                raise Refused(400, "the body is not chunked as it says")
            if length == 0:
                for _ in range(MOST_TRAILERS):
                    if not self.rfile.readline(65_536).strip():
                        return
                raise Left
            yield length
            self.rfile.readline(3)

    def _json(self, status, value, reason=None):
        self._send(status, json.dumps(value).encode(), reason)

    def _nothing(self):
        self.send_response(204)
        self.end_headers()

    def _send(self, status, body, reason=None):
        # SDKs show nothing else of an error
        self.send_response(status, reason and phrase_of(reason))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def phrase_of(message):
    return "".join(letter if " " <= letter <= "~" else "?" for letter in message[:MOST_PHRASE])


def object_of(body):
    if not body:
        return {}
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(given, dict):
        raise Refused(400, "the body must be an object")
    return given


def text_of(given, name):
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(400, f"{name}: must be text")
    return value


def variables_of(given):
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Refused(400, "env_vars: must be an object")
    for name, value in given.items():
        if not name or "=" in name or "\0" in name:
            raise Refused(400, "env_vars: a name is empty, or holds = or a NUL")
        if not isinstance(value, str) or "\0" in value:
            raise Refused(400, f"env_vars: {name[:100]} must be text without a NUL")
    return given
