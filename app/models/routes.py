"""The routers of /v1/models, in the order of the API description."""

from __future__ import annotations

from app.models import (
    alias_endpoints,
    calibration_endpoints,
    comment_endpoints,
    curve_endpoints,
    endpoints,
    margin_endpoints,
    metric_endpoints,
    operating_point_endpoints,
    reason_code_endpoints,
    threshold_group_endpoints,
)

ROUTERS = tuple(
    module.router
    for module in (
        endpoints,
        metric_endpoints,
        curve_endpoints,
        operating_point_endpoints,
        threshold_group_endpoints,
        calibration_endpoints,
        margin_endpoints,
        alias_endpoints,
        reason_code_endpoints,
        comment_endpoints,
    )
)
