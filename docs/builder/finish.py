"""What Zensical has no option for: what the copy buttons copy, where the edit links lead, and what the search finds."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from typing import Any

from docs.builder.pages import MOVED, REPOSITORY

KEYWORDS = {
    "sign-in/": "SSO, single sign-on, OIDC, OpenID Connect, Okta, Entra ID, Keycloak, login",
    "roles/": "permissions, RBAC, access control, groups of users",
    "security/": "hardening, encryption, threat model",
    "erasure/": "GDPR, right to be forgotten, delete customer data, personal data, legal hold, retention",
    "siem/": "compliance, Splunk, Elastic, audit trail",
    "approval/": "four eyes, protected alias, sign-off, change management",
    "backup/": "restore, disaster recovery, upgrade, rollback, migrate",
    "deploy/": "install, Docker Compose, systemd, production",
    "docker-run/": "Docker, container, laptop, try it",
    "kubernetes/": "Helm, k8s, pods, probes",
    "tls/": "HTTPS, certificate, nginx, Caddy, Traefik, reverse proxy",
    "metrics/": "Prometheus, Grafana, SLO, alerts, observability",
    "tracing/": "OpenTelemetry, OTLP, Jaeger",
    "runbooks/": "troubleshooting, outage, incident, disk full, out of memory",
    "scale/": "performance, throughput, large data, horizontal scaling",
    "api/": "authentication, API key, pagination, idempotency, rate limit",
    "webhooks/": "notification, callback, signature",
    "feedback/": "drift, monitoring, outcomes, labels that come later, champion and challenger",
    "datasets/": "CSV, Parquet, upload data, missing values, target column",
    "sources/": "S3, GCS, Azure, database, import data, scheduled refresh",
    "top/": "threshold, operating point, decision rule",
    "report/": "threshold, model card, validation report",
    "reasons/": "adverse action, calibration, monotonic constraints, scorecard",
    "interpretation/": "explainability, SHAP, feature importance",
    "costs/": "fairness, bias, disparate impact, profit",
    "lists/": "learning to rank, NDCG, search relevance",
    "scoring/": "predict, inference, batch prediction, real time",
    "training/": "fit, hyperparameters, tuning, cross-validation",
    "clients/": "Python SDK, KServe, Seldon, MLflow, SageMaker",
    "is-it-for-me/": "compare, alternatives, LightGBM, XGBoost, SageMaker",
    "limits/": "quota, maximum size",
    "settings/": "configuration, environment variables",
}
"""Words under which readers look for a page that does not use them, by its address."""

LAST = (
    "reference/",
    "papers/",
    "statistics",
    "bounds/",
    "label-noise/",
    "benchmarks/",
    "architecture/",
    "changelog/",
    "contributing/",
)
"""What follows the guides where the search ranks two entries alike: the reference, research, and the project itself."""

_CODE = re.compile(r'(<div class="language-(\w+) highlight")(>.*?<code>(.*?)</code>)', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_EDIT = re.compile(r'\s*<a href="([^"]+)"[^>]*\brel="edit">.*?</a>', re.DOTALL)


# --- copy buttons ---------------------------------------------------------------------------------


def copied(text: str, language: str) -> str:
    """Return what a copy of a block of code has: of a transcript, the commands without prompts and output."""
    if text.startswith(">>> "):
        return "\n".join(_python(text))
    if "$ " in [line[:2] for line in text.splitlines()] and language in ("console", "text"):
        return "\n".join(_shell(text, "$ "))
    if text.startswith("# ") and language == "console":  # the prompt of root
        return "\n".join(_shell(text, "# "))
    return text


def _python(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith((">>> ", "... ")):
            yield line[4:]
        elif line in (">>>", "..."):
            yield ""


def _shell(text: str, prompt: str) -> Iterator[str]:
    command, end = "", ""
    for line in text.splitlines():
        if not command:
            if not line.startswith(prompt):
                continue
            command = line[2:]
            here = re.search(r"<<-?\s*['\"]?(\w+)", command)
            end = here[1] if here else ""
        else:
            command += "\n" + line
            if line.strip() == end:
                end = ""
        if not end and _is_complete(command):
            yield command
            command = ""
    if command:
        yield command


def _is_complete(command: str) -> bool:
    if command.endswith("\\"):
        return False
    if "<<" in command:
        return True
    try:
        shlex.split(command, comments=True)
    except ValueError:  # a quotation is open
        return False
    return True


def with_copies(text: str) -> str:
    """Return a page whose copy buttons copy the commands of transcripts alone."""

    def turn(found: re.Match[str]) -> str:
        shown = html.unescape(_TAG.sub("", found[4])).rstrip("\n")
        given = copied(shown, found[2])
        if given == shown:
            return found[0]
        value = html.escape(given).replace("\n", "&#10;")
        return f'{found[1]} data-copy="{value}"{found[3]}'

    return _CODE.sub(turn, text)


# --- links ----------------------------------------------------------------------------------------


def with_edit_link(text: str, address: str) -> str:
    """Return a page whose edit link leads to the file that it is made of; without one if the build has written it."""
    page = f"{address.rstrip('/') or 'index'}.md"
    source = {new: old for old, new in MOVED.items()}.get(page)

    def turn(found: re.Match[str]) -> str:
        if page.startswith("reference/"):
            return ""
        if source is None:
            return found[0]
        return found[0].replace(found[1], REPOSITORY.replace("/blob/", "/edit/") + source)

    return _EDIT.sub(turn, text)


def with_large_pictures(text: str) -> str:
    """Return a page whose screenshots are links to themselves: a phone shows them too small to read."""
    return re.sub(r'(<img [^>]*\bsrc="([^"]+\.png)"[^>]*>)(?!</a>)', r'<a href="\2">\1</a>', text)


def without_requests(text: str) -> str:
    """Return a page that does not ask GitHub how many stars the repository has."""
    return text.replace('class="md-source" data-md-component="source"', 'class="md-source"')


# --- search ---------------------------------------------------------------------------------------


def better_index(index: dict[str, Any]) -> dict[str, Any]:
    """Return the index of the search with keywords in the titles of pages, guides first, and no text twice."""
    items = [dict(each) for each in index["items"]]
    known: set[str] = set()
    guides = {
        each["title"]
        for each in items
        if each["level"] == 1 and not each["location"].startswith("reference/")
    }
    for item in items:
        if keywords := KEYWORDS.get(item["location"]):
            item["title"] = f"{item['title']} ({keywords})"
        if item["location"].startswith("reference/"):
            if (
                item["title"] in guides
            ):  # its path has the title again: it would come before the guide
                item["path"] = item["path"][:-1]
            text = re.sub(r"<pre>.*?</pre>", " ", item["text"], flags=re.DOTALL)
            text = " ".join(_TAG.sub(" ", text).split())
            item["text"] = "" if text in known else text
            known.add(text)
    items.sort(key=lambda each: each["location"].startswith(LAST))
    return {**index, "items": items}


def less_fuzzy(script: str) -> str:
    """Return the script of the search that allows no mistake in words of up to four letters, and one in up to seven.

    Without this, a word of three letters that no page has finds thousands of entries.
    """
    return re.sub(
        r"(function (\w+)\((\w+),(\w+),(\w+)=)2(\)\{if\(\3\.length<\4\.length\)return \2\()",
        r"\g<1>Math.min(\4.length,\3.length)<5?0:Math.min(\4.length,\3.length)<8?1:2\6",
        script,
    )
