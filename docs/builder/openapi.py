"""openapi.json, as the reference of HTTP needs it: which page has which route and which schema, and examples of all."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

Json = Mapping[str, Any]
HTTP = "reference/http/"
SHARED = f"{HTTP}types.md"
ALGORITHMS = f"{HTTP}algorithms.md"

PARTS = {
    "uploads": ("Multi-file uploads", "datasets", r"^/v1/uploads"),
    "dataset-profiles": ("Dataset profiles", "datasets", r"/(profile|preview)$"),
    "model-checks": ("Model checks and reports", "models", r"/(checks|baselines|plot|report)$"),
    "model-quality": (
        "Model quality",
        "models",
        r"/(metrics|roc|operating-points?|metric-estimates|gains|curves/\{kind\}|leaderboard"
        r"|out-of-fold|groups)$",
    ),
    "model-explanations": (
        "Model explanations",
        "models",
        r"/(importance|partial-dependence|variable-dependence|structure|scorecard(/cutoff|/rounding)?|bins|points|letters"
        r"|margins|bounds|reason-codes)$",
    ),
}
"""Further pages of a tag: title, the tag, and the paths of their routes. The tag's own page has its other routes."""

ORDER = """
score_rows score_row explain_rows rank_rows score_points write_letters preview_letters
create_batch_score list_batch_scores read_batch_score read_batch_score_result
upload_dataset list_datasets read_dataset preview_dataset profile_dataset validate_table delete_dataset
read_table_again validate_reading create_version list_versions validate_version refresh_dataset validate_refresh
open_upload put_part add_files close_upload list_uploads read_upload delete_upload
submit_job read_job list_jobs read_job_events cancel_job retry_job validate_job
list_models read_model read_artifact delete_model import_model
read_metrics read_roc read_checks read_operating_point read_operating_points read_gains read_list_curve
read_groups read_baselines read_metric_estimates read_report read_plot
read_importance read_partial_dependence read_variable_dependence read_structure read_scorecard
put_alias read_alias list_aliases preview_alias delete_alias restore_alias list_alias_revisions
put_alias_protection create_alias_request list_alias_requests read_alias_request approve_alias_request
create_evaluation read_evaluation list_evaluations
create_comparison read_comparison list_comparisons
put_feedback read_feedback create_decisions create_outcomes read_monitor list_alarms read_alarm acknowledge_alarm
read_shadow read_cohorts read_decision list_decision_files read_decision_file
create_erasure read_erasure list_erasures
list_trash restore_trash_item delete_trash_item
create_webhook ping_webhook list_webhooks read_webhook update_webhook delete_webhook
create_key list_keys read_key rotate_key revoke_key read_me
read_usage
"""
"""Operations in the order of their use, first on their page. The others follow, in the order of their paths."""

VALUES: Json = {
    "ref": "churn@champion",
    "name": "churn",
    "alias": "champion",
    "number": 1,
    "kind": "gains",
}
"""Parts of paths in the examples."""

QUERIES: Mapping[str, Json] = {
    "upload_dataset": {"name": "churn", "label": "left", "positive": "yes"},
    "validate_table": {"label": "left", "positive": "yes"},
    "append_rows": {},
    "open_upload": {"name": "churn", "label": "left", "positive": "yes"},
    "score_row": {"age": 41, "income": 52000, "contract": "two year"},
    "read_operating_point": {"fpr": 0.05},
    "read_evaluation_operating_point": {"fpr": 0.05},
    "create_batch_score": {},
}
"""Queries of the examples, of routes whose parameters are all optional but of little use without any."""


@dataclass(frozen=True)
class Route:
    """One operation."""

    method: str
    path: str
    operation: Json
    page: str

    @property
    def title(self) -> str:
        """`POST /v1/jobs`."""
        return f"{self.method.upper()} {self.path}"

    @property
    def anchor(self) -> str:
        """The operation's id."""
        return str(self.operation["operationId"])

    @property
    def answers(self) -> list[tuple[str, Json]]:
        """The responses that are no errors, by status."""
        return [(s, each) for s, each in self.operation["responses"].items() if s < "400"]


@dataclass(frozen=True)
class Api:
    """The description of the API."""

    root: Json

    @classmethod
    def read(cls, path: Path) -> Api:
        """Read the file."""
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @property
    def schemas(self) -> Json:
        """All schemas by name."""
        return self.root["components"]["schemas"]  # type: ignore[no-any-return]

    @property
    def host(self) -> str:
        """Address of the service in examples."""
        return str(self.root["servers"][0]["url"])

    @cached_property
    def routes(self) -> list[Route]:
        """All operations, in the order of their tags and pages, and then of their use."""
        tags = [tag["name"] for tag in self.root["tags"]]
        pages = [f"{HTTP}{name}.md" for name in PARTS]
        rank = {name: k for k, name in enumerate(ORDER.split())}
        order = {"post": 0, "get": 1, "put": 2, "patch": 3, "delete": 4}
        found = [
            Route(method, path, operation, _page_of(path, operation["tags"][0]))
            for path, methods in self.root["paths"].items()
            for method, operation in methods.items()
        ]
        return sorted(
            found,
            key=lambda each: (
                tags.index(each.operation["tags"][0]),
                pages.index(each.page) if each.page in pages else -1,
                rank.get(each.anchor, len(rank)),
                each.path,
                order[each.method],
            ),
        )

    @cached_property
    def pages(self) -> dict[str, tuple[str, str]]:
        """Title and description of each page with routes, in their order."""
        of_parts = {f"{HTTP}{name}.md": title for name, (title, *_) in PARTS.items()}
        found: dict[str, tuple[str, str]] = {}
        for tag in self.root["tags"]:
            for route in self.routes:
                if route.operation["tags"][0] == tag["name"]:
                    title = of_parts.get(route.page, tag["name"].capitalize())
                    found.setdefault(
                        route.page, (title, "" if route.page in of_parts else tag["description"])
                    )
        return found

    @cached_property
    def homes(self) -> dict[str, str]:
        """The page that describes each schema: that of most routes that use it, or of the schemas that have it."""
        direct: dict[str, Counter[str]] = {}
        for route in self.routes:
            for name in self.direct(route):
                direct.setdefault(name, Counter())[route.page] += 1
        homes = {name: pages.most_common(1)[0][0] for name, pages in direct.items()}
        parents: dict[str, set[str]] = {}
        for name, schema in self.schemas.items():
            for inner in references(schema):
                parents.setdefault(inner, set()).add(name)
        homes |= {name: ALGORITHMS for name in self.schemas if name.endswith("Algorithm")}
        changed = True
        while changed:
            changed = False
            for name in self.schemas.keys() - homes.keys():
                above = {homes.get(each) for each in parents.get(name, ()) if each != name}
                if above and None not in above:
                    homes[name] = str(above.pop()) if len(above) == 1 else SHARED
                    changed = True
        return {name: homes.get(name, SHARED) for name in self.schemas}

    @cached_property
    def requests(self) -> set[str]:
        """The names of the schemas of bodies that are JSON, or a form."""
        contents = [
            each.operation.get("requestBody", {}).get("content", {}) for each in self.routes
        ]
        schemas = [content["schema"] for each in contents for content in each.values()]
        return {name for each in schemas for name in references(each)}

    def direct(self, route: Route) -> list[str]:
        """Return the names of the schemas that a route has in its body and its answers."""
        bodies = [route.operation.get("requestBody", {}), *(each for _, each in route.answers)]
        found = [
            name
            for body in bodies
            for each in body.get("content", {}).values()
            for name in references(each)
        ]
        return [*dict.fromkeys(found)]

    def address(self, name: str) -> str:
        """Return the page and the anchor of a schema."""
        return f"{self.homes[name]}#{name}"

    # --- examples ---------------------------------------------------------------------------------

    @cached_property
    def pool(self) -> dict[str, list[Any]]:
        """The values that examples have, by the names of their members."""
        found: dict[str, list[Any]] = {}

        def collect(value: Any) -> None:
            if isinstance(value, dict):
                for name, each in value.items():
                    if each is not None:
                        found.setdefault(name, []).append(each)
                    collect(each)
            elif isinstance(value, list):
                for each in value:
                    collect(each)

        for schema in self.schemas.values():
            collect(schema.get("examples", []))
        return found

    def example_of(self, content: Json) -> Any:
        """Return an example of a body: its own, that of its schema, or one that is made of the schema's members."""
        own = [each["value"] for each in content.get("examples", {}).values()]
        if own or "example" in content:
            return own[0] if own else content["example"]
        return self.made(content["schema"])

    def made(self, schema: Json, depth: int = 0, name: str = "") -> Any:
        """Return an example of a schema."""
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        if schema.get("examples"):
            return schema["examples"][0]
        if "const" in schema or ("default" in schema and schema["default"] is not None):
            return schema.get("const", schema.get("default"))
        if "enum" in schema:
            return schema["enum"][0]
        for several in ("oneOf", "anyOf", "allOf"):
            if several in schema:
                kinds = [each for each in schema[several] if each.get("type") != "null"] or schema[
                    several
                ]
                return self.made(kinds[0], depth, name)
        kind = schema.get("type")
        kind = (
            next((each for each in kind if each != "null"), "null")
            if isinstance(kind, list)
            else kind
        )
        if kind == "object" and "properties" in schema:
            required = schema.get("required", [])
            return {
                each: self.made(inner, depth + 1, each)
                for each, inner in schema["properties"].items()
                if each in required and (depth < 5 or inner.get("type") != "array")
            }
        return self._known(name, kind, schema) if name else _plain(kind, schema, self, depth)

    def _known(self, name: str, kind: str | None, schema: Json) -> Any:
        types: dict[str, Any] = {
            "string": str,
            "integer": int,
            "number": (int, float),
            "boolean": bool,
            "array": list,
            "object": dict,
        }
        for value in self.pool.get(name, ()):
            if kind is None or isinstance(value, types.get(kind, object)):
                return value
        return _plain(kind, schema, self, 9)

    def curl(self, route: Route) -> str:
        """Return a complete request in the shell."""
        query: dict[str, Any] = {**QUERIES.get(route.anchor, {})}
        for each in route.operation.get("parameters", ()):
            if each["in"] == "query" and each.get("required") and each["name"] not in query:
                query[each["name"]] = self._value_of(each)
        address = self.host + re.sub(
            r"\{(\w+)\}", lambda found: self._segment(found[1], route), route.path
        )
        if query:
            pairs = [
                (n, each)
                for n, value in query.items()
                for each in (value if isinstance(value, list) else [value])
            ]
            address += "?" + "&".join(f"{n}={quote(str(each), safe=',:@')}" for n, each in pairs)
        method = route.method.upper()
        safe = re.fullmatch(r"[\w:/.@-]+", address)
        lines = [
            "curl "
            + (f"-X {method} " if method != "GET" else "")
            + (address if safe else f'"{address}"')
        ]
        if route.operation.get("security", self.root.get("security")):
            lines.append('  -H "Authorization: Bearer $RANKWRIGHT_API_KEY"')
        lines += self._sent(route)
        output = self._output(route)
        if output:
            lines.append(f"  --output {output}")
        return " \\\n".join(lines)

    def _sent(self, route: Route) -> Iterator[str]:
        content = route.operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            body = json_text(self.example_of(content["application/json"])).replace("'", "'\\''")
            yield '  -H "Content-Type: application/json"'
            yield f"  -d '{body}'"
        elif content:
            yield '  -H "Content-Type: text/csv"'
            yield "  --data-binary @" + (
                "pairs.csv" if route.path.endswith("/pairs") else "churn.csv"
            )

    def _output(self, route: Route) -> str:
        contents = [each.get("content", {}) for _, each in route.answers]
        media = [*contents[0]] if contents else []
        if not media or "application/json" in media:
            return ""
        kinds = {"octet-stream": "churn.rankwright", "parquet": "scores.parquet", "svg": "roc.svg"}
        return next((file for kind, file in kinds.items() if kind in media[0]), "")

    def _value_of(self, parameter: Json) -> Any:
        schema = parameter["schema"]
        if schema.get("examples"):
            return schema["examples"][0]
        known = {
            "metric": "average_precision",
            "model": "churn@champion",
        }
        return known.get(parameter["name"]) or self._known(parameter["name"], None, {})

    def _segment(self, name: str, route: Route) -> str:
        described: Json = next(
            (p for p in route.operation.get("parameters", ()) if p["name"] == name), {}
        )
        schema = described.get("schema", {})
        if "enum" in schema:
            return str(schema["enum"][0])
        if name == "name" and route.path.startswith("/v1/algorithms"):
            return "rankboost"
        if name == "ref" and described.get("description", "").startswith("Id of"):
            return str(self.pool["model_id"][0])
        if name == "item_id":
            return str(self.pool["model_id"][0])
        thing = "".join(part.capitalize() for part in name.removesuffix("_id").split("_"))
        examples = self.schemas.get(thing, {}).get("examples", [{}])
        found = (
            VALUES.get(name) or examples[0].get("id") or next(iter(self.pool.get(name, ())), None)
        )
        return str(found or _IDS.get(name, "…"))


_IDS = {
    "upload_id": "upl_0198f0c2a9d37c1e8a4b5c6d7e8f9012",
    "batch_score_id": "bsc_0198f0c2f3d47e5b8d6c7b8a9f0e1d2c",
    "comment_id": "cmt_0198f0c2f3d47e5b8d6c7b8a9f0e1d2d",
    "decision_id": "dec_0198f0c2a6d37c1e8a4b5c6d7e8f9012",
    "file_id": "seg_0198f0c2f3d47e5b8d6c7b8a9f0e1d2e",
    "alarm_id": "alm_0198f0c2b1e27d3f8a9b0c1d2e3f4a5b",
    "erasure_id": "era_0198f0c2a4d37c1e8a4b5c6d7e8f9012",
    "hold_id": "hld_0198f0c2a4d37c1e8a4b5c6d7e8f9014",
    "event_id": "evt_0198f0c2000e7c1e8a4b5c6d7e8f9012",
}
"""Ids of things that have no example of their own."""


def _page_of(path: str, tag: str) -> str:
    for name, (_, owner, pattern) in PARTS.items():
        if tag == owner and re.search(pattern, path):
            return f"{HTTP}{name}.md"
    return f"{HTTP}{tag}.md"


def _plain(kind: str | None, schema: Json, api: Api, depth: int) -> Any:
    if kind == "array":
        return [api.made(schema["items"], depth + 1)] if schema.get("items") and depth < 6 else []
    if schema.get("format") == "date-time":
        return "2026-01-31T12:00:00.000Z"
    low = schema.get("minimum", 0)
    return {"integer": int(low), "number": low, "boolean": True, "object": {}, "string": "…"}.get(
        str(kind)
    )


def references(value: Any) -> list[str]:
    """Return the names of the schemas that a part of the description refers to."""
    if isinstance(value, Mapping):
        found = (
            [str(value["$ref"]).rpartition("/")[2]]
            if "/schemas/" in str(value.get("$ref", ""))
            else []
        )
        return found + [
            name for key, each in value.items() if key != "examples" for name in references(each)
        ]
    if isinstance(value, list):
        return [name for each in value for name in references(each)]
    return []


def json_text(value: Any, indent: str = "") -> str:
    """Return JSON in which short lists and objects are on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(indent) + len(flat) <= 88:
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + json_text(each, inner) for each in value) + f"\n{indent}]"
    lines = (f"{inner}{json.dumps(name)}: {json_text(each, inner)}" for name, each in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
