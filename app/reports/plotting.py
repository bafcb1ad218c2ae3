"""ROC curves as pictures: what is drawn, as SVG, as PNG, and as a Vega-Lite specification."""

from app.reports.plots import CurvePlot, Kind, plot_model, plot_of, rows_of
from app.reports.plots_png import to_png
from app.reports.plots_svg import say, to_svg
from app.reports.plots_vega import to_vega

__all__ = [
    "CurvePlot",
    "Kind",
    "plot_model",
    "plot_of",
    "rows_of",
    "say",
    "to_png",
    "to_svg",
    "to_vega",
]
