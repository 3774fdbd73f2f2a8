"""Shows images that Pillow saves to files or opens for a person, as E2B's interpreter does."""
from __future__ import annotations

import importlib.util
import os

from .formats import fields_of

MODULE = "PIL.Image"


class ShowsSaved:
    """Changes Pillow once code imports it, as a finder of modules: most code never does."""

    def __init__(self, events):
        self._events = events
        self._looks = True

    def find_spec(self, name, *_):
        if name != MODULE or not self._looks:
            return None
        self._looks = False
        spec = importlib.util.find_spec(MODULE)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                self._change(module.Image)

            spec.loader.exec_module = exec_module
        return spec

    def _change(self, Image):
        save, events = Image.save, self._events

        def saved(image, fp, *given, **named):
            done = save(image, fp, *given, **named)
            if isinstance(fp, (str, bytes, os.PathLike)):
                events.result(fields_of(image), False)
            return done

        def show(image, *_, **__):
            events.result(fields_of(image), False)

        Image.save, Image.show = saved, show
