"""ROC curves as pictures: what is drawn, as SVG, as PNG, and as a Vega-Lite specification."""

from app.services.plots.curve import CurvePlot, Kind, plot_model, plot_of, rows_of
from app.services.plots.draw import say, to_svg
from app.services.plots.png import to_png
from app.services.plots.vega import to_vega

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
