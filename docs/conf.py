"""How Sphinx makes the documentation a site: `scripts/docs`. The lists of `index.md` are its navigation."""

import re
from importlib.metadata import version as version_of

from sphinx.application import Sphinx

project = "Memoranda"
author = "the Memoranda authors"
copyright = author
version = release = version_of("memoranda")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
nitpicky = True

html_theme = "furo"
html_title = f"Memoranda {version}"
html_copy_source = html_show_sourcelink = html_show_sphinx = html_show_copyright = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
html_static_path = ["pictures"]
html_favicon = "../src/memoranda/server/console/icon.svg"
pygments_style, pygments_dark_style = "friendly", "monokai"


INCLUDED = {
    "README": "index",
    "javascript/README": "guides/javascript",
    "CONTRIBUTING": "contributing",
    "CHANGELOG": "changelog",
}
"""Pages of the repository that lie elsewhere, and where the site has them."""


def setup(app: Sphinx) -> None:
    app.connect("source-read", prepare)
    app.connect("include-read", lambda app, path, page, content: prepare(app, str(path), content))


def prepare(app: Sphinx, page: str, source: list[str]) -> None:
    """Append to the index a table of contents for each of its headings, with the pages of its list; in other pages lead
    links out of the folder to the pages of the site, and show the text of a diagram that only GitHub draws."""
    text = source[0]
    if page == "index":
        parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
        for heading, body in zip(parts[::2], parts[1::2], strict=True):
            pages = "\n".join(re.findall(r"^- \[.+?\]\((.+?)\.md\)", body, flags=re.MULTILINE))
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{pages}\n```\n"
    for place, included in INCLUDED.items():
        text = re.sub(rf"\]\((?:\.\./)+{place}\.md", f"](/{included}.md", text)
    source[0] = text.replace("```mermaid\n", "```text\n")
