"""Reports on a model and on a dataset: gathered once, written as JSON, Markdown or one HTML page."""

from app import __version__
from app.services.report.columns import describe_columns
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
    "describe_columns",
    "document_of",
    "gather",
    "to_html",
    "to_markdown",
    "warnings",
]
