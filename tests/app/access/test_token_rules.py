"""What a token and a provider may say, at the limits: without a service, and without what `make provider` installs."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from app.identity import provider as providers
from app.identity import tokens as rules
from app.identity.provider import GrantRefused, Known, Provider, ProviderAway
from app.identity.tokens import LOGOUT_EVENT, InvalidToken, Tokens
from app.platform.errors import Forbidden
from app.platform.issuers import Issuer
from app.platform.settings import Settings
from tests.app.webhooks.receivers import Certificates
from tests.identity_provider import (
    AUDIENCE,
    CLIENT,
    IdentityProvider,
    ec_key,
    odd_provider,
    rsa_key,
)

NOW = 1_800_000_000
DAY = 86_400
DISCOVERY = "/.well-known/openid-configuration"


class Answers:
    """A provider as a dict: what it says of itself, its keys, and whether it fails."""

    def __init__(self, keys: list[Any]) -> None:
        self.keys = [each.as_dict(private=False) for each in keys]
        self.metadata: dict[str, Any] = {}
        self.status = 200
        self.padding = 0

    def __call__(self, path: str) -> tuple[int, dict[str, str], bytes]:
        body = json.dumps({"keys": self.keys} if path == "/keys" else self.metadata).encode()
        return self.status, {}, body.ljust(self.padding)


@pytest.fixture(scope="module")
def idp() -> Iterator[IdentityProvider]:
    """Tokens of people and services, signed by keys of a provider that serves nothing but these."""
    keys: list[RSAKey | ECKey] = [rsa_key("one"), ec_key("two")]
    answers = Answers(keys)
    with odd_provider(answers) as (url, _):
        answers.metadata = {
            "issuer": url,
            "jwks_uri": f"{url}/keys",
            "token_endpoint": f"{url}/token",
            "authorization_endpoint": f"{url}/login",
        }
        yield IdentityProvider(port=int(url.rpartition(":")[2]), keys=keys)


@pytest.fixture
def tokens(
    idp: IdentityProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Tokens]:
    """Makes a verifier, whose clock shows `NOW`."""
    monkeypatch.setattr(rules, "time", SimpleNamespace(time=lambda: float(NOW)))

    def make(**entry: Any) -> Tokens:
        files: dict[str, Any] = dict(idp.files(tmp_path, **entry))
        return Tokens(Settings(state_dir=tmp_path, **files))

    return make


def bearer(idp: IdentityProvider, header: Mapping[str, Any] | None = None, **claims: Any) -> bytes:
    return idp.token(header=header, **{"iat": NOW, "exp": NOW + 300} | claims).encode()


def refused(work: Coroutine[Any, Any, object]) -> bool:
    try:
        asyncio.run(work)
    except InvalidToken:
        return True
    return False


@pytest.mark.parametrize(
    ("claims", "beyond"),
    [
        ({"exp": NOW - 59}, {"exp": NOW - 60}),
        ({"iat": NOW + 60}, {"iat": NOW + 61}),
        ({"nbf": NOW + 60}, {"nbf": NOW + 61}),
        ({"iat": NOW - DAY - 60}, {"iat": NOW - DAY - 61}),
        ({"aud": ["x", AUDIENCE]}, {"aud": ["x", CLIENT]}),
        ({"typ": "Bearer"}, {"typ": "ID"}),
        ({"sub": "x" * 255}, {"sub": "x" * 256}),
        ({"sub": "x"}, {"sub": ""}),
        ({"x": [[]] * 497}, {"x": [[]] * 498}),  # brackets: with those of the claims, x and groups
        ({"groups": "risk"}, {"groups": ["risk", 1]}),
    ],
    ids=str,
)
def test_claims_at_their_limits(
    idp: IdentityProvider,
    tokens: Callable[..., Tokens],
    claims: dict[str, Any],
    beyond: dict[str, Any],
) -> None:
    found = asyncio.run(tokens().of_bearer(bearer(idp, **claims)))
    assert (found.issuer, found.subject) == (idp.issuer, claims.get("sub", "ann"))
    assert found.groups == {"risk"}
    assert refused(tokens().of_bearer(bearer(idp, **beyond)))


def test_headers(idp: IdentityProvider, tokens: Callable[..., Tokens]) -> None:
    verifier = tokens()
    for header in ({"typ": "JWT"}, {"typ": "application/AT+JWT"}, {"jku": "http://127.0.0.1:9/"}):
        assert asyncio.run(verifier.of_bearer(bearer(idp, header))).subject == "ann"
    signed = IdentityProvider(port=idp.port, keys=idp.keys[::-1])
    of_second = bearer(signed, {"alg": "ES256", "kid": "two"})
    assert asyncio.run(verifier.of_bearer(of_second)).subject == "ann"
    for header in ({"typ": "logout+jwt"}, {"typ": "JOSE"}, {"kid": "two"}):
        assert refused(verifier.of_bearer(bearer(idp, header)))


def test_a_token_has_at_most_so_many_bytes(
    idp: IdentityProvider, tokens: Callable[..., Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = bearer(idp)
    monkeypatch.setattr(rules, "MAX_TOKEN_BYTES", len(token))
    assert asyncio.run(tokens().of_bearer(token)).subject == "ann"
    monkeypatch.setattr(rules, "MAX_TOKEN_BYTES", len(token) - 1)
    assert refused(tokens().of_bearer(token))


def test_who_is_a_service(idp: IdentityProvider, tokens: Callable[..., Tokens]) -> None:
    verifier = tokens()
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "person"),
        ({"idtyp": "user", "client_id": "app", "azp": "app"}, "person"),
        ({"idtyp": "app"}, "service"),
        ({"client_id": "ann"}, "service"),
        ({"azp": "ann"}, "service"),
        ({"cid": "ann"}, "service"),
    )
    for claims, kind in cases:
        assert asyncio.run(verifier.of_bearer(bearer(idp, **claims))).kind == kind, claims
    for_services = tokens(client_id=None, redirect_uri=None, secret_file=None)
    assert asyncio.run(for_services.of_bearer(bearer(idp))).kind == "service"
    assert for_services.for_people == []
    assert [each.issuer for each in verifier.for_people] == [idp.issuer]


def test_the_name_and_the_end_of_an_identity(
    idp: IdentityProvider, tokens: Callable[..., Tokens]
) -> None:
    verifier = tokens()
    for claims, name in (
        ({"name": None}, "ann"),
        ({"name": "", "email": "a@b.c"}, "a@b.c"),
        ({"name": 5, "preferred_username": "ann.b", "email": "a@b.c"}, "ann.b"),
        ({"name": "A\tB\x00C"}, "A B C"),
        ({"name": "x" * 300}, "x" * 255),
    ):
        assert asyncio.run(verifier.of_bearer(bearer(idp, **claims))).name == name
    for until, expected in ((NOW + DAY - 1, NOW + DAY - 1), (NOW + 2 * DAY, NOW + DAY)):
        found = asyncio.run(verifier.of_bearer(bearer(idp, exp=until)))
        assert found.expires_at == expected


def test_groups_that_are_elsewhere(idp: IdentityProvider, tokens: Callable[..., Tokens]) -> None:
    for claims in ({}, {"_claim_names": {"groups": "src1"}}, {"hasgroups": True}):
        with pytest.raises(Forbidden) as caught:
            asyncio.run(tokens().of_bearer(bearer(idp, groups=None, **claims)))
        assert caught.value.code == "groups_missing"


def test_logout_tokens(idp: IdentityProvider, tokens: Callable[..., Tokens]) -> None:
    verifier = tokens()
    good = {"aud": CLIENT, "events": {LOGOUT_EVENT: {}}, "sid": "s"}

    def token(**changed: Any) -> str:
        return bearer(idp, {"typ": "logout+jwt"}, **good | changed).decode()

    for accepted in ({}, {"sub": None}, {"sid": None}):
        assert (
            asyncio.run(verifier.of_logout(token(**accepted))).provider.issuer.client_id == CLIENT
        )
    wrong: dict[str, Any]
    for wrong in (
        {"sub": None, "sid": None},
        {"sid": 5},
        {"sid": "a\0"},
        {"events": None},
        {"events": [LOGOUT_EVENT]},
        {"events": {LOGOUT_EVENT: True}},
        {"events": {"other": {}}},
        {"nonce": "n"},
        {"aud": "other"},
        {"exp": NOW - 60},
    ):
        assert refused(verifier.of_logout(token(**wrong))), wrong
    for_services = tokens(client_id=None, redirect_uri=None, secret_file=None)
    assert refused(for_services.of_logout(token()))


def test_tokens_of_a_sign_in(idp: IdentityProvider, tokens: Callable[..., Tokens]) -> None:
    verifier = tokens()
    provider = verifier.providers[idp.issuer]

    def token(**changed: Any) -> str:
        return bearer(idp, {"typ": "JWT"}, **{"aud": CLIENT, "nonce": "n"} | changed).decode()

    for accepted in (
        {},
        {"azp": CLIENT},
        {"aud": [CLIENT, "other"], "azp": CLIENT},
        {"aud": [CLIENT]},
    ):
        found = asyncio.run(verifier.of_sign_in(provider, token(**accepted), "n"))
        assert found.claims["sub"] == "ann"
    for wrong in (
        {"aud": [CLIENT, "other"]},
        {"aud": [CLIENT, "other"], "azp": "other"},
        {"azp": "other"},
        {"aud": "other"},
        {"nonce": "m"},
        {"nonce": None},
        {"exp": NOW - 60},
    ):
        assert refused(verifier.of_sign_in(provider, token(**wrong), "n")), wrong
    assert refused(verifier.of_sign_in(Provider(provider.issuer, 60.0), token(), "n"))
    assert asyncio.run(verifier.of_refresh(provider, token(), "ann")).claims["nonce"] == "n"
    assert refused(verifier.of_refresh(provider, token(), "bob"))


PERSONS: dict[str, Any] = {
    "client_id": CLIENT,
    "redirect_uri": "http://127.0.0.1:9/console/oidc/callback",
}


@pytest.mark.parametrize(
    ("changed", "of_persons", "of_services"),
    [
        ({}, True, True),
        ({"token_endpoint": "http://127.0.0.1:9/token"}, False, True),
        ({"token_endpoint": None}, False, True),
        ({"authorization_endpoint": "https://login.example/a?b=c"}, True, True),
        ({"authorization_endpoint": "http://login.example/a"}, False, True),
        ({"authorization_endpoint": None}, False, True),
        ({"end_session_endpoint": "https://login.example/out?x"}, True, True),
        ({"end_session_endpoint": "ftp://login.example/out"}, False, False),
        ({"end_session_endpoint": 5}, False, False),
        ({"jwks_uri": "http://127.0.0.1:9/keys"}, False, False),
        ({"jwks_uri": 5}, False, False),
    ],
    ids=str,
)
def test_endpoints_of_a_provider(
    changed: dict[str, Any], of_persons: bool, of_services: bool
) -> None:
    answers = Answers([ec_key("two")])
    with odd_provider(answers) as (url, _):
        names = {"jwks_uri": "keys", "token_endpoint": "t", "authorization_endpoint": "a"}
        answers.metadata = {"issuer": url, **{name: f"{url}/{at}" for name, at in names.items()}}
        answers.metadata |= changed
        for more, accepted in (PERSONS, of_persons), ({}, of_services):
            provider = Provider(Issuer(url, AUDIENCE, **more), 60.0)
            try:
                found: Known | None = asyncio.run(provider.fetch())
            except ProviderAway:
                found = None
            assert (found is not None) == accepted


def test_an_answer_has_at_most_so_many_bytes() -> None:
    answers = Answers([ec_key("two")])
    with odd_provider(answers) as (url, _):
        answers.metadata = {"issuer": url, "jwks_uri": f"{url}/keys"}
        answers.padding = providers.MAX_ANSWER_BYTES
        asyncio.run(Provider(Issuer(url, AUDIENCE), 60.0).fetch())
        answers.padding += 1
        with pytest.raises(ProviderAway):
            asyncio.run(Provider(Issuer(url, AUDIENCE), 60.0).fetch())


def test_a_provider_must_have_a_certificate_that_the_machine_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Certificates.make(tmp_path / "tls", "127.0.0.1")
    answers = Answers([ec_key("two")])
    with odd_provider(answers, made.server("127.0.0.1")) as (url, asked):
        answers.metadata = {"issuer": url, "jwks_uri": f"{url}/keys"}
        with pytest.raises(ProviderAway):
            asyncio.run(Provider(Issuer(url, AUDIENCE), 60.0).fetch())
        assert asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(made.trusted))
        asyncio.run(Provider(Issuer(url, AUDIENCE), 60.0).fetch())
        assert asked == [DISCOVERY, "/keys"]


@pytest.mark.parametrize("methods", [None, ["client_secret_basic"], ["client_secret_post"]])
def test_a_client_shows_its_secret_as_the_provider_asks(
    tmp_path: Path, methods: list[str] | None
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    answers = Answers([ec_key("two")])
    with odd_provider(answers) as (url, asked):
        names = {"jwks_uri": "keys", "token_endpoint": "t", "authorization_endpoint": "a"}
        answers.metadata = {"issuer": url, **{name: f"{url}/{at}" for name, at in names.items()}}
        if methods is not None:
            answers.metadata["token_endpoint_auth_methods_supported"] = methods
        provider = Provider(Issuer(url, AUDIENCE, **PERSONS, secret_file=secret), 60.0)

        async def refusals() -> list[type[Exception]]:
            assert await provider.exchange({"code": "c"}) == answers.metadata
            found: list[type[Exception]] = []
            for status, code in (
                (400, "invalid_grant"),
                (400, "invalid_client"),
                (401, "invalid_grant"),
            ):
                answers.status, answers.metadata = status, {"error": code}
                try:
                    await provider.exchange({"code": "c"})
                except (GrantRefused, ProviderAway) as error:
                    found.append(type(error))
            return found

        assert asyncio.run(refusals()) == [GrantRefused, ProviderAway, ProviderAway]
        basic = f"/t Basic {b64encode(f'{CLIENT}:s'.encode()).decode()} code=c"
        posted = f"/t None code=c&client_id={CLIENT}&client_secret=s"
        expected = posted if methods == ["client_secret_post"] else basic
        assert asked[2:] == [expected] * 4


class Clock:
    """Monotonic seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def test_what_is_known_of_a_provider_grows_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, answers = Clock(), Answers([ec_key("two")])
    monkeypatch.setattr(providers, "time", clock)

    async def life(provider: Provider, asked: list[str]) -> None:
        async def away() -> bool:
            try:
                await provider.known()
            except ProviderAway:
                return True
            return False

        async def asked_in_all(n: int) -> None:
            while len(asked) < n or await provider.responds():
                await asyncio.sleep(0.01)

        assert provider.known_now() is None
        assert await provider.responds()
        assert asked == [DISCOVERY, "/keys"]
        clock.now += providers.FRESH_SECONDS
        assert not await away()
        assert len(asked) == 2
        answers.status = 503
        clock.now += 1
        assert not await away()
        await asked_in_all(3)  # once more, meanwhile; what it said before is still used
        clock.now = 1000 + provider.stale_seconds
        assert not await away()
        await asked_in_all(4)
        clock.now += 1
        assert provider.known_now() is None
        clock.now += providers.PAUSE_SECONDS - 2
        assert await away()
        assert len(asked) == 4
        answers.status = 200
        clock.now += 1
        assert not await away()
        assert await provider.responds()
        assert await provider.find_key("three", "ES256") is None
        assert await provider.find_key(None, "ES256") is not None
        assert len(asked) == 6

    with odd_provider(answers) as (url, asked):
        answers.metadata = {"issuer": url, "jwks_uri": f"{url}/keys"}
        asyncio.run(life(Provider(Issuer(url, AUDIENCE), 10 * providers.FRESH_SECONDS), asked))
