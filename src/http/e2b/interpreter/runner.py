"""Is the process of one context: takes orders by one pipe, one at a time, and says what happens by another."""
from __future__ import annotations

import json
import os
import sys
import types

from .engines import engine_for, show_figures
from .images import ShowsSaved
from .events import Events, Interrupts, Printed

# Of two processes that take too much memory, the kernel ends this one rather than the server.
MORE_LIKELY_TO_END = "500"


def main(orders, told):
    for descriptor in (orders, told):
        os.set_inheritable(descriptor, False)
    end_before_others()
    interrupts = Interrupts()
    events = Events(told, interrupts)
    streams = [Printed(events, interrupts, name, at) for name, at in (("stdout", 1), ("stderr", 2))]
    sys.stdout, sys.stderr = streams
    sys.__stdout__, sys.__stderr__ = streams
    sys.argv, sys.path[:0] = [""], [""]
    events.flush = flush
    os.register_at_fork(after_in_child=print_without_events)
    os.environ["MPLBACKEND"] = "agg"
    module = types.ModuleType("__main__")
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    engine = engine_for(module.__dict__, events)
    sys.meta_path.insert(0, ShowsSaved(events))
    events.word("ready")
    with open(orders, encoding="utf-8") as lines:
        for count, line in enumerate(lines, 1):
            carry_out(engine, json.loads(line), count, events, interrupts)
            events.word("done")


def carry_out(engine, order, count, events, interrupts):
    own, before = order["env"], {}
    events.counted(count)
    try:
        os.environ.update(order["lasting"])
        before = {name: os.environ.get(name) for name in own}
        os.environ.update(own)
        with interrupts:
            engine.run(order["code"], count)
            show_figures(events)
    except SystemExit as error:  # the code ends, and the context goes on
        if error.code not in (None, 0):
            events.failed(error)
    except BaseException as error:
        events.failed(error)
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    flush()


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the code has put something of its own there


def print_without_events():
    """Has a forked process print as any program does: lines of two processes would run into one another."""
    sys.stdout, sys.stderr = (open(at, "w", encoding="utf-8", errors="replace", closefd=False) for at in (1, 2))


def end_before_others():
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write(MORE_LIKELY_TO_END)
    except OSError:
        pass
