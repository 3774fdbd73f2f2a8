"""Runs code as a notebook does: by IPython where the image has it, and without it by Python alone."""
from __future__ import annotations

import ast
import inspect
import linecache
import re
import shlex
import subprocess
import sys
import warnings

from .formats import data_of, fields_of, fields_of_bundle, figure_fields

COMMAND = re.compile(r"(\s*)(?:!(.*)|%pip\b(.*))$")
MOST_COMMANDS = 1_000
# Names of functions in the scope of code.
CALL_SHELL, CALL_PIP = "__sandpool_shell__", "__sandpool_pip__"
# Cells whose lines tracebacks can show.
MOST_CELLS = 256


def engine_for(scope, events):
    try:
        return IPythonEngine(scope, events)
    except Exception:
        return PlainEngine(scope, events)


class PlainEngine:
    """Runs code in one scope; of its last line, where that is an expression, the value is the result."""

    def __init__(self, scope, events):
        self._scope, self._events = scope, events
        self._loop = None
        scope["display"] = self._display
        scope[CALL_SHELL], scope[CALL_PIP] = call_shell, call_pip

    def run(self, code, count):
        name = f"<cell {count}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        linecache.cache.pop(f"<cell {count - MOST_CELLS}>", None)
        tree = tree_of(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            self._carry_out(tree, name, "exec")
        if last is None:
            return
        value = self._carry_out(ast.Expression(last.value), name, "eval")
        if value is not None and not code.rstrip().endswith(";"):
            self._scope["_"] = value
            self._events.result(fields_of(value), True)

    def _carry_out(self, tree, name, mode):
        compiled = compile(tree, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        value = eval(compiled, self._scope)
        if not compiled.co_flags & inspect.CO_COROUTINE:
            return value
        if self._loop is None:
            import asyncio  # late, since it takes memory, and most code needs none of it

            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        return self._loop.run_until_complete(value)

    def _display(self, *values, **_):
        for value in values:
            self._events.result(fields_of(value), False)


def tree_of(code, name):
    """Reads code; a line that is none for Python may be one of a notebook: `!command` or `%pip arguments`."""
    lines = code.split("\n")
    for _ in range(MOST_COMMANDS):
        try:
            text = "\n".join(lines)
            flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            return compile(text, name, "exec", flags=flags, dont_inherit=True)
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            found = COMMAND.match(lines[at]) if 0 <= at < len(lines) else None
            if found is None:
                raise
            indent, command, arguments = found.groups()
            call, text = (CALL_SHELL, command) if command is not None else (CALL_PIP, arguments)
            lines[at] = f"{indent}{call}({text!r})"
    raise SyntaxError(f"more than {MOST_COMMANDS} commands")


def call_shell(command):
    sys.stdout.flush()
    subprocess.call(command, shell=True, stdin=subprocess.DEVNULL)


def call_pip(arguments):
    call_shell(f"{shlex.quote(sys.executable)} -m pip {arguments}")


class IPythonEngine:
    """Runs code by IPython's shell: with its magics, its commands after `!`, and its formats."""

    def __init__(self, scope, events):
        from IPython.core.displayhook import DisplayHook
        from IPython.core.displaypub import DisplayPublisher
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        class Publisher(DisplayPublisher):
            def publish(self, data, *_, **__):
                events.result(fields_of_bundle(data), False)

        class Hook(DisplayHook):
            def __call__(self, value=None):
                if value is None or self.quiet():
                    return
                bundle, _ = self.compute_format_data(value)
                self.update_user_ns(value)
                events.result({**fields_of_bundle(bundle), **data_of(value)}, True)

        class Shell(InteractiveShell):
            displayhook_class = Hook
            display_pub_class = Publisher

            def showtraceback(self, *_, **__):
                """Shows nothing: what was raised is told with the end."""

            showsyntaxerror = showindentationerror = showtraceback

            def ask_exit(self):
                """Ends the code, and not the context."""
                raise SystemExit

            def enable_gui(self, *_):
                """Has no windows."""

        warnings.filterwarnings("ignore", message="To exit: use")
        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "NoColor"
        config.InteractiveShell.cache_size = 0
        self._shell = Shell.instance(config=config, user_module=sys.modules["__main__"], user_ns=scope)

    def run(self, code, _count):
        self._shell.displayhook.exec_result = None
        done = self._shell.run_cell(code, store_history=True)
        error = done.error_before_exec or done.error_in_exec
        if error is not None:
            raise error


def show_figures(events):
    """Shows figures that matplotlib has open, and closes them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            fields = figure_fields(figure)
        finally:
            pyplot.close(figure)
        events.result({"text": repr(figure), **fields}, False)
