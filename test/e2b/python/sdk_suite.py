"""
Calls each method of E2B's packages for Python that docs/e2b.md says works, as a program would that knows the variables
alone. Prints a line of JSON for each check: its name, and why it failed where it did. The arguments say which classes:
sync or async, for how many seconds commands and code are silent, and which checks there are; all where none is named.
"""
import asyncio
import contextlib
import faulthandler
import inspect
import json
import sys
import threading
import time
import traceback
import urllib.request
import uuid

import e2b
import e2b_code_interpreter as interpreter

# A crash below Python says where.
faulthandler.enable()
DEADLINE_S = 120
MODE = sys.argv[1]
# Longer than the silence after which what stands between cuts a connection, where something does.
SILENCE_S = float(sys.argv[2])
NAMED = sys.argv[3:]
RUN = uuid.uuid4().hex


class Blocking:
    """Has something of the async classes be called like what the sync classes have."""

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)

    def __init__(self, inner):
        self.inner = inner

    @staticmethod
    def waited(value):
        async def wait():
            return await value

        return asyncio.run_coroutine_threadsafe(wait(), Blocking.loop).result(DEADLINE_S * 2)

    @staticmethod
    def of(value):
        if inspect.isawaitable(value):
            value = Blocking.waited(value)
        ours = type(value).__module__.startswith("e2b") and hasattr(type(value), "__dict__")
        acts = any(word in type(value).__name__ for word in ("Sandbox", "Handle", "Commands", "Filesystem", "Pty", "Paginator"))
        return Blocking(value) if ours and acts and "Info" not in type(value).__name__ and "Event" not in type(value).__name__ else value

    def __getattr__(self, name):
        found = getattr(self.inner, name)
        if not callable(found):
            return Blocking.of(found)
        return lambda *given, **named: Blocking.of(found(*given, **named))


def classes():
    if MODE == "sync":
        return e2b.Sandbox, interpreter.Sandbox
    Blocking.thread.start()
    return Blocking(e2b.AsyncSandbox), Blocking(interpreter.AsyncSandbox)


def eventually(look, what):
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {DEADLINE_S} s")


def same(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r} is not {expected!r}")


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def life(Sandbox, _):
    metadata = {"run": RUN, "mode": MODE, "é &=%": "ü?#"}
    own = Sandbox.create(timeout=300, metadata=metadata, envs={"A": "1"})
    try:
        info = own.get_info()
        same((info.sandbox_id, info.metadata, info.state.value), (own.sandbox_id, metadata, "running"))
        same(Sandbox.get_info(own.sandbox_id).sandbox_id, own.sandbox_id)
        own.set_timeout(1_000)
        later = own.get_info().end_at
        Sandbox.set_timeout(own.sandbox_id, 600)
        assert info.end_at < own.get_info().end_at < later
        again = Sandbox.connect(own.sandbox_id, timeout=700)
        same(again.commands.run("echo $A").stdout, "1\n")
        own.connect()
        same(own.is_running(), True)
        listed = lambda: Sandbox.list(query=e2b.SandboxQuery(metadata={"run": RUN, "mode": MODE}), limit=1)
        eventually(lambda: [one.sandbox_id for one in listed().next_items()] == [own.sandbox_id], "it alone is listed")
        same(own.get_metrics(), [])
    finally:
        ended = own.kill(), Sandbox.kill(own.sandbox_id)
    same(ended, (True, False))
    same(own.is_running(), False)
    raises(e2b.NotFoundException, own.get_info)
    raises(e2b.NotFoundException, lambda: Sandbox.connect(own.sandbox_id))
    raises(e2b.SandboxException, lambda: own.commands.run("true"))


def expiry(Sandbox, _):
    end = time.time() + 2
    own = Sandbox.create(timeout=2)
    with contextlib.suppress(e2b.NotFoundException):  # on a busy machine it may be over by now
        end = own.get_info().end_at.timestamp()
    eventually(lambda: not own.is_running(), "the sandbox expires")
    assert time.time() >= end - 0.05, "it ended before its time"
    same(own.kill(), False)


def pause(_, sandbox):
    same(sandbox.commands.run("echo kept > /tmp/kept").exit_code, 0)
    same(sandbox.pause(), True)
    same(sandbox.is_running(), False)
    same(sandbox.get_info().state.value, "paused")
    sandbox.connect()
    same(sandbox.commands.run("cat /tmp/kept").stdout, "kept\n")


def commands(_, sandbox):
    run, seen = sandbox.commands.run, []
    script = 'echo "$OF_CLAIM $OWN"; echo no >&2; pwd'
    done = run(script, envs={"OWN": "own"}, cwd="/tmp", on_stdout=seen.append)
    same((done.exit_code, done.stdout, done.stderr), (0, "claim own\n/tmp\n", "no\n"))
    same("".join(seen), done.stdout)
    same(raises(e2b.CommandExitException, lambda: run("exit 3")).exit_code, 3)
    raises(e2b.TimeoutException, lambda: run("sleep 60", timeout=0.5))
    assert "root" in str(raises(e2b.SandboxException, lambda: run("id", user="root")))
    same(run("yes 世é | head -c 300000").stdout, "世é\n" * 50_000)
    same(run(f"sleep {SILENCE_S}; echo late").stdout, "late\n")


def processes(_, sandbox):
    of = sandbox.commands
    left = of.run("cat", background=True, stdin=True)
    left.disconnect()
    assert left.pid in [one.pid for one in of.list()]
    cat = of.connect(left.pid)
    if MODE == "sync":
        of.stream_input(cat.pid, iter(["h", "é\n"]))
    else:
        of.send_stdin(cat.pid, "hé\n")
    of.close_stdin(cat.pid)
    same(cat.wait().stdout, "hé\n")
    sleep = of.run("sleep 100", background=True)
    same(of.kill(sleep.pid), True)
    raises(e2b.CommandExitException, sleep.wait)
    same(of.kill(sleep.pid), False)
    raises(e2b.NotFoundException, lambda: of.connect(4_000_000_000))


def terminal(_, sandbox):
    seen = bytearray()
    size = e2b.PtySize(rows=24, cols=80)
    if MODE == "sync":
        opened, told = sandbox.pty.create(size), {"on_pty": seen.extend}
    else:
        opened, told = sandbox.pty.create(size, on_data=seen.extend), {}
    sandbox.pty.resize(opened.pid, e2b.PtySize(rows=31, cols=101))
    sandbox.pty.send_stdin(opened.pid, b"stty size\nexit\n")
    same(opened.wait(**told).exit_code, 0)
    assert b"31 101" in seen, seen
    other = sandbox.pty.create(size, **({} if MODE == "sync" else {"on_data": seen.extend}))
    same(sandbox.pty.kill(other.pid), True)
    raises(e2b.CommandExitException, other.wait)
    same(sandbox.pty.kill(other.pid), False)


def files(_, sandbox):
    of = sandbox.files
    written = of.write("/tmp/new/é.txt", "content")
    same((written.name, written.path), ("é.txt", "/tmp/new/é.txt"))
    same((of.read("/tmp/new/é.txt"), bytes(of.read("/tmp/new/é.txt", format="bytes"))), ("content", b"content"))
    of.write("/tmp/new/empty", b"")
    same(of.read("/tmp/new/empty"), "")
    many = [{"path": "/tmp/many/1", "data": "one"}, {"path": "/tmp/many/2", "data": b"two"}]
    same([one.name for one in of.write_files(many)], ["1", "2"])
    same(of.read("/tmp/many/2"), "two")
    large = "large " * 500_000
    of.write("/tmp/large", large, gzip=True)
    same(of.read("/tmp/large", gzip=True), large)
    same([(one.name, one.type.value) for one in of.list("/tmp/new")], [("empty", "file"), ("é.txt", "file")])
    same((of.make_dir("/tmp/a/b"), of.make_dir("/tmp/a/b")), (True, False))
    same(of.rename("/tmp/large", "/tmp/a/c/moved").path, "/tmp/a/c/moved")
    same(of.get_info("/tmp/a/c/moved").size, len(large))
    of.remove("/tmp/a")
    same((of.exists("/tmp/a"), of.exists("/tmp/new")), (False, True))
    raises(e2b.NotFoundException, lambda: of.read("/tmp/none"))


def home(_, sandbox):
    of = sandbox.files
    same([one.name for one in of.write_files([{"path": "own", "data": b"own"}])], ["own"])
    same(of.read("/home/user/own"), "own")


def watching(_, sandbox):
    of, seen = sandbox.files, []
    of.make_dir("/tmp/watched")
    if MODE == "sync":
        watch = of.watch_dir("/tmp/watched", recursive=True)
        look = lambda: seen.extend(watch.get_new_events())
    else:
        watch = of.watch_dir("/tmp/watched", seen.append, recursive=True)
        look = lambda: None

    def told():
        look()
        return {(one.type.value, one.name) for one in seen}

    sandbox.commands.run("echo 1 > /tmp/watched/a; rm /tmp/watched/a")
    eventually(lambda: told() >= {("create", "a"), ("write", "a"), ("remove", "a")}, "the changes are told")
    watch.stop()


def links(_, sandbox):
    link = sandbox.upload_url("/tmp/by link", use_signature_expiration=60)
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nlinked\r\n--x--\r\n'
    asked = urllib.request.Request(link, form, {"Content-Type": "multipart/form-data; boundary=x"})
    same(urllib.request.urlopen(asked, timeout=DEADLINE_S).status, 200)
    link = sandbox.download_url("/tmp/by link")
    same(urllib.request.urlopen(link, timeout=DEADLINE_S).read(), b"linked")


def host(_, sandbox):
    same(sandbox.get_host(3_000).split(".")[0], f"3000-{sandbox.sandbox_id}")


def code(_, sandbox):
    seen = []
    same(sandbox.run_code("x = 1").text, None)
    done = sandbox.run_code("print('é')\nx + 1", on_stdout=seen.append)
    # What is printed at once may come in pieces.
    printed = "".join(done.logs.stdout), "".join(one.line for one in seen)
    same((done.text, *printed), ("2", "é\n", "é\n"))
    assert abs(seen[0].timestamp / 1e9 - time.time()) < 86_400
    failed = sandbox.run_code("import sys; print('no', file=sys.stderr); 1 / 0")
    told = failed.error.name, failed.error.value, "".join(failed.logs.stderr)
    same(told, ("ZeroDivisionError", "division by zero", "no\n"))
    same(sandbox.run_code("import os; (os.environ['OF_CLAIM'], os.environ['B'])", envs={"B": "2"}).text, "('claim', '2')")
    shown = "class Shown:\n  def _repr_html_(self): return '<b>b</b>'\n  def _repr_json_(self): return {'a': float('nan')}\nShown()"
    same((sandbox.run_code(shown).results[0].html, sandbox.run_code(shown).results[0].json), ("<b>b</b>", {"a": None}))
    raises(e2b.TimeoutException, lambda: sandbox.run_code("import time\nwhile True: time.sleep(1)", timeout=0.5))
    same(sandbox.run_code("x").text, "1")
    same(sandbox.run_code(f"import time; time.sleep({SILENCE_S}); 'late'").text, "late")


def contexts(_, sandbox):
    one, other = sandbox.create_code_context(), sandbox.create_code_context(cwd="/tmp", language="python")
    sandbox.run_code("own = 1", context=one)
    same(sandbox.run_code("import os; ('own' in globals(), os.getcwd())", context=other).text, "(False, '/tmp')")
    assert {one.id, other.id} <= {context.id for context in sandbox.list_code_contexts()}
    sandbox.restart_code_context(one)
    same(sandbox.run_code("own", context=one).error.name, "NameError")
    sandbox.remove_code_context(one)
    sandbox.remove_code_context(other.id)
    raises(e2b.NotFoundException, lambda: sandbox.run_code("1", context=one))
    assert "only python" in str(raises(e2b.SandboxException, lambda: sandbox.run_code("1", language="r")))


def checked(check, Sandbox, sandbox):
    began = time.monotonic()
    try:
        check(Sandbox, sandbox)
        why = None
    except Exception:
        why = traceback.format_exc()
    print(json.dumps({"check": check.__name__, "why": why, "seconds": time.monotonic() - began}), flush=True)


def main():
    Base, Interpreter = classes()
    given = {"timeout": 600, "envs": {"OF_CLAIM": "claim"}}
    begun = []
    for Sandbox, terms, checks in (
        (Base, None, (life, expiry)),
        (Base, given, (commands, processes, terminal, files, home, watching, links, host, pause)),
        (Interpreter, given, (code, contexts)),
    ):
        meant = [each for each in checks if not NAMED or each.__name__ in NAMED]
        if meant:
            begun.append((Sandbox, terms and Sandbox.create(**terms), meant))

    def all_of(Sandbox, sandbox, checks):
        for check in checks:
            checked(check, Sandbox, sandbox)
        if sandbox:
            sandbox.kill()

    # Beside each other: what they mostly do is wait.
    threads = [threading.Thread(target=all_of, args=one) for one in begun]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if MODE == "async":
        # A thread that is still in a library while Python ends may take the process down.
        Blocking.loop.call_soon_threadsafe(Blocking.loop.stop)
        Blocking.thread.join(DEADLINE_S)


main()
