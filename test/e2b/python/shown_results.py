"""
Has the engines of the code interpreter run code that shows things, with matplotlib and IPython as the packages are that are
installed here. The argument is the folder of its sources. Prints a line of JSON for each check, as sdk_suite.py does.
"""
import json
import os
import sys
import tempfile
import traceback
import types

os.environ["MPLBACKEND"] = "agg"
package = types.ModuleType("sandpool_interpreter")
package.__path__ = [sys.argv[1]]
sys.modules["sandpool_interpreter"] = package

from sandpool_interpreter import engines, images  # noqa: E402


class Told:
    def __init__(self):
        self.results = []

    def result(self, fields, main):
        json.dumps(fields, allow_nan=False)
        self.results.append({**fields, "main": main})


def shown(Engine, code):
    told = Told()
    module = types.ModuleType("__main__")
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    engine = Engine(module.__dict__, told)
    try:
        engine.run(code, 1)
    finally:
        if Engine is engines.IPythonEngine:
            type(engine._shell).clear_instance()
    engines.show_figures(told)
    return told.results


def same(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r} is not {expected!r}")


def charts_of(drawing):
    (result,) = shown(engines.PlainEngine, "import matplotlib.pyplot as plt\n" + drawing + "\nNone")
    same(result["png"][:11], "iVBORw0KGgo")
    same((result["main"], result["text"][:7]), (False, "<Figure"))
    return result["chart"]


def lines():
    chart = charts_of("plt.plot([1, 2, 3], [4, 5, float('nan')], label='a'); plt.plot([1], [2])\nplt.xlabel('time (s)'); plt.title('T')")
    same((chart["type"], chart["title"], chart["x_label"], chart["x_unit"], chart["y_label"]), ("line", "T", "time (s)", "s", None))
    same(chart["elements"][0], {"label": "a", "points": [[1.0, 4.0], [2.0, 5.0], [3.0, None]]})
    same((chart["elements"][1]["label"], chart["x_scale"], len(chart["x_ticks"]) > 1), ("Line 1", "linear", True))


def dates():
    chart = charts_of("import datetime as d\nplt.plot([d.date(2026, 1, 1), d.date(2026, 1, 2)], [1, 2])\nplt.yscale('log')")
    same((chart["x_scale"], chart["y_scale"], chart["elements"][0]["points"][0]), ("datetime", "log", ["2026-01-01", 1.0]))
    same(chart["x_ticks"][0], "2026-01-01T00:00:00+00:00")


def dots():
    chart = charts_of("plt.scatter([1, 2], [3, 4], label='d')")
    same((chart["type"], chart["elements"]), ("scatter", [{"label": "d", "points": [[1.0, 3.0], [2.0, 4.0]]}]))


def bars():
    chart = charts_of("plt.bar(['a', 'b'], [1, 2], label='g')")
    expected = [{"label": "a", "group": "g", "value": 1.0}, {"label": "b", "group": "g", "value": 2.0}]
    same((chart["type"], chart["elements"]), ("bar", expected))


def pies():
    chart = charts_of("plt.pie([1, 3], labels=['a', 'b'])")
    same((chart["type"], [(one["label"], round(one["angle"]), one["radius"]) for one in chart["elements"]]), ("pie", [("a", 90, 1), ("b", 270, 1)]))


def boxes():
    chart = charts_of("plt.boxplot([[1, 2, 3, 4, 5, 50], [2, 3, 4]], tick_labels=['a', 'b'])")
    first, second = chart["elements"]
    same((chart["type"], first["label"], first["median"], first["outliers"]), ("box_and_whisker", "a", 3.5, [50.0]))
    same((second["label"], second["min"], second["first_quartile"], second["third_quartile"], second["max"], second["outliers"]), ("b", 2.0, 2.5, 3.5, 4.0, []))


def filled_boxes():
    for drawing in ("patch_artist=True", "patch_artist=True, orientation='horizontal'", "orientation='horizontal'"):
        chart = charts_of(f"plt.boxplot([[1, 2, 3, 4, 5, 50], [2, 3, 4]], tick_labels=['a', 'b'], {drawing})")
        first, second = chart["elements"]
        same((chart["type"], first["label"], first["median"], first["outliers"]), ("box_and_whisker", "a", 3.5, [50.0]))
        same((second["label"], second["min"], second["first_quartile"], second["third_quartile"], second["max"]), ("b", 2.0, 2.5, 3.5, 4.0))
    same(charts_of("for at in range(6): plt.plot([1, 2], [at, 2])")["type"], "line")


def saved():
    told = Told()
    finder = images.ShowsSaved(told)
    for name in [name for name in sys.modules if name.split(".")[0] == "PIL"]:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        with tempfile.TemporaryDirectory() as folder:
            code = f"import io\nfrom PIL import Image\none = Image.new('RGB', (2, 2))\none.save(io.BytesIO(), 'png')\none.save({folder + '/a.png'!r})\none.show()"
            engines.PlainEngine({"__builtins__": __builtins__}, told).run(code, 1)
    finally:
        sys.meta_path.remove(finder)
    same([(one["png"][:11], one["main"]) for one in told.results], [("iVBORw0KGgo", False)] * 2)


def commands():
    with tempfile.TemporaryDirectory() as folder:
        code = f"import os\nif True:\n    !echo '1 > 0' > {folder}/out\n%pip --version > {folder}/pip\ntext = \"\"\"\n!none\n\"\"\"\ntext, open({folder + '/out'!r}).read(), open({folder + '/pip'!r}).read()[:4]"
        (result,) = shown(engines.PlainEngine, code)
    same(result["text"], repr(("\n!none\n", "1 > 0\n", "pip ")))
    try:
        shown(engines.PlainEngine, "x =\n!ls")
    except SyntaxError as error:
        same(error.lineno, 1)
    else:
        raise AssertionError("what is no Python ran")


def several():
    chart = charts_of("_, (a, b) = plt.subplots(1, 2); a.plot([1], [2]); b.bar(['x'], [1])")
    same((chart["type"], [one["type"] for one in chart["elements"]]), ("superchart", ["line", "bar"]))


def unknown():
    same(charts_of("plt.imshow([[1, 2], [3, 4]])")["type"], "unknown")


def undrawable():
    try:
        shown(engines.PlainEngine, "import matplotlib.pyplot as plt\nplt.title(r'$\\frac{$')\nNone")
    except ValueError:
        same(shown(engines.PlainEngine, "1;"), [])
    else:
        raise AssertionError("a figure was drawn whose title is no formula")


def table():
    class DataFrame:
        def __len__(self):
            return 2

        def to_dict(self, orient):
            return {"a": [1, float("inf")], "by": orient}

        def _repr_html_(self):
            return "<table></table>"

    sys.modules["pandas"] = types.SimpleNamespace(DataFrame=DataFrame)
    try:
        (result,) = shown(engines.PlainEngine, "import pandas; pandas.DataFrame()")
    finally:
        del sys.modules["pandas"]
    same((result["html"], result["data"], result["main"]), ("<table></table>", {"a": [1, None], "by": "list"}, True))


def formats():
    own = "class Own:\n def _repr_png_(self): return b'png'\n def _repr_svg_(self): 1 / 0\n def _repr_mimebundle_(self, include, exclude): return {'text/x-own': 'o', 'application/json': {'a': 1}}\nOwn()"
    (result,) = shown(engines.PlainEngine, own)
    same((result["png"], result["extra"], result["json"], "svg" in result), ("cG5n", {"text/x-own": "o"}, {"a": 1}, False))


def ipython():
    code = "from IPython.display import HTML, display\ndisplay(HTML('<i>i</i>'))\nx = %sx echo by-a-shell\nx[0]"
    first, last = shown(engines.IPythonEngine, code)
    same((first["html"], first["main"]), ("<i>i</i>", False))
    same((last["text"], last["main"]), ("by-a-shell", True))
    same(shown(engines.IPythonEngine, "1 + 1;"), [])
    for code, kind in (("1 / 0", ZeroDivisionError), ("x =", SyntaxError), ("raise SystemExit(1)", SystemExit), ("exit()", SystemExit)):
        try:
            shown(engines.IPythonEngine, code)
        except kind:
            continue
        raise AssertionError(f"{code} did not raise {kind}")


for check in (lines, dates, dots, bars, pies, boxes, filled_boxes, saved, commands, several, unknown, undrawable, table, formats, ipython):
    try:
        check()
        why = None
    except BaseException:
        why = traceback.format_exc()
    print(json.dumps({"check": check.__name__, "why": why}), flush=True)
