"""Behind a path prefix: by the setting or by what a trusted proxy says, and behind a real nginx with TLS and HTTP/2."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from app.console import rendering
from app.http import openapi
from app.platform.settings import Settings
from tests.app.console.conftest import milliseconds
from tests.app.live_service import Service, table
from tests.long_form import long_form, one_in
from tests.waiting import eventually, patience

ROOT = "/apps/ranking"
SAID = {"X-Forwarded-Prefix": ROOT}
ADDRESS = re.compile(r'\s(?:href|src|action|formaction|hx-get|hx-post|data-\w+)="(/[^"]*)"')


@pytest.fixture(scope="module")
def plain(start: Callable[..., Service]) -> Service:
    return start(max_unknown_keys=1_000_000)


@pytest.fixture(scope="module")
def rooted(start: Callable[..., Service]) -> Service:
    return start(root_path=ROOT + "/")


def test_no_address_begins_at_the_root() -> None:
    templates = "\n".join(
        path.read_text() for path in (rendering.FOLDER / "templates").glob("*.html")
    )
    assert re.findall(r'="/[^"]*"', templates) == []
    assert "{{ static(" not in templates.replace("{{ root }}{{ static(", "")
    scripts = [
        *(rendering.FOLDER / "static").glob("*.js"),
        *openapi.EXAMPLES.parent.glob("static/*.js"),
    ]
    for path in scripts:
        if ".min." not in path.name:
            found = re.findall(r"""["'`]/(?:console|docs|v1|openapi)[^"'`]*""", path.read_text())
            assert found == [], path.name


@pytest.mark.parametrize(("by", "begin"), one_in(3, ("setting", "header"), ("", ROOT)))
def test_every_address_of_an_answer_has_the_prefix(
    plain: Service, rooted: Service, by: str, begin: str
) -> None:
    service, said = (rooted, {}) if by == "setting" else (plain, SAID)
    secret = service.key()
    client = service.client(**said)
    root = client.get(begin + "/")
    assert root.headers["location"] == f"{ROOT}/console"
    asked = client.get(f"{begin}/console")
    assert asked.headers["location"] == f"{ROOT}/console/sign-in?next=%2Fconsole"
    fragment = {"HX-Request": "true", "HX-Current-URL": f"http://x{ROOT}/console/jobs?a=1"}
    lost = client.get(f"{begin}/console", headers=fragment)
    assert lost.headers["hx-redirect"] == f"{ROOT}/console/sign-in?next=%2Fconsole%2Fjobs"
    fields = {"key": secret, "next": "/console/jobs"}
    signed = client.post(f"{begin}/console/sign-in", data=fields)
    assert signed.headers["location"] == f"{ROOT}/console/jobs"
    assert f"Path={ROOT}/console;" in signed.headers["set-cookie"]
    cookie = {"Cookie": signed.headers["set-cookie"].partition(";")[0]}
    for path in ("/console", "/console/train", "/console/datasets/new", "/docs"):
        page = client.get(begin + path, headers=cookie)
        assert page.status_code == 200
        addresses = ADDRESS.findall(page.text)
        assert [each for each in addresses if not each.startswith(ROOT + "/")] == []
    csrf = re.search(
        r'name="csrf" value="([0-9a-f]+)"', client.get("/console", headers=cookie).text
    )
    assert csrf is not None
    fields = {"csrf": csrf[1], "name": "shown once", "scopes": "read"}
    shown = client.post(f"{begin}/console/keys", data=fields, headers=cookie)
    assert shown.headers["location"] == f"{ROOT}/console/keys/made"
    assert f"Path={ROOT}/console/keys/made;" in shown.headers["set-cookie"]
    api = service.client(secret, **said)
    document = api.get(f"{begin}/openapi.json").json()
    assert document["servers"] == [{"url": ROOT}]
    made = api.post(
        f"{begin}/v1/datasets",
        params={"label": "left"},
        content=table().encode(),
        headers={"Content-Type": "text/csv"},
    )
    assert made.headers["location"] == f"{ROOT}/v1/datasets/{made.json()['id']}"
    service.work()
    assert api.get(f"{begin}/v1/nothing").json()["instance"] == f"{ROOT}/v1/nothing"
    # What looks like the prefix and is not.
    assert api.get(f"{ROOT}x/v1/jobs").status_code == 404
    assert api.get(f"{ROOT}{ROOT}/v1/jobs").status_code == 404
    assert api.get(f"{begin}/v1/datasets").status_code == 200


def test_without_a_prefix_nothing_is_said_of_one(plain: Service) -> None:
    (server,) = plain.client().get("/openapi.json").json()["servers"]
    assert ROOT not in server["url"]
    assert plain.client().get("/").headers["location"] == "/console"


BAD = (
    *("ranking", "//evil.example", "/a//b", "/..", "/a/../b", "/.", "http://evil.example", "/a b"),
    *(
        "/a?b",
        "/a#b",
        "/%2e%2e",
        "/a\\b",
        "/é",
        "/" + "a" * 200,
        "/v1",
        "/console/x",
        "/docs",
        "/a,/b",
    ),
)


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_prefix_is_refused(plain: Service, bad: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(root_path=bad)
    assert [error["loc"] for error in refused.value.errors()] == [("root_path",)]
    headers = {b"X-Forwarded-Prefix": bad.encode()}
    answer = plain.client().get("/", headers=headers)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("X-Forwarded-Prefix ")


def test_only_a_trusted_proxy_is_believed(
    plain: Service, rooted: Service, start: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"X-Forwarded-Prefix": "/other", "X-Forwarded-Host": "evil.example"}
    assert rooted.client().get("/", headers=other).headers["location"] == f"{ROOT}/console"
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.1")
    far = start()
    for headers in (other, {"X-Forwarded-Prefix": "//["}):
        assert far.client().get("/", headers=headers).headers["location"] == "/console"
    here = {"Origin": "http://rank.test", "X-Forwarded-Host": "rank.test"}
    for service, status in ((plain, 303), (far, 403)):
        fields = {"key": service.key()}
        answer = service.client().post("/console/sign-in", data=fields, headers=here)
        assert answer.status_code == status


# --- behind nginx --------------------------------------------------------------------------------

NGINX = """
{user}
daemon off;
pid nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  {temporary}
  server {{
    listen 127.0.0.1:{tls} ssl http2;
    ssl_certificate cert.pem;
    ssl_certificate_key key.pem;
    location {root}/ {{
      proxy_pass http://127.0.0.1:{upstream}{takes_off};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Prefix {says};
      proxy_request_buffering off;
      client_max_body_size 0;
    }}
  }}
}}
"""


def listens(port: int) -> bool:
    """Return True if something takes connections at this port."""
    try:
        socket.create_connection(("localhost", port), timeout=patience()).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module", params=["the proxy says it", "the setting says it"])
def proxied(
    request: pytest.FixtureRequest,
    plain: Service,
    rooted: Service,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Service, str]]:
    """A service, and its address behind nginx with TLS. CI must have it: `make browser` installs it."""
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None or shutil.which("openssl") is None:
        why = "there is no nginx, or no openssl: `make browser` installs them"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    said = "proxy" in request.param
    service = plain if said else rooted
    folder = tmp_path_factory.mktemp("nginx")
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", "key.pem", "-out", "cert.pem"]
    command = ["openssl", *made.split(), "-addext", "subjectAltName=DNS:localhost", *files]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    configuration = NGINX.format(
        user="user root;" if os.geteuid() == 0 else "",
        temporary=" ".join(f"{kind}_temp_path {kind};" for kind in kinds),
        tls=port,
        root=ROOT,
        upstream=service.url.rpartition(":")[2],
        takes_off="/" if said else "",
        says=ROOT if said else '""',
    )
    (folder / "nginx.conf").write_text(configuration)
    process = subprocess.Popen([nginx, "-p", str(folder), "-c", "nginx.conf"])
    try:
        eventually(lambda: listens(port))
        yield service, f"https://localhost:{port}{ROOT}"
    finally:
        process.terminate()
        process.wait()


@long_form
def test_the_service_behind_nginx(proxied: tuple[Service, str]) -> None:
    service, url = proxied
    secret = service.key()
    host = url.removesuffix(ROOT)
    with httpx.Client(verify=False, timeout=patience()) as client:
        signed = client.post(f"{url}/console/sign-in", data={"key": secret})
        assert signed.headers["location"] == f"{ROOT}/console"
        assert "Secure" in signed.headers["set-cookie"]
        home = client.get(f"{url}/console")
        found = re.search(r'name="csrf" value="([0-9a-f]+)"', home.text)
        assert found is not None
        # A table from the plain form, and events that come before the job has ended.
        sent = client.post(
            f"{url}/console/datasets",
            data={"csrf": found[1], "label": "left", "name": "proxied"},
            files={"file": ("a.csv", table().encode())},
        )
        assert sent.headers["location"].startswith(f"{ROOT}/console/datasets/ds_")
        dataset_id = sent.headers["location"].rpartition("/")[2]
        (job,) = service.client(secret).get("/v1/jobs?kind=ingest&state=queued").json()["data"]
        with client.stream("GET", f"{url}/console/jobs/{job['id']}/events") as events:
            lines = events.iter_lines()
            assert next(lines) == "id: 1"
            service.work()
            assert '"succeeded"' in "".join(lines)
        # Every page that a link leads to is there.
        api = service.client(secret)
        service.train(api, dataset_id)
        seen, waiting = set[str](), [f"{ROOT}/console", f"{ROOT}/docs"]
        while waiting and len(seen) < 60:
            path = waiting.pop(0)
            seen.add(path)
            page = client.get(host + path, follow_redirects=True)  # an address may lead to another
            assert page.status_code == 200, path
            assert page.url.path.startswith(ROOT), path
            if page.headers["content-type"].startswith("text/html") and "/profile" not in path:
                found_here = [each.replace("&amp;", "&") for each in ADDRESS.findall(page.text)]
                links = re.findall(r'\shref="(/[^"#]*)', page.text)
                assert [each for each in found_here if not each.startswith(ROOT + "/")] == []
                links = [each.replace("&amp;", "&") for each in links]
                waiting += [each for each in links if each not in seen and each not in waiting]
        assert len(seen) > 20
        assert client.get(f"{url}/openapi.json").json()["servers"] == [{"url": ROOT}]


@long_form  # what a browser asks for is what the pages link to
def test_a_browser_behind_nginx(proxied: tuple[Service, str], browser: Any) -> None:
    service, url = proxied
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(milliseconds())
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda each: complaints.append(each.text) if each.type == "error" else None)
    page.on("response", lambda each: complaints.append(each.url) if each.status >= 400 else None)
    page.goto(f"{url}/console")
    protocol = "performance.getEntriesByType('navigation')[0].nextHopProtocol"
    assert page.evaluate(protocol) == "h2"
    page.get_by_label("API key").fill(service.key("reader"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/console")
    page.goto(f"{url}/console/datasets/new")
    file = {"name": "people.csv", "mimeType": "text/csv", "buffer": table().encode()}
    page.locator("#file").set_input_files(file)
    page.locator("#f-label").fill("left")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url(re.compile(re.escape(f"{url}/console/datasets/ds_")))
    dataset_id = page.url.rpartition("/")[2]
    assert service.work() == 1
    stored = service.client(service.key("reader")).get(f"/v1/datasets/{dataset_id}").json()
    assert stored["status"] == "ready", stored
    page.get_by_role("link", name="Train on this").click()
    page.wait_for_url(re.compile(re.escape(f"{url}/console/train?")))
    page.goto(f"{url}/docs")
    page.locator("details.op").first.wait_for()
    assert complaints == []
    context.close()
