"""Reports on a model and on a dataset: gathered once, written as JSON, Markdown or one HTML page."""

from app import __version__
from app.reports.sections import describe_columns, document_of, warnings
from app.reports.service import Facts, NamedCut, gather
from app.reports.writers import POLICY, to_html, to_markdown

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
