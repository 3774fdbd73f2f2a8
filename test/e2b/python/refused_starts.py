"""
Has the code interpreter's server go on where no thread or process is to be had. The argument is the folder of its sources.
Prints a line of JSON for each check, as sdk_suite.py does.
"""
import contextlib
import errno
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
import types

package = types.ModuleType("sandpool_interpreter")
package.__path__ = [sys.argv[1]]
sys.modules["sandpool_interpreter"] = package

from sandpool_interpreter import processes, server  # noqa: E402

CONTEXT = f"""
import os, sys, types
package = types.ModuleType("sandpool_interpreter")
package.__path__ = [{sys.argv[1]!r}]
sys.modules["sandpool_interpreter"] = package
from sandpool_interpreter import runner
runner.main(*map(int, os.environ.pop({processes.CONTEXT_VARIABLE!r}).split(",")))
"""
DEADLINE_S = 120

# What does not start: "process", "pipe 1" and so on of one process, or the function that a thread is for.
refused = set()
pids = []
start_thread = threading.Thread.start
make_pipe = os.pipe
made = []


def start(thread):
    if getattr(thread._target, "__name__", None) in refused:
        raise RuntimeError("can't start new thread")
    start_thread(thread)


class Popen(subprocess.Popen):
    def __init__(self, *args, **terms):
        if "process" in refused:
            raise BlockingIOError(errno.EAGAIN, "no more")
        super().__init__(*args, **terms)
        pids.append(self.pid)


def pipe():
    made.append("pipe")
    if f"pipe {len(made)}" in refused:
        raise OSError(errno.EMFILE, "no more")
    return make_pipe()


@contextlib.contextmanager
def without(what):
    made.clear()
    refused.add(what)
    try:
        yield
    finally:
        refused.clear()


def ask(method, path, body=None):
    connection = http.client.HTTPConnection(*listener.getsockname(), timeout=DEADLINE_S)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def same(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r} is not {expected!r}")


def eventually(holds, what):
    until = time.monotonic() + DEADLINE_S
    while not holds():
        if time.monotonic() > until:
            raise AssertionError(what)
        time.sleep(0.02)


def pipes():
    count = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe:")
    return count


def connections():
    with without("serve"):
        for _ in range(server.MOST_CONNECTIONS + 1):
            try:
                status, _ = ask("GET", "/health")
            except ConnectionError:
                continue
            raise AssertionError(f"{status} without a thread")
    same(ask("GET", "/health")[0], 200)


def contexts():
    same(ask("GET", "/health")[0], 200)
    before, first = pipes(), len(pids)
    refusals = [("_read", "can't start new thread"), ("_wait", "can't start new thread"), ("process", "[Errno 11] no more")]
    for what, why in refusals + [(f"pipe {which}", "[Errno 24] no more") for which in (1, 2, 3)]:
        with without(what):
            status, body = ask("POST", "/contexts", "{}")
        same((status, json.loads(body)["message"]), (503, f"the context does not start: {why}"))
    same((len(pids) - first, len(json.loads(ask("GET", "/contexts")[1]))), (2, 1))
    for pid in pids[first:]:
        eventually(lambda: not os.path.exists(f"/proc/{pid}"), "a process is left")
    eventually(lambda: pipes() == before, f"there are {pipes()} pipes, and were {before}")


def restarts():
    status, body = ask("POST", "/contexts", "{}")
    same(status, 201)
    context = json.loads(body)["id"]
    with without("process"):
        same(ask("POST", f"/contexts/{context}/restart")[0], 503)
    _, told = ask("POST", "/execute", json.dumps({"code": "1 + 1", "context_id": context}))
    same([line["text"] for line in map(json.loads, told.splitlines()) if line["type"] == "result"], ["2"])


threading.Thread.start = start
subprocess.Popen = Popen
os.pipe = pipe
listener = socket.create_server(("127.0.0.1", 0), backlog=server.MOST_CONNECTIONS)
socket.create_server = lambda *_, **__: listener
threading.Thread(target=server.main, args=([sys.executable, "-c", CONTEXT],), daemon=True).start()

for check in (connections, contexts, restarts):
    try:
        check()
        why = None
    except BaseException:
        why = traceback.format_exc()
    print(json.dumps({"check": check.__name__, "why": why}), flush=True)
