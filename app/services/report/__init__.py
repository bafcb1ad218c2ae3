"""The report on a model: gathered once, written as JSON, Markdown or one HTML page."""

from app import __version__
from app.services.report.facts import Facts, NamedCut, gather
from app.services.report.html import POLICY, to_html
from app.services.report.markdown import to_markdown
from app.services.report.sections import document_of, warnings

WRITER = __version__

__all__ = [
    "POLICY",
    "WRITER",
    "Facts",
    "NamedCut",
    "document_of",
    "gather",
    "to_html",
    "to_markdown",
    "warnings",
]
