"""Sign-in of people at a real identity provider, on two replicas, and the end of their sessions."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from sqlalchemy import delete, update

from app.access import sign_in as sign_in_service
from app.identity.provider import Provider
from app.identity.tokens import LOGOUT_EVENT
from app.platform.encryption import Cipher
from app.platform.tables import AuditEntry, BrowserSession, Principal
from tests.app.live_service import Service
from tests.app.live_service import running as serving
from tests.identity_provider import CLIENT, IdentityProvider, free_port, log_in, running, sign
from tests.long_form import long_form
from tests.waiting import eventually

SESSION = "rankwright_session"


@pytest.fixture(scope="module")
def ports() -> list[int]:
    return [free_port() for _ in range(2)]


@pytest.fixture(scope="module")
def idp(ports: list[int]) -> Iterator[IdentityProvider]:
    provider = IdentityProvider(
        redirect_uris=[f"http://127.0.0.1:{ports[0]}/console/oidc/callback"],
        backchannel=f"http://127.0.0.1:{ports[0]}/console/oidc/backchannel-logout",
    )
    provider.groups |= {"head": ["heads"], "zoe": ["risk"]}
    with running(provider):
        yield provider


@pytest.fixture(scope="module")
def replicas(
    start: Callable[..., Service],
    idp: IdentityProvider,
    ports: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[Service]]:
    """Two API processes' worth of the service, on one database. Their addresses differ as behind no load balancer, so
    the tests lead a browser from one to the other by hand. They refresh no session on their own, so that a test decides
    which of them does it, and when.
    """
    files = idp.files(tmp_path_factory.mktemp("oidc"))
    origin = start(**files, max_unknown_keys=100_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sign_in_service, "LOOK_SECONDS", 1e6)
        with serving(origin.settings, ports[0]) as one, serving(origin.settings, ports[1]) as two:
            yield [one, two]


@pytest.fixture
def service(replicas: list[Service]) -> Iterator[Service]:
    yield replicas[0]
    with replicas[0].context.db.write() as session:
        session.execute(delete(BrowserSession))


def begin(browser: httpx.Client, idp: IdentityProvider, where: str = "/console") -> str:
    """Press the link of the sign-in page; returns the provider's address."""
    answer = browser.get(f"/console/oidc/start?issuer={quote(idp.issuer, '')}&next={quote(where)}")
    assert answer.status_code == 303, answer.text
    address: str = answer.headers["location"]
    return address


def sign_in(
    service: Service, idp: IdentityProvider, login: str = "ann", where: str = "/console"
) -> httpx.Client:
    """A browser in which a person has signed in."""
    browser = service.client()
    answer = browser.get(log_in(browser, begin(browser, idp, where), login))
    assert answer.status_code == 200, answer.text
    assert SESSION in browser.cookies
    return browser


def csrf_of(browser: httpx.Client) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{128})"', browser.get("/console").text)
    assert found is not None
    return found[1]


def refresh(service: Service) -> int:
    """Refresh what is due, as a process does every few seconds."""
    sign_ins = service.app.state.authenticator.sign_ins
    assert sign_ins is not None
    count: int = asyncio.run(sign_ins.refresh_due())
    return count


def make_due(service: Service) -> None:
    with service.context.db.write() as session:
        session.execute(update(BrowserSession).values(refresh_at=1.0))


def row_of(service: Service) -> BrowserSession | None:
    with service.context.db.read() as session:
        return session.query(BrowserSession).one_or_none()


def test_a_person_signs_in(service: Service, idp: IdentityProvider) -> None:
    page = service.client().get("/console/sign-in").text
    assert "/console/oidc/start?issuer=" in page
    browser = service.client()
    address = begin(browser, idp, "/console/jobs?a=1")
    asked = parse_qs(urlsplit(address).query)
    assert asked["redirect_uri"] == [idp.redirect_uris[0]]
    forged = service.client().get(
        f"/console/oidc/start?issuer={quote(idp.issuer, '')}", headers={"Host": "evil.example"}
    )
    assert "evil.example" not in forged.text + str(forged.headers)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["scope"] == ["openid profile groups offline_access"]
    assert len({asked[name][0] for name in ("state", "nonce", "code_challenge")}) == 3
    answer = browser.get(log_in(browser, address, "ann"))
    assert answer.status_code == 200
    assert 'content="0; url=/console/jobs?a=1"' in answer.text
    cookies = answer.headers.get_list("set-cookie")
    session = next(each for each in cookies if each.startswith(SESSION))
    for part in ("HttpOnly", "SameSite=strict", "Path=/console;"):
        assert part in session
    assert any("Max-Age=0" in each for each in cookies if "rankwright_oidc_" in each)
    me = browser.get("/console/me")
    assert me.status_code == 200
    assert "Ann" in me.text
    assert "trainer" in me.text
    assert browser.get("/v1/models").status_code == 401
    row = row_of(service)
    assert row is not None
    assert (row.owner, row.groups, row.key_id) == ("bank", ["risk"], None)
    assert row.refresh_token is not None
    with service.context.db.read() as session_:
        last = session_.query(AuditEntry).order_by(AuditEntry.id.desc()).first()
        assert last is not None
        assert last.principal_id == row.principal_id
        assert session_.get_one(Principal, row.principal_id).subject == "ann"


def test_one_replica_starts_and_the_other_completes(
    replicas: list[Service], service: Service, idp: IdentityProvider
) -> None:
    one, two = replicas
    browser = one.client()
    back = log_in(browser, begin(browser, idp), "ann")
    answer = browser.get(back.replace(one.url, two.url))
    assert answer.status_code == 200
    for each in replicas:
        assert browser.get(f"{each.url}/console").status_code == 200


def test_a_sign_in_belongs_to_the_browser_that_started_it(
    service: Service, idp: IdentityProvider
) -> None:
    """Nobody signs another in as himself (login CSRF), nor into a session that he knows (fixation)."""
    attacker, victim = service.client(), service.client()
    back = log_in(attacker, begin(attacker, idp), "ann")
    answer = victim.get(back)
    assert answer.status_code == 400
    assert SESSION not in victim.cookies
    # nor if the victim has started one too
    begin(victim, idp)
    assert victim.get(back).status_code == 400
    victim.cookies.set(SESSION, "known-to-the-attacker", path="/console")
    answer = victim.get(log_in(victim, begin(victim, idp), "ann"))
    assert answer.status_code == 200
    assert answer.cookies[SESSION] != "known-to-the-attacker"
    other = service.client()
    other.cookies.set(SESSION, "known-to-the-attacker", path="/console")
    assert other.get("/console").status_code == 303


def test_two_tabs_sign_in_and_a_code_is_used_once(service: Service, idp: IdentityProvider) -> None:
    browser = service.client()
    first, second = begin(browser, idp), begin(browser, idp, "/console/jobs")
    back = log_in(browser, first, "ann")
    kept = {each.name: each.value for each in browser.cookies.jar}
    assert browser.get(back).status_code == 200
    answer = browser.get(log_in(browser, second, "ann"))
    assert "url=/console/jobs" in answer.text
    for name, value in kept.items():
        browser.cookies.set(name, value or "", path="/console/oidc")
    answer = browser.get(back)
    assert answer.status_code == 400
    for _ in range(12):
        begin(browser, idp)
    started = [each for each in browser.cookies.jar if each.name.startswith("rankwright_oidc_")]
    assert len(started) <= 8


CHANGED: tuple[dict[str, str | None], ...] = (
    {"state": None},
    {"state": "é" * 50},
    {"code": None},
    {"code": "x" * 5000},
    {"iss": "https://evil.example"},
    {"error": "access_denied", "error_description": "<script>"},
)


@pytest.mark.parametrize("changed", CHANGED, ids=str)
def test_a_bad_answer_is_refused(
    service: Service, idp: IdentityProvider, changed: dict[str, str | None]
) -> None:
    browser = service.client()
    address = urlsplit(log_in(browser, begin(browser, idp), "ann"))
    query: dict[str, Any] = {name: values[0] for name, values in parse_qs(address.query).items()}
    query = {name: value for name, value in (query | changed).items() if value is not None}
    answer = browser.get(address.path, params=query)
    assert answer.status_code in (400, 403), answer.text
    assert "<script>" not in answer.text
    assert SESSION not in browser.cookies
    assert row_of(service) is None


def test_a_bad_or_late_cookie_is_refused(
    service: Service, idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = service.client()
    back = log_in(browser, begin(browser, idp), "ann")
    name = next(each.name for each in browser.cookies.jar if "oidc_" in each.name)
    for cookie in ("", "x", "gAAAAAB" + "x" * 200, "é"):
        headers = {b"Cookie": f"{name}={cookie}".encode()}
        assert service.client().get(back, headers=headers).status_code == 400
    decrypt = Cipher.decrypt
    monkeypatch.setattr(Cipher, "decrypt", lambda self, text, most=None: decrypt(self, text, -1))
    assert browser.get(back).status_code == 400


@pytest.mark.parametrize("issuer", ["", "https://evil.example", "é"])
def test_an_unknown_provider_is_not_found(service: Service, issuer: str) -> None:
    answer = service.client().get("/console/oidc/start", params={"issuer": issuer})
    assert answer.status_code == 404
    assert "location" not in answer.headers


@pytest.mark.parametrize("elsewhere", ["https://evil.example", "/console/x\\"])
def test_it_leads_nowhere_else(service: Service, idp: IdentityProvider, elsewhere: str) -> None:
    browser = service.client()
    answer = browser.get(log_in(browser, begin(browser, idp, elsewhere), "ann"))
    assert 'content="0; url=/console"' in answer.text


def test_who_has_no_role_does_not_get_in(service: Service, idp: IdentityProvider) -> None:
    browser = service.client()
    answer = browser.get(log_in(browser, begin(browser, idp), "bob"))
    assert answer.status_code == 403
    assert SESSION not in browser.cookies
    idp.change(without_groups=True)
    try:
        browser = service.client()
        answer = browser.get(log_in(browser, begin(browser, idp), "ann"))
        assert answer.status_code == 403
        assert "groups" in answer.text
    finally:
        idp.change(without_groups=False)


def test_a_person_with_two_owners_chooses(service: Service, idp: IdentityProvider) -> None:
    browser = service.client()
    answer = browser.get(log_in(browser, begin(browser, idp), "head"))
    assert "url=/console/owner" in answer.text
    assert "shop" in browser.get("/console/owner").text
    old, csrf = browser.cookies[SESSION], csrf_of(browser)
    for wrong in ("", "third", "é"):
        answer = browser.post("/console/owner", data={"csrf": csrf, "owner": wrong})
        assert answer.status_code == 422
    assert browser.post("/console/owner", data={"owner": "shop"}).status_code == 403
    answer = browser.post("/console/owner", data={"csrf": csrf, "owner": "shop"})
    assert answer.status_code == 303
    assert browser.cookies[SESSION] != old
    assert "admin" in browser.get("/console/me").text
    # a form of the former owner does nothing here
    assert browser.post("/console/owner", data={"csrf": csrf, "owner": "bank"}).status_code == 403
    stolen = service.client()
    stolen.cookies.set(SESSION, old, path="/console")
    assert stolen.get("/console").status_code == 303


def test_signing_out_names_the_providers_page(service: Service, idp: IdentityProvider) -> None:
    browser = sign_in(service, idp)
    answer = browser.post("/console/sign-out", data={"csrf": csrf_of(browser)})
    assert answer.status_code == 200
    assert f"{idp.issuer}/session/end?client_id={CLIENT}" in answer.text
    assert row_of(service) is None
    assert browser.get("/console").status_code == 303


def test_a_refresh_brings_new_groups_and_a_new_token(
    service: Service, idp: IdentityProvider
) -> None:
    browser = sign_in(service, idp, "zoe")
    before = row_of(service)
    assert refresh(service) == 0
    idp.change(groups=idp.groups | {"zoe": ["risk", "heads"]})
    try:
        make_due(service)
        assert refresh(service) == 1
    finally:
        idp.change(groups=idp.groups)
    after = row_of(service)
    assert before is not None
    assert after is not None
    assert after.groups == ["heads", "risk"]
    assert after.refresh_token != before.refresh_token
    assert after.refresh_at is not None
    assert after.refresh_at > time.time() + 60
    assert after.expires_at >= before.expires_at
    assert browser.get("/console").status_code == 200
    # the group is gone, and with it the role at this owner
    idp.change(groups=idp.groups | {"zoe": []})
    try:
        make_due(service)
        refresh(service)
    finally:
        idp.change(groups=idp.groups)
    assert row_of(service) is None


def test_a_refresh_without_an_id_token_confirms_the_session(
    service: Service, idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenID Connect Core 12.2 makes it optional."""
    browser = sign_in(service, idp)
    sign_ins = service.app.state.authenticator.sign_ins
    ask = sign_ins._ask_again

    async def ask_again(due: Any) -> dict[str, Any]:
        return {name: value for name, value in (await ask(due)).items() if name != "id_token"}

    monkeypatch.setattr(sign_ins, "_ask_again", ask_again)
    with service.context.db.write() as session:
        session.execute(update(BrowserSession).values(refresh_at=1.0, expires_at=time.time() + 60))
    assert refresh(service) == 1
    row = row_of(service)
    assert row is not None
    assert row.expires_at > time.time() + 3000
    assert row.groups == ["risk"]
    assert browser.get("/console").status_code == 200


def test_a_process_refreshes_what_is_due(
    service: Service, idp: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(service, idp)
    before = row_of(service)
    assert before is not None
    make_due(service)
    monkeypatch.setattr(sign_in_service, "LOOK_SECONDS", 0.01)

    async def refresh_until_stored() -> None:
        process = asyncio.create_task(service.app.state.authenticator.sign_ins.run())
        while (row := row_of(service)) is None or row.refresh_token == before.refresh_token:
            await asyncio.sleep(0.01)
        process.cancel()

    asyncio.run(refresh_until_stored())


def test_two_replicas_refresh_a_session_once(
    replicas: list[Service], service: Service, idp: IdentityProvider
) -> None:
    """A second use of a refresh token would end the session at the provider."""
    browser = sign_in(service, idp)
    for _ in range(4):
        make_due(service)
        with ThreadPoolExecutor(2) as pool:
            counts = list(pool.map(refresh, replicas))
        assert sum(counts) == 1
        assert row_of(service) is not None
    assert browser.get("/console").status_code == 200


def test_a_refused_refresh_ends_the_session(service: Service, idp: IdentityProvider) -> None:
    browser = sign_in(service, idp)
    cipher = service.app.state.authenticator.sign_ins._cipher
    with service.context.db.write() as session:
        session.execute(update(BrowserSession).values(refresh_token=cipher.encrypt("unknown")))
    make_due(service)
    refresh(service)
    assert row_of(service) is None
    with service.context.db.read() as session:
        ended = session.query(AuditEntry).where(AuditEntry.action == "ended session").all()
    assert "the provider refused" in (ended[-1].summary or "")
    eventually(lambda: browser.get("/console").status_code == 303)


def test_a_provider_that_is_down_is_tolerated_for_a_while(
    service: Service, idp: IdentityProvider
) -> None:
    browser = sign_in(service, idp)
    idp.stop()
    try:
        make_due(service)
        assert refresh(service) == 1
        row = row_of(service)
        assert row is not None
        assert browser.get("/console").status_code == 200
        assert refresh(service) == 0  # the lease is the pause
        with service.context.db.write() as session:  # the stale time is over
            session.execute(update(BrowserSession).values(expires_at=1.0))
        eventually(lambda: browser.get("/console").status_code == 303)
        page = browser.get("/console/sign-in")
        assert page.status_code == 200
        answer = browser.get(f"/console/oidc/start?issuer={quote(idp.issuer, '')}")
        assert answer.status_code in (303, 503)
    finally:
        idp.start()


def test_the_provider_ends_a_session(service: Service, idp: IdentityProvider) -> None:
    """As the provider does it itself, when the person signs out there."""
    browser = sign_in(service, idp)
    page = browser.get(f"{idp.issuer}/session/end")
    found = re.search(r'name="xsrf" value="([^"]+)"', page.text)
    assert found is not None
    sent = browser.post(
        f"{idp.issuer}/session/end/confirm", data={"xsrf": found[1], "logout": "yes"}
    )
    assert sent.status_code in (302, 303), sent.text
    eventually(lambda: row_of(service) is None)
    eventually(lambda: browser.get("/console").status_code == 303)


def logout_token(idp: IdentityProvider, key: Any = None, **changed: Any) -> str:
    claims = idp.claims(aud=CLIENT, jti="1", events={LOGOUT_EVENT: {}}, groups=None, name=None)
    claims = {name: value for name, value in (claims | changed).items() if value is not None}
    return sign(key or idp.rsa, claims, alg="RS256", kid="one", typ="logout+jwt")


def test_forged_logout_tokens_end_nothing(service: Service, idp: IdentityProvider) -> None:
    sign_in(service, idp)
    path, now = "/console/oidc/backchannel-logout", int(time.time())
    tokens = {
        "none": "",
        "an access token": idp.token(),
        "wrong audience": logout_token(idp, aud="other"),
        "a nonce": logout_token(idp, nonce="x"),
        "no event": logout_token(idp, events=None),
        "another event": logout_token(idp, events={"x": {}}),
        "nobody": logout_token(idp, sub=None),
        "expired": logout_token(idp, exp=now - 100),
        "no iat": logout_token(idp, iat=None),
        "another issuer": logout_token(idp, iss="https://evil.example"),
        "huge": logout_token(idp, padding="x" * 20_000),
    }
    for what, token in tokens.items():
        answer = service.client().post(path, data={"logout_token": token})
        assert answer.status_code == 400, what
        assert answer.json()["error"] == "invalid_request"
        assert row_of(service) is not None, what
    assert service.client().get(path).status_code == 405
    assert service.client().post(path, json={}).status_code in (400, 415)
    # a session that began after the token was made is not meant
    old = logout_token(idp, iat=now - 3600)
    assert service.client().post(path, data={"logout_token": old}).status_code == 200
    assert row_of(service) is not None
    other = logout_token(idp, sid="other")
    assert service.client().post(path, data={"logout_token": other}).status_code == 200
    assert row_of(service) is not None
    good = logout_token(idp, iat=now + 30)
    answer = service.client().post(path, data={"logout_token": good})
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert row_of(service) is None


def test_codes_are_guessed_as_slowly_as_keys(
    start: Callable[..., Service],
    idp: IdentityProvider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = start(**idp.files(tmp_path), max_unknown_keys=3)
    statuses = []
    for n in range(5):
        answer = service.client().get(f"/console/oidc/callback?state=x&code={n}")
        statuses.append(answer.status_code)
    assert set(statuses) == {400}  # without a cookie the provider is not asked
    browser, exchanged = service.client(), []
    state = parse_qs(urlsplit(begin(browser, idp)).query)["state"][0]
    kept = {each.name: each.value or "" for each in browser.cookies.jar}
    exchange = Provider.exchange

    async def count(self: Provider, grant: Mapping[str, str]) -> Mapping[str, Any]:
        exchanged.append(grant["code"])
        return await exchange(self, grant)

    monkeypatch.setattr(Provider, "exchange", count)
    statuses = []
    for n in range(5):
        for name, value in kept.items():
            browser.cookies.set(name, value, path="/console/oidc")
        statuses.append(browser.get(f"/console/oidc/callback?state={state}&code={n}").status_code)
    assert (statuses, len(exchanged)) == ([400, 400, 400, 429, 429], 3)
    service = start(**idp.files(tmp_path), max_unknown_keys=3)
    bad = [f"{idp.token()[:-9]}{n:09}" for n in range(5)]
    sent = [
        service.client().post("/console/oidc/backchannel-logout", data={"logout_token": each})
        for each in bad
    ]
    assert [each.status_code for each in sent] == [400, 400, 400, 429, 429]


def test_without_providers_there_is_nothing(start: Callable[..., Service]) -> None:
    service = start()
    assert "oidc" not in service.client().get("/console/sign-in").text
    assert service.client().get("/console/oidc/start").status_code == 404
    assert service.client().get("/console/oidc/callback").status_code == 404
    assert service.client().post("/console/oidc/backchannel-logout").status_code == 404


@long_form
def test_a_real_browser_signs_in(
    service: Service, idp: IdentityProvider, visit: Callable[..., Any]
) -> None:
    """The strict cookie is sent on the way on from our own page, after the provider's redirect."""
    window = visit(service)
    window.expect("request to another host")
    window.expect("Failed to load resource")  # the provider's page asks for a font of the net
    page = window.open("/console/sign-in?next=/console/jobs")
    window.check()
    page.get_by_role("link", name="Sign in with").click()
    page.locator('input[name="login"]').fill("ann")
    page.locator('input[name="password"]').fill("x")
    page.get_by_role("button").first.click()
    page.wait_for_url("**/console/jobs")
    page.get_by_text("Ann").first.wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign out there").wait_for()
    window.check()
    page.goto(f"{service.url}/console")
    page.wait_for_url("**/console/sign-in?next=*")
