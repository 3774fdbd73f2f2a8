"""Reads the data off a figure of matplotlib: the chart that each of its axes shows."""
from __future__ import annotations

import re
import sys

UNIT = re.compile(r"\(([^()]*)\)\s*$")
SCALES = ("linear", "log", "symlog", "logit", "function", "functionlog", "asinh")
BOX_CORNERS = 5


def chart_of(figure):
    """Returns the chart of a figure, or one of charts where it has several; None where nothing is drawn."""
    charts = [chart_of_axes(axes) for axes in figure.axes if axes.has_data()]
    if len(charts) < 2:
        return charts[0] if charts else None
    title = figure._suptitle.get_text() if figure._suptitle else None
    return {"type": "superchart", "title": title, "elements": charts}


def chart_of_axes(axes):
    for kind, read in KINDS:
        elements = read(axes)
        if elements:
            head = {"type": kind, "title": axes.get_title() or None}
            if kind == "pie":
                return {**head, "elements": elements}
            return {**head, **labels(axes), **(ticks(axes) if kind in POINTS else {}), "elements": elements}
    return {"type": "unknown", "title": axes.get_title() or None, "elements": []}


def labels(axes):
    found = {}
    for side, label in (("x", axes.get_xlabel()), ("y", axes.get_ylabel())):
        unit = UNIT.search(label)
        found[f"{side}_label"] = label or None
        found[f"{side}_unit"] = unit.group(1) if unit else None
    return found


def ticks(axes):
    found = {}
    for side, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        scale = scale_of(axis)
        found[f"{side}_ticks"] = [tick_at(at, scale) for at in axis.get_ticklocs()]
        found[f"{side}_tick_labels"] = [label.get_text() for label in axis.get_ticklabels()]
        found[f"{side}_scale"] = scale
    return found


def tick_at(at, scale):
    """Says the moment of a date; matplotlib counts days."""
    dates = sys.modules.get("matplotlib.dates")
    return dates.num2date(at).isoformat() if scale == "datetime" and dates else float(at)


def scale_of(axis):
    converter = type(axis.get_converter() if hasattr(axis, "get_converter") else axis.converter).__name__
    if "Date" in converter:
        return "datetime"
    if "Category" in converter:
        return "categorical"
    return axis.get_scale() if axis.get_scale() in SCALES else "unknown"


def named(artist, word, at):
    label = str(artist.get_label())
    return f"{word} {at}" if not label or label.startswith("_") else label


def tick_names(axis):
    return {round(float(at), 6): label.get_text() for at, label in zip(axis.get_ticklocs(), axis.get_ticklabels())}


def pies(axes):
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    texts = [text.get_text() for text in axes.texts]
    return [
        {
            "label": texts[at] if label.startswith("_") and at < len(texts) else label,
            "angle": abs(wedge.theta2 - wedge.theta1),
            "radius": wedge.r,
        }
        for at, (wedge, label) in enumerate((wedge, str(wedge.get_label())) for wedge in wedges)
    ]


def bars(axes):
    found = []
    for at, container in enumerate(axes.containers):
        if type(container).__name__ != "BarContainer":
            continue
        lies = getattr(container, "orientation", None) == "horizontal"
        names = tick_names(axes.yaxis if lies else axes.xaxis)
        for bar in container.patches:
            middle = bar.get_y() + bar.get_height() / 2 if lies else bar.get_x() + bar.get_width() / 2
            found.append(
                {
                    "label": names.get(round(float(middle), 6)) or f"{middle:g}",
                    "group": named(container, "Group", at),
                    "value": float(bar.get_width() if lies else bar.get_height()),
                }
            )
    return found


def boxes(axes):
    """Finds boxes by how matplotlib draws them: a box, two whiskers, two caps, a median, and the outliers."""
    lines, found, at = list(axes.lines), [], 0
    patches = [patch.get_path().vertices for patch in axes.patches if type(patch).__name__ == "PathPatch"]
    while at < len(lines):
        # with patch_artist the box is a patch, and else the line before the others
        closed = len(lines[at].get_xdata()) == BOX_CORNERS
        corners = list(zip(lines[at].get_xdata(), lines[at].get_ydata())) if closed else patches[0] if patches else None
        parts = lines[at + closed : at + closed + 6]
        box = box_of(axes, corners, parts) if corners is not None else None
        if box is None:
            at += 1
            continue
        if not closed:
            patches.pop(0)
        found.append(box)
        at += closed + 5
    return found


def box_of(axes, corners, parts):
    """Returns the box with those corners; None where the lines are no whiskers, caps and median of it."""
    if [len(one.get_xdata()) for one in parts[:5]] != [2] * 5:
        return None
    lies = list(parts[4].get_xdata())[0] == list(parts[4].get_xdata())[1]
    across, along = ([[value_at(corner[side]) for corner in corners] for side in ((1, 0) if lies else (0, 1))])
    ends = [[value_at(at) for at in (one.get_xdata() if lies else one.get_ydata())] for one in parts]
    if not all(isinstance(at, float) for at in (*across, *along)):
        return None
    # each whisker begins at the box
    if (ends[0][0], ends[1][0]) != (min(along), max(along)):
        return None
    outliers = ends[5] if len(parts) > 5 and parts[5].get_linestyle() == "None" else []
    middle = (min(across) + max(across)) / 2
    names = tick_names(axes.yaxis if lies else axes.xaxis)
    return {
        "label": names.get(round(middle, 6)) or f"{middle:g}",
        "min": min(ends[0]),
        "first_quartile": min(along),
        "median": ends[4][0],
        "third_quartile": max(along),
        "max": max(ends[1]),
        "outliers": outliers,
    }


def scatters(axes):
    return [
        {"label": named(one, "Dots", at), "points": [[value_at(x), value_at(y)] for x, y in one.get_offsets()]}
        for at, one in enumerate(part for part in axes.collections if type(part).__name__ == "PathCollection")
    ]


def lines_of(axes):
    return [
        {
            "label": named(line, "Line", at),
            "points": [[value_at(x), value_at(y)] for x, y in zip(line.get_xdata(), line.get_ydata())],
        }
        for at, line in enumerate(axes.lines)
    ]


def value_at(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return value.isoformat() if hasattr(value, "isoformat") else str(value)


POINTS = ("line", "scatter")
KINDS = (
    ("pie", pies),
    ("bar", bars),
    ("box_and_whisker", boxes),
    ("scatter", scatters),
    ("line", lines_of),
)
