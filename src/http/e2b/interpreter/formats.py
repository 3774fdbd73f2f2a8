"""Says how a value is shown: as text, and in whatever other formats it knows of itself."""
from __future__ import annotations

import base64
import io
import math
import sys

from .charts import chart_of

FIELDS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
}
METHODS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}
MOST_ROWS = 100_000
MOST_DEPTH = 32


def fields_of(value):
    """Returns the fields of the result that a value is. Raises what its __repr__ does."""
    bundle = {"text/plain": repr(value), **own_formats(value)}
    return {**fields_of_bundle(bundle), **data_of(value)}


def own_formats(value):
    """Returns what the value itself makes for notebooks, by media type; nothing where that fails."""
    if isinstance(value, type):
        return {}
    bundle = called(value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(bundle, tuple):
        bundle = bundle[0] if bundle else None
    formats = dict(bundle) if isinstance(bundle, dict) else {}
    for method, media_type in METHODS.items():
        if media_type in formats:
            continue
        made = called(value, method)
        made = made[0] if isinstance(made, tuple) and made else made
        if made is not None:
            formats[media_type] = made
    return formats


def called(value, name, **arguments):
    try:
        method = getattr(type(value), name, None)
        return method(value, **arguments) if callable(method) else None
    except Exception:
        return None


def fields_of_bundle(bundle):
    fields, extra = {}, {}
    for media_type, made in bundle.items():
        if made is None:
            continue
        if isinstance(made, (bytes, bytearray)):
            made = base64.b64encode(made).decode()
        field = FIELDS.get(str(media_type))
        if field == "json":
            fields[field] = plain(made)
        elif field:
            fields[field] = made if isinstance(made, str) else str(made)
        else:
            extra[str(media_type)] = plain(made)
    text = fields.get("text", "")
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        fields["text"] = text[1:-1]
    return {**fields, "extra": extra} if extra else fields


def data_of(value):
    """Returns what programs rather than people are shown: the columns of a table, a figure's picture and its data."""
    pandas, figures = sys.modules.get("pandas"), sys.modules.get("matplotlib.figure")
    try:
        if pandas and isinstance(value, pandas.DataFrame) and len(value) <= MOST_ROWS:
            return {"data": plain(value.to_dict(orient="list"))}
        if figures and isinstance(value, figures.Figure):
            return figure_fields(value)
    except Exception:
        pass
    return {}


def figure_fields(figure):
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    png = base64.b64encode(picture.getvalue()).decode()
    try:
        chart = plain(chart_of(figure))
    except Exception:
        chart = None
    return {"png": png, **({"chart": chart} if chart else {})}


def plain(value, depth=0):
    """Returns the value as JSON can have it; what is no number there is null, what it has no word for is text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return int(value)
    if depth >= MOST_DEPTH:
        return str(value)
    if isinstance(value, dict):
        return {str(name): plain(part, depth + 1) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part, depth + 1) for part in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return plain(value.tolist(), depth + 1)
    return str(value)
