"""The pages that people write: those of docs/, the README and others of the repository, and the notebook."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]
REPOSITORY = "https://github.com/rankwright/rankwright/blob/main/"
"""Where a page links to that names a file of the repository which is no page."""

MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/notebook.ipynb": "tutorials/notebook.md",
}
"""Files of the repository that are pages of the site."""

_LINK = re.compile(r"(\]\()([^)\s]+)(\))")


@dataclass(frozen=True)
class Folders:
    """Where pages come from, and where they go."""

    root: Path
    """The repository."""
    target: Path

    def with_links(self, path: Path, text: str) -> str:
        """Return a page whose links lead to pages of the site, and to the repository for what is no page."""
        written = {self.target / new: self.root / old for old, new in MOVED.items()}
        source = written.get(path, self.root / "docs" / path.relative_to(self.target)).parent
        up = "../" * (len(path.relative_to(self.target).parts) - 1)

        def turn(link: re.Match[str]) -> str:
            address, _, anchor = link[2].partition("#")
            if not address or "://" in address or address.startswith("mailto:"):
                return link[0]
            if (path.parent / address).is_file():  # written beside the page
                return link[0]
            found = (source / address).resolve()
            if not found.is_relative_to(self.root):
                return link[0]
            inside = found.relative_to(self.root)
            end = f"#{anchor}" if anchor else ""
            if str(inside) in MOVED:
                return f"{link[1]}{up}{MOVED[str(inside)]}{end}{link[3]}"
            page = Path(*inside.parts[1:])
            if (
                inside.parts[:1] == ("docs",)
                and page.suffix != ".py"
                and (self.target / page).is_file()
            ):
                return f"{link[1]}{up}{page}{end}{link[3]}"
            return f"{link[1]}{REPOSITORY}{inside}{end}{link[3]}"

        return _LINK.sub(turn, text)

    def notebook(self) -> Iterator[str]:
        """Yield the cells of the notebook and their outputs; write its pictures beside the page."""
        notebook = json.loads(
            (self.root / "examples" / "notebook.ipynb").read_text(encoding="utf-8")
        )
        caption = ""
        for cell in notebook["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                caption = text.rpartition("\n")[2].partition(". ")[0].rstrip(".")
                yield text
                continue
            yield f"```python\n{text}\n```"
            for output in cell["outputs"]:
                yield self._output(output, f"notebook-{cell['execution_count']}.png", caption)
        yield f"This page is [a notebook]({REPOSITORY}examples/notebook.ipynb)."

    def _output(self, output: Json, picture: str, caption: str) -> str:
        data = output.get("data", {})
        if "image/png" in data:
            (self.target / "tutorials" / picture).write_bytes(base64.b64decode(data["image/png"]))
            return f"![{caption}]({picture})"
        if "text/html" in data:
            table = _STYLE.sub(r"\1", "".join(data["text/html"]))
            return "".join(line.strip() for line in table.splitlines())
        return f"```text\n{''.join(data.get('text/plain') or output['text']).rstrip()}\n```"


_STYLE = re.compile(r"<style.*?</style>|(<(?:table|tr)) [^>]*", re.DOTALL)
"""How pandas has its tables look: the site has its own way."""
