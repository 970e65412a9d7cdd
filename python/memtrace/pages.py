"""Answers as HTML, for notebooks. The pieces need no script and nothing from the network."""
from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING

from .errors import Error

if TYPE_CHECKING:
    from .analysis import Report

_STYLE = "line-height: 1.3; font-size: 12px; overflow-x: auto"


# The timeline in a notebook. A cell should have less than 60 KB.
_SMALL = ("--size=900x510", "--theme=light")


class ShownAsText:
    """Prompts and notebooks show the text of the object."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return preformatted(str(self))


class Text(ShownAsText, str):
    """Text that prompts and notebooks show with its lines. A call returns it."""

    def __call__(self) -> str:
        return str(self)


def of_report(report: Report) -> str:
    """The text of the answer, and the timeline below it if there is one."""
    parts = [preformatted(report.text)]
    try:
        parts.append(image(report.picture(format="svg", options=_SMALL), "Memory over time"))
    except Error as error:
        parts.append(f"<p>no timeline: {html.escape(str(error))}</p>")
    return "\n".join(parts)


class Explorer(ShownAsText):
    """The timeline of a report to zoom and select on. Its HTML is a frame with a page of less than
    200 KB; the page can neither read nor change the notebook."""

    def __init__(self, page: str) -> None:
        self.page = page

    def __str__(self) -> str:
        return "<a page to explore; a notebook shows it>"

    def _repr_html_(self) -> str:
        return (f'<iframe title="memory over time" sandbox="allow-scripts" style="width: 100%; '
                f'height: 860px; border: 0" srcdoc="{html.escape(self.page)}"></iframe>')


def preformatted(text: str) -> str:
    return f'<pre style="{_STYLE}">{html.escape(text)}</pre>'


def image(svg: bytes, description: str) -> str:
    """An <img>: classes and names inside the picture do not reach the page, nor another picture."""
    data = base64.b64encode(svg).decode("ascii")
    return (f'<img alt="{html.escape(description)}" style="max-width: 100%" '
            f'src="data:image/svg+xml;base64,{data}">')
