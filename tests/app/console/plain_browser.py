"""A browser without scripts that is signed in to the console."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from typing import Any

import httpx

from app.access import service as keys
from tests.app.live_service import OWNER, Service


def alert(page: str) -> str:
    """Return the first paragraph in which a page says what is wrong."""
    (said, *_) = re.findall(r'(?s)role="alert"[^>]*>(.*?)</p>', page)
    return " ".join(unescape(re.sub("<[^>]+>", "", said)).split())


class PlainBrowser:
    """Keeps cookies, follows no redirects, and sends forms with the session's token."""

    def __init__(
        self,
        service: Service,
        owner: str = OWNER,
        *,
        scopes: Iterable[str] = keys.SCOPES,
        secret: str | None = None,
    ) -> None:
        self.client: httpx.Client = service.client()
        key = secret or service.key(owner, scopes)
        answer = self.client.post("/console/sign-in", data={"key": key})
        assert answer.status_code == 303
        found = re.search(r'name="csrf" value="([0-9a-f]{128})"', self.get("/console").text)
        assert found is not None
        self.csrf = found[1]

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Open a page."""
        return self.client.get(path, headers=headers)

    def read(self, path: str, status: int = 200) -> str:
        """Open a page, which is answered with this status; returns its text."""
        answer = self.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    def post(
        self, path: str, file: tuple[str, str | bytes] | None = None, /, **fields: Any
    ) -> httpx.Response:
        """Send a form, with a file of this name and content if there is one."""
        files = None
        if file is not None:
            name, content = file
            files = {"file": (name, content.encode() if isinstance(content, str) else content)}
        return self.client.post(path, data={"csrf": self.csrf, **fields}, files=files)

    def ask(
        self, path: str, fields: dict[str, str] | None = None, **headers: str
    ) -> httpx.Response:
        """Open a page, or send a form to it."""
        return self.get(path, **headers) if fields is None else self.post(path, **fields)
