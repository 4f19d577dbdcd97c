"""From Vega-Lite to files: PNG and SVG are rendered without a browser, HTML is one page that needs no network."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from loadstone import folder
from loadstone.errors import UsageError, did_you_mean
from loadstone.export import replacing

FORMATS = ("png", "svg", "html")
SCALE = 2
"""Pixels of a PNG for each px of the figure."""
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0; background: {ground}; }}
#figure {{ display: block; padding: 0; }}
#figure svg.marks {{ display: block; width: 100%; height: auto; max-height: 100vh; }}
</style>
</head>
<body>
<div id="figure"></div>
<script>{library}</script>
<script>vegaEmbed("#figure", {spec}, {options});</script>
</body>
</html>
"""
"""The policy lets nothing be loaded from anywhere. The figure grows with the window, and its menu lies over it."""
# The menu saves the figure as PNG or SVG, which the page does by itself; a link to an editor would lead elsewhere.
OPTIONS = {"mode": "vega-lite", "renderer": "svg", "actions": {"export": True, "source": False, "compiled": False, "editor": False}}  # fmt: skip


def formats(asked: str | None, output: Path | None) -> tuple[str, ...]:
    """The formats of a list with commas; without one, what `output` ends with, else PNG. Raises `UsageError`."""
    ending = _ending(output)
    if asked is None:
        return (ending,) if ending else ("png",)
    found = tuple(dict.fromkeys(word.strip().lower() for word in asked.split(",") if word.strip()))
    for word in found:
        if word not in FORMATS:
            advice = f" {did_you_mean(word, FORMATS)}".rstrip()
            raise UsageError(f"--format {word}: must be of {', '.join(FORMATS)}.{advice}")
    if not found:
        raise UsageError(
            f"--format: names no format; give some of {', '.join(FORMATS)}, separated by commas."
        )
    if ending and found != (ending,):
        raise UsageError(
            f"-o {output}: ends with .{ending}, and --format says {asked}; leave one of them out."
        )
    return found


def _ending(output: Path | None) -> str | None:
    """The format that a path's name ends with."""
    ending = output.suffix[1:].lower() if output else ""
    return ending if ending in FORMATS else None


def destination(
    home: Path, output: Path | None, names: Sequence[str], endings: Sequence[str]
) -> dict[tuple[str, str], Path]:
    """Where each figure goes in each format: `output` is a file when its name ends like one, else a folder.

    Raises `UsageError` for one file and several figures.
    """
    if output and _ending(output):
        if len(names) > 1:
            raise UsageError(
                f"-o {output}: is one file for {len(names)} figures; choose one with --figure, or give a folder."
            )
        return {(names[0], endings[0]): output}
    room = output or home / folder.PLOTS
    return {(name, ending): room / f"{name}.{ending}" for name in names for ending in endings}


def write(spec: dict[str, Any], ending: str, path: Path) -> Path:
    """Renders a figure and writes it, whole or not at all; the path. Raises `UsageError` when it cannot be written."""
    data = _rendered(spec, ending)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(data)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}. Choose another place with -o."
        ) from None
    return path


def _rendered(spec: dict[str, Any], ending: str) -> bytes:
    if ending == "png":
        return vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=SCALE, allowed_base_urls=[])
    if ending == "svg":
        return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, allowed_base_urls=[]).encode()
    return _page(spec).encode()


def _page(spec: dict[str, Any]) -> str:
    return PAGE.format(
        title=html.escape(spec["title"]["text"]),
        ground=spec["config"]["background"],
        library=vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", VEGA_LITE),
        spec=_for_script(spec),
        options=json.dumps(OPTIONS),
    )


def _for_script(value: Any) -> str:
    """JSON that no text in it can end the script element of."""
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
