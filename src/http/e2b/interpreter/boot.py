"""Begins the server, or the process of a context, from SOURCES, which stand before this where it is packed."""
import os
import sys
import types

NAME = "sandpool_interpreter"
# What each of the two needs, in order: each takes memory in every sandbox.
SERVER = ("events", "executions", "processes", "contexts", "server")
CONTEXT = ("events", "charts", "formats", "engines", "images", "runner")


def load(names):
    package = types.ModuleType(NAME)
    package.__path__ = []
    sys.modules[NAME] = package
    for name in names:
        module = types.ModuleType(f"{NAME}.{name}")
        module.__package__ = NAME
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(compile(SOURCES[name], f"<{NAME}/{name}.py>", "exec"), module.__dict__)
    return package


def begin():
    pipes = os.environ.pop("SANDPOOL_INTERPRETER_CONTEXT", None)
    if pipes is None:
        return load(SERVER).server.main([sys.executable or "python3", "-c", LOADER, *sys.argv[1:]])
    orders, told = pipes.split(",")
    load(CONTEXT).runner.main(int(orders), int(told))


begin()
