"""A trained model, for readers."""

from __future__ import annotations

import httpx
import pytest

from tests.app.live_service import Service


@pytest.fixture(scope="module")
def address(small: Service, model_id: str) -> str:
    return f"/v1/models/{model_id}"


@pytest.fixture(scope="module")
def reader(small: Service) -> httpx.Client:
    return small.client(small.key(scopes=["read"]))
