"""Sessions of the console: who gets one, what it opens, when it ends; and that no other site acts by it."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from app.access import service as keys
from app.access import sessions
from app.access.authentication import Authenticator
from app.console import rendering
from app.http.server import MAX_ADDRESS_BYTES
from app.jobs import endpoints as jobs
from app.platform.errors import Unavailable
from app.platform.tables import BrowserSession
from tests.app.console.plain_browser import PlainBrowser, alert
from tests.app.live_service import Service
from tests.long_form import LONG_FORM, long_form, rest
from tests.sentences import Sentences

OPEN = ("/console/sign-in", "/console/oidc", "/console/static")
"""Pages and files that need no session."""
STATIC = Path(rendering.__file__).parent / "static"


@pytest.fixture(scope="module")
def service(start: Callable[..., Service]) -> Service:
    return start()


def sign_in(service: Service, secret: str, **fields: str) -> httpx.Client:
    """A browser that is signed in: cookies are kept, redirects are not followed."""
    client = service.client()
    answer = client.post("/console/sign-in", data={"key": secret, **fields})
    assert answer.status_code == 303, answer.text
    return client


def csrf_of(client: httpx.Client) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{128})"', client.get("/console").text)
    assert found is not None
    return found[1]


def test_a_key_is_exchanged_for_a_cookie_of_the_console_alone(service: Service) -> None:
    secret = service.key()
    answer = service.client().post("/console/sign-in", data={"key": f" {secret}\n"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/console")
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=strict", "Path=/console"):
        assert part in cookie
    assert "Secure" not in cookie  # it came without TLS
    assert secret not in cookie
    client = sign_in(service, secret)
    assert client.get("/console").status_code == 200
    assert client.get("/v1/models").status_code == 401  # a cookie is no key


def test_signing_in_and_out_is_in_the_audit_log(service: Service) -> None:
    secret = service.key()
    client = sign_in(service, secret)
    link = service.context.db.writing(sessions.make_link, secret)
    assert service.client().post("/console/sign-in", data={"link": link}).status_code == 303
    assert service.client().post("/console/sign-in", data={"key": "rw_bad"}).status_code == 401
    out = client.post("/console/sign-out", data={"csrf": csrf_of(client)})
    assert out.status_code == 303
    api = service.client(secret)
    found = [entry["action"] for entry in api.get("/v1/audit?limit=3").json()["data"]]
    assert found == [
        "POST /console/sign-out",
        "POST /console/sign-in",
        "POST /console/sign-in",
    ]
    entry = api.get("/v1/audit").json()["data"][0]
    assert entry["key_id"] == api.get("/v1/keys").json()["data"][0]["id"]
    assert entry["client"] == "127.0.0.1"


def test_behind_tls_the_cookie_is_secure(service: Service) -> None:
    client = service.client(**{"X-Forwarded-Proto": "https"})
    answer = client.post("/console/sign-in", data={"key": service.key()})
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("secret", ["", "rw_unknown", "é"])
def test_a_bad_key_is_refused_in_words(service: Service, secret: str, sentences: Sentences) -> None:
    answer = service.client().post("/console/sign-in", data={"key": secret})
    assert answer.status_code == 401
    sentences(alert(answer.text))
    assert "set-cookie" not in answer.headers


def test_who_is_not_signed_in_is_asked_to_and_comes_back(service: Service) -> None:
    client = service.client()
    for path in ("/console", "/console?a=1"):
        answer = client.get(path)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/console/sign-in?next=%2Fconsole")
    client.cookies.set("rankwright_session", "made-up", path="/console")
    assert client.get("/console").status_code == 303
    assert client.get("/console", headers={"HX-Request": "true"}).status_code == 401


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/console",
        "//evil.example",
        "/consolex",
        "/console\\..",
        "/console/sign-in",
    ],
)
def test_signing_in_leads_nowhere_else(service: Service, elsewhere: str) -> None:
    answer = service.client().post(
        "/console/sign-in", data={"key": service.key(), "next": elsewhere}
    )
    assert answer.headers["location"] == "/console"
    inside = service.client().post(
        "/console/sign-in", data={"key": service.key(), "next": "/console/jobs?a=1"}
    )
    assert inside.headers["location"] == "/console/jobs?a=1"


def test_a_session_ends_with_its_key(service: Service) -> None:
    secret = service.key()
    client = sign_in(service, secret)
    assert client.get("/console").status_code == 200
    own = service.client(secret).get("/v1/keys").json()["data"][0]
    service.context.db.writing(keys.revoke, own["owner"], own["id"])
    assert client.get("/console").status_code == 303


def test_a_session_ends_by_itself(service: Service) -> None:
    client = sign_in(service, service.key())
    with service.context.db.write() as session:
        session.query(BrowserSession).update({"expires_at": 1.0})
    assert client.get("/console").status_code == 303


def test_signing_out_ends_the_session_for_every_window(service: Service) -> None:
    client = sign_in(service, service.key())
    token = client.cookies["rankwright_session"]
    assert client.post("/console/sign-out", data={"csrf": csrf_of(client)}).status_code == 303
    other = service.client()
    other.cookies.set("rankwright_session", token, path="/console")
    assert other.get("/console").status_code == 303


@pytest.mark.parametrize("csrf", [None, "", "0" * 64, "é"])
def test_a_change_without_the_sessions_token_is_refused(
    service: Service, csrf: str | None, sentences: Sentences
) -> None:
    client = sign_in(service, service.key())
    answer = client.post("/console/sign-out", data={} if csrf is None else {"csrf": csrf})
    assert answer.status_code == 403
    sentences(alert(answer.text))
    assert client.get("/console").status_code == 200


def test_a_link_signs_in_once(service: Service) -> None:
    secret = service.key()
    token = service.context.db.writing(sessions.make_link, secret)
    assert token is not None
    client = service.client()
    for _ in range(2):  # to look at it does not use it up
        assert client.get(f"/console/sign-in?link={token}").status_code == 200
    assert client.post("/console/sign-in", data={"link": token}).status_code == 303
    assert client.get("/console").status_code == 200
    again = service.client().post("/console/sign-in", data={"link": token})
    assert again.status_code == 401
    assert "already used" in again.text
    client.cookies.set("rankwright_session", token, path="/console")
    assert service.context.db.writing(sessions.make_link, "rw_unknown") is None


def test_a_link_is_no_session_and_a_session_no_link(service: Service) -> None:
    token = service.context.db.writing(sessions.make_link, service.key())
    assert token is not None
    client = service.client()
    client.cookies.set("rankwright_session", token, path="/console")
    assert client.get("/console").status_code == 303
    held = sign_in(service, service.key()).cookies["rankwright_session"]
    assert service.client().post("/console/sign-in", data={"link": held}).status_code == 401


def test_guessing_keys_is_limited_here_too(start: Callable[..., Service]) -> None:
    service = start(max_unknown_keys=3)
    client = service.client()
    statuses = [
        client.post("/console/sign-in", data={"key": f"rw_{n}"}).status_code for n in range(5)
    ]
    assert statuses == [401, 401, 401, 429, 429]


def test_guessing_links_is_limited_and_takes_no_lock(start: Callable[..., Service]) -> None:
    service = start(max_unknown_keys=3)
    client, secret = service.client(), service.key()
    good = service.context.db.writing(sessions.make_link, secret)
    with service.context.db.write() as held:
        held.query(BrowserSession).update({"expires_at": BrowserSession.expires_at})  # the one lock
        answers = [client.post("/console/sign-in", data={"link": f"no{n}"}) for n in range(5)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
    assert "already used" in answers[0].text
    assert int(answers[-1].headers["retry-after"]) > 0
    # Callers behind a proxy share an address: what is good is accepted from it.
    assert client.post("/console/sign-in", data={"link": good}).status_code == 303


def test_guessing_cookies_is_limited_and_harms_no_session_that_was_seen(
    start: Callable[..., Service],
) -> None:
    service = start(max_unknown_keys=3)
    client, guesser = sign_in(service, service.key()), service.client()

    def guess(token: str, **headers: str) -> httpx.Response:
        return guesser.get("/console", headers={"Cookie": f"rankwright_session={token}", **headers})

    assert [guess("same").status_code for _ in range(9)] == [303] * 9  # counted once
    assert [guess(f"no{n}").status_code for n in range(4)] == [303, 303, 429, 429]
    page = guess("no9")
    assert page.headers["content-type"].startswith("text/html")
    assert "too many" in page.text or "a minute" in page.text
    assert guess("no9", **{"HX-Request": "true"}).status_code == 429
    assert client.get("/console").status_code == 200
    assert guesser.get("/console").status_code == 303  # without a cookie nothing is looked up


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://HERE.test:8000"}, 303),  # a proxy has ended TLS
        *rest(
            ({}, 303),
            ({"Origin": "http://here.test:8000"}, 303),
            ({"Referer": "http://here.test:8000/console/sign-in?next=x"}, 303),
            ({"Host": "here.test", "Origin": "http://here.test"}, 303),
        ),
        ({"Host": "here.test:443", "Origin": "http://here.test"}, 403),
        ({"Origin": "http://here.test:8001"}, 403),  # cookies know no ports, this does
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "http://here.test:8000.evil.test"}, 403),
        *rest(({"Origin": "http://here.test:8000@evil.test"}, 403)),
        ({"Origin": "null"}, 403),
        ({"Referer": "http://evil.test/", "Origin": "http://here.test:8000"}, 303),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://outside.test"}, 303),
        ({"Sec-Fetch-Site": "none"}, 403),
    ],
)
def test_where_a_browser_says_no_site_its_origin_counts(
    service: Service, headers: dict[str, str], status: int
) -> None:
    given = {"Host": "here.test:8000", **headers}
    client = service.client()
    answer = client.post("/console/sign-in", data={"key": service.key()}, headers=given)
    assert answer.status_code == status, answer.text
    assert ("set-cookie" in answer.headers) == (status == 303)
    signed = sign_in(service, service.key())
    out = signed.post("/console/sign-out", data={"csrf": csrf_of(signed)}, headers=given)
    assert out.status_code == status


@long_form
def test_a_real_browser_signs_in_over_plain_http(
    service: Service, visit: Callable[..., Any]
) -> None:
    """Under a name, for to a browser 127.0.0.1 is as good as TLS."""
    there = dataclasses.replace(service, url=service.url.replace("127.0.0.1", "rankwright.test"))
    window = visit(there)
    posts: list[Any] = []

    def note(request: Any) -> None:
        if request.method == "POST":
            posts.append(request)

    window.page.on("request", note)
    window.sign_in_by_form(service.key())
    window.page.get_by_role("button", name="Sign out").click()
    window.page.wait_for_url("**/console/sign-in")
    said = [post.all_headers() for post in posts]
    found = [(headers.get("sec-fetch-site"), headers.get("origin")) for headers in said]
    assert found == [(None, there.url)] * 2


@pytest.mark.parametrize("end", ["revoke", *rest("sign out", "expire")])
def test_a_stream_of_events_ends_with_its_session(
    service: Service, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(jobs, "PING_SECONDS", 3600.0)
    monkeypatch.setattr(jobs, "CHECK_SECONDS", 0.1)
    secret = service.key()
    api, client = service.client(secret), sign_in(service, secret)
    csrf = csrf_of(client)
    asked = {"dataset_id": service.upload(api), "algorithm": {"name": "rankboost"}}
    job_id = api.post("/v1/jobs", json=asked).json()["id"]
    with client.stream("GET", f"/console/jobs/{job_id}/events") as answer:
        lines = answer.iter_lines()
        assert next(lines) == "id: 1"
        match end:
            case "sign out":
                assert client.post("/console/sign-out", data={"csrf": csrf}).status_code == 303
            case "expire":
                with service.context.db.write() as session:
                    session.query(BrowserSession).update({"expires_at": 1.0})
            case "revoke":
                own = api.get("/v1/keys").json()["data"][0]
                service.context.db.writing(keys.revoke, own["owner"], own["id"])
        assert [
            line for line in lines if line.startswith("id: ")
        ] == []  # it ends, or this would not
    assert client.get("/console").status_code == 303
    assert service.client(service.key()).post(f"/v1/jobs/{job_id}/cancel").is_success


def test_pages_and_files_keep_the_policy(service: Service) -> None:
    client = sign_in(service, service.key())
    for path in ("/console", "/console/sign-in", "/docs"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "script-src 'self'" in policy
        assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", answer.text)
        for address in re.findall(r'(?:href|src)="(/(?:console|docs)/static/[^"]+)"', answer.text):
            file = client.get(address, headers={"Accept-Encoding": "gzip"})
            assert file.status_code == 200
            assert "immutable" in file.headers["cache-control"]
    assert client.get("/console/static/0/nothing.js").status_code == 404
    assert client.get("/console/static/0/console.css").headers["cache-control"] == "no-cache"


def test_no_page_opens_without_a_session(service: Service) -> None:
    routes = [
        (method, route.path)
        for route in service.app.routes
        if isinstance(route, Route) and route.path.startswith("/console")
        for method in route.methods or ()
        if method != "HEAD" and not route.path.startswith(OPEN)
    ]
    assert ("GET", "/console") in routes
    client = service.client()
    for method, path in routes:
        answer = client.request(method, re.sub(r"\{[^}]+\}", "x", path))
        assert answer.status_code == 303, (method, path)
        assert answer.headers["location"].startswith("/console/sign-in")


def test_each_page_writes_the_token_anew_and_takes_all_of_them(service: Service) -> None:
    client = sign_in(service, service.key())
    first, second = csrf_of(client), csrf_of(client)
    assert first[:64] != second[:64]
    assert first[64:] != second[64:]
    assert (
        client.post("/console/sign-out", data={"csrf": first[:64] + second[64:]}).status_code == 403
    )
    assert client.post("/console/sign-out", data={"csrf": first}).status_code == 303


def test_pages_and_documents_are_compressed_for_who_takes_it(service: Service) -> None:
    secret = service.key()
    client = sign_in(service, secret)
    client.headers["Accept-Encoding"] = "gzip, br"
    dataset_id = service.upload(service.client(secret))
    addresses = ["/console", "/console/datasets", f"/console/datasets/{dataset_id}/profile"]
    addresses += ["/openapi.json"] if LONG_FORM else []  # to make it takes seconds
    for path in addresses:
        answer = client.get(path)
        assert answer.headers["content-encoding"] == "gzip", path
        assert int(answer.headers["content-length"]) < 0.6 * len(answer.content), path
        for refusal in ("identity", "gzip;q=0, *", "br"):
            plain = client.get(path, headers={"Accept-Encoding": refusal})
            assert "content-encoding" not in plain.headers, (path, refusal)
            assert "accept-encoding" in plain.headers["vary"].lower()


def test_an_address_that_leads_nowhere_is_a_page_in_a_browser(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    client = service.client()
    for path in ("/nothing", "/v1/nothing", "/console/nothing/<b>", "/console/static/nothing"):
        answer = client.get(path, headers=browser)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"].startswith("text/html")
        assert 'href="/console"' in answer.text
        assert "<b>" not in answer.text
    # One that no route can take, too; and who is signed in has the navigation. The log has the reason of 500s alone.
    signed_in = PlainBrowser(service).client
    for path in ("/console/models/a%00b", "/console/jobs?x=%00", "/console/a%0A", "/console/nix"):
        for each in (client, signed_in):
            answer = each.get(path, headers=browser)
            assert answer.status_code == (404 if path.endswith("nix") else 400), path
            assert answer.headers["content-type"].startswith("text/html")
            assert 'href="/console"' in answer.text
            known = each is signed_in and path.endswith("nix")  # the others cost no question
            assert ('aria-label="Main"' in answer.text) == known, path
            assert "log has the details" not in answer.text
    answer = signed_in.get("/console/models?x=" + "x" * MAX_ADDRESS_BYTES)
    assert (answer.status_code, 'aria-label="Main"' in answer.text) == (414, False)

    async def away(*_: object) -> None:
        raise Unavailable("the database is away")

    monkeypatch.setattr(Authenticator, "look_up", away)
    for path, status in (("/console/nix", 404), ("/console/a%00", 400)):
        answer = signed_in.get(path, headers=browser)
        assert (answer.status_code, 'aria-label="Main"' in answer.text) == (status, False)
    monkeypatch.undo()
    # A form's address that is opened, or loaded again after signing in.
    answer = client.get("/console/train/check", headers=browser)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert 'href="/console"' in answer.text
    answer = client.post("/console")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.headers["content-type"].startswith("text/html")
    assert client.get("/console/nothing").headers["content-type"].startswith("text/html")
    # Programs are told as before.
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.5", "image/png"):
        answer = client.get("/nothing", headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/problem+json", accept


def test_what_is_vendored_is_as_it_came() -> None:
    listed = (STATIC / "VENDORED.md").read_text()
    found = list(STATIC.glob("*.min.js"))
    assert found
    for path in found:
        assert path.name in listed
        assert hashlib.sha256(path.read_bytes()).hexdigest() in listed
