"""The checks of the built site can fail, and what writes the reference says what its sources say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from docs.builder import checks
from docs.builder.bounds import schema_words, words_of
from docs.builder.commands import EXITS
from docs.builder.docstrings import Docstring
from docs.builder.finish import (
    better_index,
    copied,
    less_fuzzy,
    with_copies,
    with_edit_link,
    with_large_pictures,
)
from docs.builder.http import status_addresses
from docs.builder.markdown import relative
from docs.builder.names import Public
from docs.builder.navigation import configuration
from docs.builder.openapi import Api
from docs.builder.pages import Folders
from docs.builder.signatures import parameters_of, signature_text
from docs.builder.site import broken_links, read_page


def fit(n: Annotated[int, Ge(1), Doc("How many.")] = 3, *, kind: Literal["a", "b"] = "a") -> None:
    """Do it."""


# --- the checks -----------------------------------------------------------------------------------

ENTRY = """<article><h2 class="name" id="core.fit">core.fit</h2>
<div class="signature"><pre>core.fit(n: int = 3, *, kind: dict[str, int])</pre></div>
<pre>&gt;&gt;&gt; fit()</pre>
<h5 class="param" id="core.fit.n">n <span>core.fit</span></h5><p>How many.</p>
<h5 class="param" id="core.fit.kind">kind</h5><p>Which.</p></article>"""


@pytest.mark.parametrize(
    ("removed", "kind"),
    [
        ('id="core.fit"', "entry"),
        ('class="signature"', "signature"),
        ("&gt;&gt;&gt;", "example"),
        ("kind</h5>", "parameter"),
    ],
)
def test_a_public_name_lacks_something(removed: str, kind: str) -> None:
    public = Public("core.fit", fit, "reference/python/fit.md")

    def found(text: str) -> list[checks.Fault]:
        page = read_page("reference/python/fit/", text)
        return [*checks.public_names({page.path: page}, [public])]

    assert found(ENTRY) == []
    assert [fault[0] for fault in found(ENTRY.replace(removed, ""))] == [kind]


def test_a_page_that_is_too_large_and_a_mark_of_what_is_missing() -> None:
    text = (
        '<article><h1 id="x">X</h1><span class="gap" data-gap="parameter: f: x"></span></article>'
    )
    page = read_page("x/", text + "y" * checks.MAX_BYTES)
    assert [kind for kind, _ in checks.sizes({"x/": page})] == ["size"]
    assert [*checks.marks({"x/": page})] == [("parameter", "f: x (x/)")]


def test_a_heading_with_a_module_that_is_not_public() -> None:
    text = (
        "<article><h2>core.boosting.rankboost.RankBoost</h2><h2>core.RankBoost.fit</h2></article>"
    )
    page = read_page("reference/x/", text)
    faults = [*checks.headings({page.path: page}, ["core", "core.RankBoost"])]
    assert len(faults) == 1
    assert "core.boosting" in faults[0][1]


@dataclass
class Described:
    """A command, as far as the check reads it."""

    name: str = "rankwright go"
    page: str = "reference/commands/x.md"
    anchor: str = "go"
    parameters: list[Any] = field(default_factory=list)
    item: Any = None
    context: Any = None


class Item:
    def get_params(self, _: Any) -> list[Any]:
        return [type("Option", (), {"opts": ["--gate"], "hidden": True})]


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("<pre>rankwright go</pre><pre>$ rankwright go</pre>", []),
        ("<pre>$ rankwright go</pre>", []),
        ("<pre>rankwright go</pre>", ["example of a command"]),
        ("", ["usage", "example of a command"]),
        ("<pre>$ rankwright go</pre><h5>--gate</h5>", ["private option"]),
    ],
)
def test_a_command_lacks_something_or_shows_a_private_option(
    body: str, kinds: Sequence[str]
) -> None:
    page = read_page("reference/commands/x/", f'<article><h2 id="go">go</h2>{body}</article>')
    command: Any = Described(item=Item())
    assert [kind for kind, _ in checks.commands({page.path: page}, [command])] == kinds


def test_an_example_of_a_command_with_an_unknown_option() -> None:
    command: Any = Described(item=Item())
    examples = {
        "rankwright go": ["rankwright go --nowhere x"],
        "rankwright come": ["rankwright come"],
    }
    assert len([*checks.examples_of_commands([command], examples)]) == 2


API = Api(
    {
        "servers": [{"url": "http://127.0.0.1:8000"}],
        "security": [{"key": []}],
        "tags": [{"name": "jobs", "description": "Jobs."}],
        "paths": {
            "/v1/jobs/{job_id}": {
                "get": {
                    "tags": ["jobs"],
                    "operationId": "read_job",
                    "summary": "Read a job",
                    "parameters": [{"name": "job_id", "in": "path", "schema": {"type": "string"}}],
                    "responses": {
                        "200": {
                            "description": "The job.",
                            "content": {
                                "application/json": {"schema": {"$ref": "#/components/schemas/Job"}}
                            },
                        }
                    },
                }
            }
        },
        "components": {
            "schemas": {
                "Job": {"type": "object", "examples": [{"id": "job_1", "n": 2}]},
                "Part": {
                    "type": "object",
                    "required": ["id", "rows"],
                    "properties": {
                        "id": {"type": "string"},
                        "rows": {"type": "integer", "minimum": 1},
                    },
                },
            }
        },
    }
)


def test_a_route_lacks_something() -> None:
    (route,) = API.routes
    request = API.curl(route)
    assert request.startswith("curl http://127.0.0.1:8000/v1/jobs/")
    assert "Authorization: Bearer $RANKWRIGHT_API_KEY" in request
    good = (
        '<article><h2 id="read_job">GET</h2><pre>curl http://127.0.0.1:8000/v1/jobs/j -H "Authorization: Bearer x"'
        '</pre><h5 id="read_job.job_id">job_id</h5><pre>{"id": 1}</pre></article>'
    )

    def kinds(text: str) -> list[str]:
        page = read_page("reference/http/jobs/", text)
        return [kind for kind, _ in checks.routes({page.path: page}, API)]

    assert kinds(good) == []
    assert kinds(good.replace("read_job", "other")) == ["entry"]
    assert kinds(good.replace("http://127", "http://1")) == ["curl"]
    assert kinds(good.replace("Authorization", "Accept")) == ["curl"]
    assert kinds(good.replace("/jobs/j", "/jobs/…")) == ["curl"]
    assert kinds(good.replace('{"id": 1}', "")) == ["example of a response"]
    assert kinds(good.replace("read_job.job_id", "x")) == ["entry"]
    assert {kind for kind, _ in checks.objects({}, API)} == {"entry"}


def test_an_example_is_made_where_none_is_written() -> None:
    assert API.made({"$ref": "#/components/schemas/Part"}) == {"id": "job_1", "rows": 1}


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("here")
    repository = "https://example.org/blob/main/"
    links = (
        "../b/#there",
        "../b/#gone",
        "../c/",
        "#own",
        f"{repository}README.md",
        f"{repository}GONE.md",
    )
    text = "".join(f'<a href="{link}">x</a>' for link in links)
    pages = {
        "a/": read_page("a/", f'<article><h1 id="own">A</h1>{text}</article>'),
        "b/": read_page("b/", '<article><h1 id="there">B</h1></article>'),
    }
    found = [*broken_links(pages, tmp_path, tmp_path, repository)]
    assert len(found) == 3
    assert all(any(part in each for each in found) for part in ("#gone", "../c/", "GONE.md"))


def test_an_entry_that_the_search_does_not_find(tmp_path: Path) -> None:
    items = [
        {"location": "a/#x", "title": "<code>n_rounds</code> core.A"},
        {"location": "b/", "title": "B"},
    ]
    (tmp_path / "search.json").write_text(json.dumps({"items": items}))
    query = checks.Query("n_rounds", "n_rounds")

    def faults(locations: list[str]) -> list[checks.Fault]:
        return [*checks.search(tmp_path, [query], lambda *_: {"n_rounds": locations})]

    assert faults(["a/#x", "b/"]) == []
    assert [kind for kind, _ in faults(["b/", "a/#x"])] == ["search"]
    assert [kind for kind, _ in faults([])] == ["search"]


def test_pages_outside_the_navigation_and_entries_without_a_page() -> None:
    pages = {each: read_page(each, "") for each in ("", "a/", "b/", "c/d/")}
    faults = [*checks.navigation(pages, ["index.md", "a.md", "gone.md", "c/*"])]
    assert [sentence.split()[0] for _, sentence in faults] == ["gone.md", "no"]


# --- what writes the reference --------------------------------------------------------------------


def test_bounds_in_words() -> None:
    assert words_of(Annotated[int, Ge(1), Le(2000)]) == "`int` (1 to 2,000)"
    assert (
        words_of(Annotated[float | None, Gt(0), Le(1)])
        == "`float` (above 0 and at most 1) or `None`"
    )

    def words(**schema: Any) -> str:
        return schema_words(schema, str)

    assert words(type="string", minLength=1, maxLength=255) == "string (1–255 characters)"
    assert words(type="integer", minimum=1) == "integer (1 or more)"
    assert (
        words(type="array", items={"type": "number"}, maxItems=100)
        == "list of number (at most 100 items)"
    )
    assert words(anyOf=[{"$ref": "#/components/schemas/Job"}, {"type": "null"}]) == "Job or null"


def test_a_parameter_is_described_by_its_annotation() -> None:
    first, second = parameters_of(fit)
    assert (first.kind, first.default, first.text) == ("`int` (1 or more)", "3", "How many.")
    assert second.text == ""
    text = signature_text("fit", [first, second], "None")
    assert text == 'fit(n: int = 3, *, kind: Literal["a", "b"] = "a") -> None'


def test_a_docstring_is_taken_apart() -> None:
    parts = Docstring.of(
        """Do it.

        More.

        Parameters
        ----------
        x, y : array
            The rows.
        **options
            Others.

        Examples
        --------
        >>> fit()
        """
    )
    assert parts.text == "Do it.\n\nMore."
    described = parts.described("Parameters")
    assert [*described] == ["x", "y", "options"]
    assert described["y"].text == "The rows."
    assert parts.sections["Examples"] == ">>> fit()"


def test_a_status_leads_to_its_error_codes() -> None:
    page = "# Errors\n\n## 401 and 403 Keys, sessions\n\n### `x`\n\n## 422 A\n\n## 422 B\n"
    found = status_addresses(page)
    assert found["403"] == "errors.md#401-and-403-keys-sessions"
    assert found["422"] == "errors.md#422-a"


def test_the_navigation_has_the_pages_that_exist(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "index.md").write_text("# Home")
    (tmp_path / "r" / "index.md").write_text("# All")
    (tmp_path / "r" / "one.md").write_text("# `core.One` {#core.One .name}\n")
    lines = ["[project]", "nav = [", '  { "Home" = "index.md" },', '  { "Gone" = "gone.md" },']
    lines += ['  { "R" = [{ "*" = "r/*" }] },', "]", ""]
    written = configuration("\n".join(lines), tmp_path)
    assert 'nav = [{ "Home" = "index.md" }, { "R" = [{ "One" = "r/one.md" }] }]' in written


def test_links_between_pages(tmp_path: Path) -> None:
    assert relative("reference/http/jobs.md", "reference/python/index.md") == "../http/jobs.md"
    target, root = tmp_path / "build" / "site", tmp_path
    for page in ("build/site/a.md", "build/site/t/b.md", "docs/a.md", "docs/t/b.md", "core/x.py"):
        (root / page).parent.mkdir(parents=True, exist_ok=True)
        (root / page).write_text("")
    folders = Folders(root, target)
    text = "[a](../a.md#x) [r](../../README.md) [c](../../core/x.py) [w](https://example.org)"
    turned = folders.with_links(target / "t" / "b.md", text)
    assert "[a](../a.md#x) [r](../index.md) [c](https://github.com/" in turned
    assert turned.endswith("core/x.py) [w](https://example.org)")


def test_the_exit_codes_are_those_of_the_client() -> None:
    from rankwright.cli.common import Exit

    assert {0, *map(int, Exit), 130} == EXITS.keys()


# --- what is completed after the build ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("$ rankwright doctor\nAll is well.\n$ ls", "console", "rankwright doctor\nls"),
        ("$ curl x \\\n    -d 'a\nb'\n{}", "console", "curl x \\\n    -d 'a\nb'"),
        ("$ tee f <<END\na: 1\nEND\nout", "console", "tee f <<END\na: 1\nEND"),
        ("# useradd x\nout\n# ls", "console", "useradd x\nls"),
        ("# a comment\nls", "bash", "# a comment\nls"),
        ("Then:\n$ ls\nout", "text", "ls"),
        (">>> f(\n...     1)\n2\n>>> g()", "pycon", "f(\n    1)\ng()"),
        ("f(1)", "python", "f(1)"),
    ],
)
def test_a_copy_has_the_commands_of_a_transcript(text: str, language: str, expected: str) -> None:
    assert copied(text, language) == expected


def test_the_copy_is_written_beside_the_code() -> None:
    shown = (
        '<div class="language-console highlight"><pre><code><span>$ </span>echo "a" &amp;&amp; b\na'
        "</code></pre></div>"
    )
    assert ' data-copy="echo &quot;a&quot; &amp;&amp; b"><pre>' in with_copies(shown)
    plain = shown.replace("console", "python").replace("$ ", "")
    assert with_copies(plain) == plain


def test_an_edit_link_leads_to_the_source_of_a_page() -> None:
    link = '<h1>x</h1> <a href="https://github.com/o/r/edit/main/docs/index.md" title="x" rel="edit"><svg></svg></a>'
    assert with_edit_link(link, "top/") == link
    assert 'href="https://github.com/rankwright/rankwright/edit/main/README.md"' in with_edit_link(
        link, ""
    )
    assert with_edit_link(link, "reference/http/jobs/") == "<h1>x</h1>"


def test_a_screenshot_is_a_link_to_itself() -> None:
    assert with_large_pictures('<p><img alt="a" src="a.png" /></p>') == (
        '<p><a href="a.png"><img alt="a" src="a.png" /></a></p>'
    )


def test_the_index_has_keywords_guides_first_and_no_text_twice() -> None:
    def item(location: str, text: str = "", title: str = "A") -> dict[str, Any]:
        return {"location": location, "title": title, "text": text, "level": 1, "path": ["P", "A"]}

    long = "<p>once</p><pre>code</pre>"
    given = [item("reference/a/", long), item("reference/b/", long), item("sign-in/", title="B")]
    sign_in, first, second = better_index({"items": given})["items"]
    assert sign_in["title"].startswith("B (SSO, ")
    assert (first["text"], second["text"]) == ("once", "")


def test_the_search_allows_fewer_mistakes_in_short_words() -> None:
    script = "x;function dt(t,r,e=2){if(t.length<r.length)return dt(r,t,e);}"
    assert "e=Math.min(r.length,t.length)<5?0:" in less_fuzzy(script)
