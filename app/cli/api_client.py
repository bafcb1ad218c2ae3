"""A client of the HTTP API: finds service and key, sends requests, waits, and turns problems into sentences."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

from app.ingest.formats import COMPRESSED, SUFFIXES

if TYPE_CHECKING:
    import httpx


CHUNK_BYTES = 1 << 20
POLL_SECONDS = 0.1
SHOWN_ERRORS = 10
SHOWN_OF_COLUMN = 3
"""Most errors that are shown of one column, because they are usually alike."""


class ClientError(Exception):
    """The service refused, or could not be reached. The message is one sentence, followed by the single errors."""


class ApiClient(AbstractContextManager["ApiClient"]):
    """The service's API for the commands. Use it as a context manager."""

    def __init__(self, url: str, key: str | None) -> None:
        import httpx

        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.url = url.rstrip("/")
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=httpx.Timeout(90.0))

    @classmethod
    def find(cls, url: str | None, key: str | None, state_dir: Path) -> ApiClient:
        """Use the given URL and key, else those that `rankwright serve` wrote to its state folder."""
        url = url or _read(state_dir / "address") or "http://127.0.0.1:8000"
        return cls(url, key or _read(state_dir / "api-key"))

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def request(self, method: str, path: str, **kwargs: Any) -> Any:
        """Send a request; returns the JSON answer. Raises ClientError unless it succeeds."""
        return self._answer(method, path, **kwargs).json()

    def _answer(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        import httpx

        try:
            response = self._http.request(method, path, **kwargs)
        except httpx.HTTPError as error:
            raise ClientError(f"no service answers at {self.url}: {error}") from error
        except ValueError as error:  # such as NaN or infinity, which JSON does not have
            raise ClientError(f"the request cannot be sent: {error}") from error
        if response.is_success:
            return response
        raise ClientError(_explain(response))

    def upload(
        self,
        path: Path,
        fields: dict[str, str],
        on_sent: Callable[[int], object],
        parent: str | None = None,
    ) -> dict[str, Any]:
        """Upload a file, and wait until its table is ready or invalid. With a parent it becomes a new version of it.

        `on_sent` is called with the size of every chunk.
        """
        address = "/v1/datasets" if parent is None else _versions_of(parent)
        dataset = self._send("POST", address, path, on_sent, params=fields)
        return self._wait(f"/v1/datasets/{dataset['id']}", dataset)

    def versions(self, dataset_id: str) -> list[dict[str, Any]]:
        """Return all versions of a dataset, the newest first."""
        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {"next": None, "has_more": True}
        while page["has_more"]:
            after = {} if page["next"] is None else {"after": page["next"]}
            page = self.request("GET", _versions_of(dataset_id), params={"limit": 200} | after)
            found += page["data"]
        return found

    def profile(self, dataset_id: str, format: str) -> bytes:
        """Return the profile of a dataset as a file."""
        address = f"/v1/datasets/{quote(dataset_id, safe='')}/profile"
        return self._answer("GET", address, params={"format": format}).content

    def compare(
        self, dataset_id: str, path: Path, on_sent: Callable[[int], object]
    ) -> dict[str, Any]:
        """Upload the pairs of a dataset, and wait until they are ready or invalid."""
        address = f"/v1/datasets/{dataset_id}"
        dataset = self._send("PUT", f"{address}/pairs", path, on_sent)
        return self._wait(address, dataset, lambda found: found["pairs"]["status"])

    def _send(
        self, method: str, address: str, path: Path, on_sent: Callable[[int], object], **kwargs: Any
    ) -> dict[str, Any]:
        headers = {"Prefer": "wait=1", **content_headers(path)}

        def chunks() -> Iterator[bytes]:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
                    on_sent(len(chunk))

        dataset: dict[str, Any] = self.request(
            method, address, headers=headers, content=chunks(), **kwargs
        )
        return dataset

    def _wait(
        self,
        address: str,
        found: dict[str, Any],
        status_of: Callable[[dict[str, Any]], str] = lambda found: found["status"],
    ) -> dict[str, Any]:
        """Read a resource repeatedly until its job has ended."""
        while status_of(found) == "processing":
            time.sleep(POLL_SECONDS)
            found = self.request("GET", address)
        return found

    def score_table(self, ref: str, path: Path, accept: str, params: dict[str, str]) -> bytes:
        """Score the rows of a small file in one request; returns the answer in the media type `accept`."""
        headers = {"Accept": accept, **content_headers(path)}
        address = _address(ref, "score")
        return self._answer(
            "POST", address, headers=headers, params=params, content=path.read_bytes()
        ).content

    def score_batch(
        self, ref: str, path: Path, on_sent: Callable[[int], object], params: dict[str, str]
    ) -> dict[str, Any]:
        """Upload a file that a job scores, and wait until the job has ended."""
        batch = self._send(
            "POST", "/v1/batch-scores", path, on_sent, params={"model": ref} | params
        )
        return self._wait(f"/v1/batch-scores/{batch['id']}", batch)

    def take_result(self, batch_id: str, format: str, file: BinaryIO) -> None:
        """Write the result of batch scores into a file."""
        import httpx

        address = f"/v1/batch-scores/{batch_id}/result"
        try:
            with self._http.stream("GET", address, params={"format": format}) as response:
                if not response.is_success:
                    response.read()
                    raise ClientError(_explain(response))
                for chunk in response.iter_bytes():
                    file.write(chunk)
        except httpx.HTTPError as error:
            raise ClientError(f"the answer with the scores is incomplete: {error}") from error

    def forget_batch(self, batch_id: str) -> None:
        """Delete batch scores that have ended, and the rows that were sent for them."""
        self._answer("DELETE", f"/v1/batch-scores/{batch_id}")

    def submit(self, job: dict[str, Any]) -> dict[str, Any]:
        """Submit a training job; returns it as accepted."""
        accepted: dict[str, Any] = self.request("POST", "/v1/jobs", json=job)
        return accepted

    def follow(self, job_id: str) -> Iterator[dict[str, Any]]:
        """Yield the job repeatedly, the last time in its final state."""
        while True:
            job = self.request("GET", f"/v1/jobs/{job_id}")
            yield job
            if job["state"] in {"succeeded", "failed", "cancelled", "timed_out"}:
                return
            time.sleep(POLL_SECONDS)

    def model(self, ref: str, what: str = "", **params: Any) -> dict[str, Any]:
        """GET a model, or a part of it such as `metrics`, `roc` or `score`."""
        answer: dict[str, Any] = self.request("GET", _address(ref, what), params=params)
        return answer

    def model_text(self, ref: str, what: str, **params: Any) -> str:
        """Return a part of a model as text."""
        return self._answer("GET", _address(ref, what), params=params).text

    def model_bytes(self, ref: str, what: str, **params: Any) -> bytes:
        """Return a part of a model as bytes."""
        return self._answer("GET", _address(ref, what), params=params).content


def _versions_of(dataset_id: str) -> str:
    return f"/v1/datasets/{quote(dataset_id, safe='')}/versions"


def _address(ref: str, what: str) -> str:
    return f"/v1/models/{quote(ref, safe='@:')}" + (f"/{what}" if what else "")


def default_state_dir() -> Path:
    """The state folder of `rankwright serve` if none is given."""
    return Path(os.environ.get("RANKWRIGHT_STATE_DIR", ".rankwright"))


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def content_headers(path: Path) -> dict[str, str]:
    """Return Content-Type and Content-Encoding by the name of the file. Raises ClientError for an unknown ending."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    headers = {}
    if suffixes and suffixes[-1] in COMPRESSED:
        headers["Content-Encoding"] = COMPRESSED[suffixes.pop()]
    if not suffixes or suffixes[-1] not in SUFFIXES:
        known = ", ".join([*SUFFIXES, ".csv.gz", ".csv.zst"])
        raise ClientError(f"a table's name must end in one of {known}, got {path.name!r}")
    headers["Content-Type"] = SUFFIXES[suffixes[-1]]
    return headers


def _explain(response: httpx.Response) -> str:
    try:
        problem = response.json()
        lines = [f"{problem['title']}: {problem['detail']}"]
    except (ValueError, KeyError, TypeError):
        return f"the service answered {response.status_code} {response.reason_phrase}"
    return "\n".join([*lines, *describe_errors(problem.get("errors", []))])


def describe_errors(errors: list[dict[str, Any]]) -> list[str]:
    """Return the first errors of a problem or an invalid table, one per line, and how many more there are."""
    shown: list[dict[str, Any]] = []
    of_column: Counter[str | None] = Counter()
    for error in errors:
        column = error.get("column")
        of_column[column] += 1
        if column is None or of_column[column] <= SHOWN_OF_COLUMN:
            shown.append(error)
    lines = [_describe_error(error) for error in shown[:SHOWN_ERRORS]]
    if more := len(errors) - len(lines):
        lines.append(f"  … and {more} more")
    return lines


def _describe_error(error: dict[str, Any]) -> str:
    where = [
        f"{name} {error[name]}"
        for name in ("line", "column", "pointer", "parameter")
        if error.get(name) is not None
    ]
    return f"  {', '.join(where)}: {error['detail']}" if where else f"  {error['detail']}"
