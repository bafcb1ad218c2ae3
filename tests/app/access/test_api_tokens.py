"""Bearer tokens of identity providers: whose they are, and every kind that is refused."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.identity import provider as providers
from app.identity.provider import Provider, ProviderAway
from app.identity.tokens import InvalidToken, Tokens
from app.platform.issuers import Issuer
from app.platform.tables import Principal
from tests.app.live_service import Service
from tests.identity_provider import (
    AUDIENCE,
    CLIENT,
    ROBOT,
    IdentityProvider,
    ec_key,
    encoded,
    odd_provider,
    rsa_key,
    running,
    sign,
)
from tests.waiting import eventually, patience

OTHER = "https://ci.example"


@pytest.fixture(scope="module")
def idp() -> Iterator[IdentityProvider]:
    with running(IdentityProvider()) as provider:
        yield provider


@pytest.fixture(scope="module")
def second() -> Iterator[IdentityProvider]:
    """Another trusted provider, whose keys have the same ids."""
    with running(IdentityProvider()) as provider:
        yield provider


@pytest.fixture(scope="module")
def service(
    start: Callable[..., Service],
    idp: IdentityProvider,
    second: IdentityProvider,
    tmp_path_factory: pytest.TempPathFactory,
) -> Service:
    folder = tmp_path_factory.mktemp("oidc")
    files = idp.files(folder, second.entry(groups_claim="sub"))
    return start(**files, max_unknown_keys=100_000)


def me(service: Service, token: str, **headers: str) -> httpx.Response:
    return service.client(token, **headers).get("/v1/me")


def test_a_token_of_the_provider_itself(service: Service, idp: IdentityProvider) -> None:
    """What a real provider signs (ES256, at+jwt), not what the tests sign."""
    answer = me(service, idp.token_of_robot())
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["kind"], found["owner"], found["roles"]) == ("service", "bank", ["scorer"])
    assert found["name"] == ROBOT
    assert found["key_id"] is None
    assert found["expires_at"] is not None


def test_a_token_of_a_person(service: Service, idp: IdentityProvider) -> None:
    token = idp.token()
    found = me(service, token).json()
    assert (found["kind"], found["name"], found["owner"]) == ("person", "Ann", "bank")
    assert found["models"] == {"score": ["fraud-*"], "train": ["fraud-*"]}
    again = me(service, idp.token(name="Ann B")).json()
    assert again["principal_id"] == found["principal_id"]
    assert again["name"] == "Ann B"
    with service.context.db.read() as session:
        row = session.get_one(Principal, found["principal_id"])
        assert (row.issuer, row.subject, row.name) == (idp.issuer, "ann", "Ann B")
    for path in ("/v1/models", "/v1/jobs"):
        assert service.client(token).get(path).status_code == 200
    assert service.client(token).get("/v1/keys").status_code == 403
    score = service.client(token).get("/v1/models/none/score?x=1")
    assert (score.status_code, score.json()["code"]) == (404, "not_found")
    # one that is valid for longer than a day is refused then
    now = int(time.time())
    long = me(service, idp.token(iat=now, exp=now + 10 * 86_400)).json()["expires_at"]
    assert datetime.fromisoformat(long).timestamp() == now + 86_400
    opaque = me(service, "an-opaque-token")
    assert (opaque.status_code, opaque.json()["code"]) == (401, "invalid_token")
    # a key is still a key
    assert me(service, service.key()).json()["kind"] == "key"


def test_an_entry_without_client_is_for_services(
    service: Service, second: IdentityProvider
) -> None:
    """Without a role, and nothing is stored of who has none."""
    answer = me(service, second.token(sub="repo:a/b", groups=None))
    assert (answer.status_code, answer.json()["code"]) == (403, "no_role")
    with service.context.db.read() as session:
        assert not session.query(Principal).filter_by(subject="repo:a/b").all()


def test_the_owner_is_named_by_who_has_several(service: Service, idp: IdentityProvider) -> None:
    token = idp.token(groups=["heads"])
    answer = me(service, token)
    assert (answer.status_code, answer.json()["code"]) == (400, "owner_ambiguous")
    for owner, role in (("bank", "approver"), ("shop", "admin")):
        assert me(service, token, **{"Rankwright-Owner": owner}).json()["roles"] == [role]
    answer = me(service, token, **{"Rankwright-Owner": "other"})
    assert (answer.status_code, answer.json()["code"]) == (403, "no_role")


def forged(idp: IdentityProvider, second: IdentityProvider) -> dict[str, str]:
    """Tokens that must be refused, by what is wrong with them."""
    now = int(time.time())
    key, stranger = idp.rsa, rsa_key("one")
    jwk = stranger.as_dict(private=False)
    nobody = encoded(b'{"alg":"none","kid":"one"}')
    body = encoded(json.dumps(idp.claims()).encode())
    good = idp.token()
    _, _, signature = good.split(".")
    of_public = ".".join([encoded(b'{"alg":"HS256","kid":"one"}'), body])
    mac = hmac.new(key.as_pem(private=False), of_public.encode(), hashlib.sha256).digest()
    deep = b"[" * 5000 + b"]" * 5000
    return {
        "alg none": f"{nobody}.{body}.",
        "alg none, signed": f"{nobody}.{body}.{signature}",
        "alg None": idp.token().replace(good.split(".")[0], encoded(b'{"alg":"None"}'), 1),
        "no signature": good.rpartition(".")[0] + ".",
        "another's signature": idp.token(sub="bob").rpartition(".")[0] + "." + signature,
        "wrong key": idp.token(stranger),
        "HS256 with the public key": f"{of_public}.{encoded(mac)}",
        "ES256 with the kid of the RSA key": idp.token(ec_key("one"), {"alg": "ES256"}),
        "RS256 with the kid of the EC key": idp.token(header={"kid": "two"}),
        "PS256 with a key for RS256": idp.token(header={"alg": "PS256"}),
        "unknown kid": idp.token(header={"kid": "three"}),
        "kid of a path": idp.token(header={"kid": "../../dev/null"}),
        "kid that is a number": _raw(idp, {"kid": 1}),
        "embedded jwk": idp.token(stranger, {"jwk": jwk}),
        "embedded jwk without kid": idp.token(stranger, {"jwk": jwk, "kid": "x"}),
        "jku": idp.token(stranger, {"jku": "http://127.0.0.1:9/keys", "kid": "x"}),
        "x5u": idp.token(stranger, {"x5u": "http://127.0.0.1:9/cert", "kid": "x"}),
        "crit": _raw(idp, {"crit": ["b64"], "b64": True}),
        "another issuer's key": second.token(iss=idp.issuer),
        "another issuer's audience": second.token(aud=CLIENT),
        "unknown issuer": idp.token(iss=OTHER),
        "issuer with a slash": idp.token(iss=idp.issuer + "/"),
        "issuer in a list": idp.token(iss=[idp.issuer]),
        "no issuer": idp.token(iss=None),
        "wrong audience": idp.token(aud="https://other.example"),
        "no audience": idp.token(aud=None),
        "audience that only begins so": idp.token(aud=AUDIENCE + "/x"),
        "empty audiences": idp.token(aud=[]),
        "no exp": idp.token(exp=None),
        "exp that is a text": idp.token(exp=str(now + 300)),
        "exp that is true": idp.token(exp=True),
        "exp without end": _raw(idp, {}, b'{"exp": 1e999, "iss": "' + idp.issuer.encode() + b'"}'),
        "exp NaN": _raw(idp, {}, b'{"exp": NaN, "iss": "' + idp.issuer.encode() + b'"}'),
        "expired": idp.token(exp=now - 61),
        "no iat": idp.token(iat=None),
        "very old": idp.token(iat=now - 90_000),
        "issued in the future": idp.token(iat=now + 3600),
        "nbf in the future": idp.token(nbf=now + 3600),
        "nbf null": _raw(idp, {}, json.dumps(idp.claims() | {"nbf": None}).encode()),
        "no sub": idp.token(sub=None),
        "empty sub": idp.token(sub=""),
        "sub that is a number": idp.token(sub=5),
        "long sub": idp.token(sub="x" * 256),
        "sub with NUL": idp.token(sub="a\0"),
        "sub with half of a surrogate pair": idp.token(sub="\ud800"),
        "group with half of a surrogate pair": idp.token(groups=["risk", "\udfff"]),
        "group with NUL": idp.token(groups=["risk", "a\0"]),
        "groups that are a number": idp.token(groups=5),
        "groups of numbers": idp.token(groups=[5]),
        "ID token by its nonce": idp.token(header={"typ": "JWT"}, nonce="x"),
        "ID token by at_hash": idp.token(header={"typ": "JWT"}, at_hash="x"),
        "ID token by its audience": idp.token(header={"typ": "JWT"}, aud=[AUDIENCE, CLIENT]),
        "ID token for the client": idp.token(header={"typ": "JWT"}, aud=CLIENT),
        "ID token of Keycloak": idp.token(header={"typ": "JWT"}, typ="ID"),
        "refresh token of Keycloak": idp.token(header={"typ": "JWT"}, typ="Refresh"),
        "logout token": idp.token(header={"typ": "logout+jwt"}),
        "logout token by its event": idp.token(header={"typ": "JWT"}, events={}),
        "huge": idp.token(padding="x" * 20_000),
        "nested": _raw(idp, {}, deep),
        "nested header": f"{encoded(deep)}.{body}.{signature}",
        "claims that are a list": _raw(idp, {}, b"[1]"),
        "claims that are no JSON": _raw(idp, {}, b"\xff{"),
        "a long number": _raw(idp, {}, b'{"exp": ' + b"9" * 5000 + b"}"),
        "dots": "..",
        "words": "a.b.c",
        "four parts": good + ".x",
        "padding": good + "=",
    }


def _raw(idp: IdentityProvider, header: dict[str, Any], body: bytes | None = None) -> str:
    """A token with a header or claims that the library would not sign."""
    given = {"alg": "RS256", "kid": "one", **header}
    parts = [json.dumps(given).encode(), body or json.dumps(idp.claims()).encode()]
    signed = ".".join(map(encoded, parts))
    plain = sign(idp.rsa, parts[1], alg="RS256", kid="one")
    if not header:
        return plain
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    private: Any = idp.rsa.private_key
    return f"{signed}.{encoded(private.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def test_every_forged_token_is_refused(
    service: Service, idp: IdentityProvider, second: IdentityProvider
) -> None:
    assert me(service, idp.token()).status_code == 200
    wrong = {}
    for what, token in forged(idp, second).items():
        for _ in range(2):  # a refusal is remembered
            answer = me(service, token)
            got = answer.status_code, answer.json().get("code")
            if got not in ((401, "invalid_token"), (401, "unauthenticated")):
                wrong[what] = got
            elif got[1] == "invalid_token":
                assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert wrong == {}
    assert me(service, idp.token()).status_code == 200


def test_what_is_good_at_the_edge(service: Service, idp: IdentityProvider) -> None:
    """Clocks differ by a minute, audiences are listed, and headers that are not read change nothing."""
    now = int(time.time())
    jwk = rsa_key("x").as_dict(private=False)
    for token in (
        idp.token(exp=now - 30),
        idp.token(iat=now + 30, nbf=now + 30),
        idp.token(aud=["x", AUDIENCE]),
        idp.token(header={"typ": "JWT"}),
        idp.token(header={"typ": "application/at+jwt"}),
        idp.token(header={"jwk": jwk, "jku": "http://127.0.0.1:9/"}),
        idp.token(idp.keys[1], {"alg": "ES256", "kid": "two"}),
        idp.token(groups="risk"),
        idp.token(header={"typ": "JWT"}, typ="Bearer"),
    ):
        answer = me(service, token)
        assert answer.status_code == 200, answer.text


def test_groups_that_are_missing_are_told(service: Service, idp: IdentityProvider) -> None:
    for more in ({}, {"_claim_names": {"groups": "src1"}}, {"hasgroups": True}):
        answer = me(service, idp.token(groups=None, **more))
        assert (answer.status_code, answer.json()["code"]) == (403, "groups_missing")
    answer = me(service, idp.token(groups=[]))
    assert (answer.status_code, answer.json()["code"]) == (403, "no_role")


def test_bad_tokens_are_limited_like_unknown_keys(
    start: Callable[..., Service], idp: IdentityProvider, tmp_path: Path
) -> None:
    service = start(**idp.files(tmp_path), max_unknown_keys=3)
    bad = [idp.token(rsa_key("one"), sub=f"x{n}") for n in range(5)]
    assert [me(service, each).status_code for each in bad] == [401, 401, 401, 429, 429]
    assert me(service, "rw_unknown").status_code == 429
    # callers behind a proxy share an address: what is good is accepted from it
    assert me(service, idp.token()).status_code == 200


def test_changed_roles_take_effect_at_once(
    start: Callable[..., Service], idp: IdentityProvider, tmp_path: Path
) -> None:
    files = idp.files(tmp_path)
    service, token = start(**files), idp.token()
    assert me(service, token).json()["roles"] == ["trainer"]
    rules = json.loads(files["roles_file"].read_text())
    rules[0] = {"issuer": idp.issuer, "group": "risk", "owner": "bank", "role": "viewer"}
    files["roles_file"].write_text(json.dumps(rules))
    eventually(lambda: me(service, token).json()["roles"] == ["viewer"])
    files["roles_file"].write_text("[]")
    eventually(lambda: me(service, token).status_code == 403)


def test_keys_that_were_rotated(
    start: Callable[..., Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers, "PAUSE_SECONDS", 0.0)
    with running(IdentityProvider()) as idp:
        service = start(**idp.files(tmp_path), max_unknown_keys=1000)
        old = idp.token()
        assert me(service, old).status_code == 200
        idp.stop()
        earlier = idp.keys
        idp.keys = [rsa_key("new"), ec_key("two")]
        idp.start()
        new = idp.token(header={"kid": "new"})
        assert me(service, new).status_code == 200
        gone = idp.token(earlier[0], sub="bob")
        assert me(service, gone).status_code == 401


def test_a_provider_that_is_down(
    start: Callable[..., Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers, "PAUSE_SECONDS", 0.0)
    idp = IdentityProvider()
    service = start(**idp.files(tmp_path))
    answer = me(service, idp.token())
    assert answer.status_code == 503
    assert answer.json()["code"] == "identity_provider_unavailable"
    assert "retry-after" in answer.headers
    assert me(service, service.key()).status_code == 200
    with running(idp):
        assert me(service, idp.token()).status_code == 200
    monkeypatch.setattr(providers, "FRESH_SECONDS", 0.0)
    assert me(service, idp.token(sub="bob")).status_code == 200  # its keys are known
    found = service.app.state.authenticator.tokens.tokens.providers[idp.issuer]
    found.stale_seconds = 0.0
    assert me(service, idp.token(sub="eve")).status_code == 503


def test_unknown_key_ids_cause_one_fetch_and_delay_nobody(
    start: Callable[..., Service], tmp_path: Path
) -> None:
    """The provider is slow at the second fetch."""
    key, goes_on = rsa_key("one"), threading.Event()
    goes_on.set()

    def answers(path: str) -> tuple[int, dict[str, str], bytes] | None:
        if path.endswith("/keys"):
            return 200, {}, json.dumps({"keys": [key.as_dict(private=False)]}).encode()
        goes_on.wait(patience())
        return 200, {}, json.dumps(metadata).encode()

    with odd_provider(answers) as (url, asked):
        idp = IdentityProvider(port=int(url.rpartition(":")[2]), keys=[key])
        metadata = {"issuer": url, "jwks_uri": f"{url}/keys"}
        service = start(
            **idp.files(tmp_path, client_id=None, redirect_uri=None, secret_file=None),
            max_unknown_keys=1000,
        )
        assert me(service, idp.token()).status_code == 200
        assert len(asked) == 2
        for n in range(20):  # the pause after the first fetch is not over
            assert me(service, idp.token(header={"kid": f"x{n}"})).status_code == 401
        assert len(asked) == 2
        goes_on.clear()
        found = service.app.state.authenticator.tokens.tokens.providers[url]
        found._fetched_last = -1000.0
        statuses: list[int] = []

        def send(n: int) -> None:
            token = idp.token(header={"kid": f"y{n}"})
            statuses.append(me(service, token).status_code)

        threads = [threading.Thread(target=send, args=(n,)) for n in range(10)]
        for each in threads:
            each.start()
        eventually(lambda: len(asked) == 3)
        assert me(service, idp.token(sub="bob")).status_code == 200
        assert me(service, service.key()).status_code == 200
        assert statuses == []  # only they wait
        goes_on.set()
        for each in threads:
            each.join()
        assert statuses == [401] * 10
        assert len(asked) == 4


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("garbage", {"/.well-known/openid-configuration": (200, {}, b"<html>")}),
        ("a list", {"/.well-known/openid-configuration": (200, {}, b"[]")}),
        ("nested", {"/.well-known/openid-configuration": (200, {}, b"[" * 100_000)}),
        ("an error", {"/.well-known/openid-configuration": (500, {}, b"{}")}),
        ("a redirect", {"/.well-known/openid-configuration": (302, {"Location": "/keys"}, b"")}),
        ("keys elsewhere", {"jwks_uri": "https://evil.example/keys"}),
        ("keys at a file", {"jwks_uri": "file:///etc/passwd"}),
        ("keys at another port", {"jwks_uri": "http://127.0.0.1:1/keys"}),
        ("another issuer", {"issuer": "https://evil.example"}),
        ("no keys", {"/keys": (200, {}, b'{"keys": []}')}),
        (
            "keys that are none",
            {"/keys": (200, {}, b'{"keys": [1, {"kty": "RSA"}, {"kty": "oct"}]}')},
        ),
        ("a redirect of keys", {"/keys": (307, {"Location": "https://evil.example"}, b"")}),
        ("huge keys", {"/keys": (200, {}, b'{"keys": [' + b" " * 3_000_000 + b"]}")}),
        ("a bomb", {"/keys": (200, {"Content-Encoding": "gzip"}, b"\x1f\x8b" + b"\0" * 100)}),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_provider_that_misbehaves(what: str, changed: dict[str, Any]) -> None:
    key = rsa_key("one")

    def answers(path: str) -> tuple[int, dict[str, str], bytes] | None:
        if path in changed:
            found: tuple[int, dict[str, str], bytes] = changed[path]
            return found
        if path == "/keys":
            return 200, {}, json.dumps({"keys": [key.as_dict(private=False)]}).encode()
        told = {"issuer": url, "jwks_uri": f"{url}/keys"}
        told |= {name: value for name, value in changed.items() if not name.startswith("/")}
        return 200, {}, json.dumps(told).encode()

    with odd_provider(answers) as (url, _):

        async def fetch() -> None:
            await Provider(Issuer(url, AUDIENCE), 60.0).fetch()

        with pytest.raises(ProviderAway):
            asyncio.run(fetch())
        changed = {}
        asyncio.run(fetch())


def test_a_provider_that_hangs_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "ANSWER_SECONDS", 0.2)
    with odd_provider(lambda path: None) as (url, _), pytest.raises(ProviderAway):
        asyncio.run(Provider(Issuer(url, AUDIENCE), 60.0).fetch())


def test_small_and_large_keys_and_those_for_encryption_are_not_used() -> None:
    weak = rsa_key("weak").as_dict(private=False)
    n = int.from_bytes(base64.urlsafe_b64decode(f"{weak['n']}=="), "big")
    small = encoded((n >> 1100 | 1).to_bytes(128, "big"))
    large, largest = (
        encoded((1 << bits | 1).to_bytes(513, "big").lstrip(b"\0")) for bits in (4096, 4095)
    )
    document = {
        "keys": [
            weak | {"n": small},
            weak | {"n": large},
            weak | {"n": largest, "kid": "largest"},
            rsa_key("enc").as_dict(private=False) | {"use": "enc"},
            rsa_key("hmac").as_dict(private=False) | {"alg": "HS256"},
            ec_key("good").as_dict(private=False),
        ]
    }
    assert [each.kid for each in providers._signing_keys(document)] == ["largest", "good"]


def test_without_providers_a_token_is_an_unknown_key(start: Callable[..., Service]) -> None:
    service = start()
    answer = me(service, "a.b.c")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert service.app.state.authenticator.tokens is None


@pytest.mark.parametrize(
    ("changed", "accepted"),
    [
        ({}, True),
        ({"aud": [CLIENT]}, True),
        ({"aud": [CLIENT, "other"], "azp": CLIENT}, True),
        ({"aud": [CLIENT, "other"]}, False),  # which of the two has asked for it?
        ({"aud": [CLIENT, "other"], "azp": "other"}, False),
        ({"azp": "other"}, False),
        ({"aud": "other"}, False),
        ({"aud": []}, False),
        ({"nonce": "another"}, False),
        ({"nonce": None}, False),
    ],
    ids=str,
)
def test_an_id_token_is_for_this_client_and_sign_in(
    service: Service, idp: IdentityProvider, changed: dict[str, Any], accepted: bool
) -> None:
    """OpenID Connect Core 3.1.3.7: the audience, the authorized party and the nonce."""
    tokens = Tokens(service.settings)
    claims = {"aud": CLIENT, "nonce": "n"} | changed
    token = idp.token(header={"typ": "JWT"}, **claims)
    signing_in = tokens.of_sign_in(tokens.providers[idp.issuer], token, "n")
    if accepted:
        assert asyncio.run(signing_in).claims["sub"] == "ann"
    else:
        with pytest.raises(InvalidToken):
            asyncio.run(signing_in)
