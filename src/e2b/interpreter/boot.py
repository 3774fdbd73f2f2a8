"""Begins the server, or the process of a context, from SOURCES, which stand before this where it is packed."""
import os
import sys
import types

NAME = "sandpool_interpreter"


def load(sources):
    package = types.ModuleType(NAME)
    package.__path__ = []
    sys.modules[NAME] = package
    for name, text in sources.items():
        module = types.ModuleType(f"{NAME}.{name}")
        module.__package__ = NAME
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(compile(text, f"<{NAME}/{name}.py>", "exec"), module.__dict__)
    return package


def begin():
    package = load(SOURCES)
    pipes = os.environ.pop("SANDPOOL_INTERPRETER_CONTEXT", None)
    if pipes is None:
        return package.server.main([sys.executable or "python3", "-c", LOADER, *sys.argv[1:]])
    orders, told = pipes.split(",")
    package.runner.main(int(orders), int(told))


begin()
