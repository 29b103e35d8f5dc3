"""Where the pages of the site come from, and their links.

Markdown in this repository links to files by relative paths, as GitHub shows them.  In the site some of those files are
pages, under paths of their own, and the others are not there.
"""

import os
import re
from pathlib import Path
from typing import Callable, Dict, Iterator, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs"
# Pages of the site that are not in docs/: their paths in the repository, and in the site.
OUTSIDE = {
    "BENCHMARKS.md": "explanation/benchmarks.md",
    "RELIABILITY.md": "explanation/reliability.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
EXAMPLES = ("README.md", "RESULTS.md")
IMAGES = (".png", ".svg")

FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)


class Link(NamedTuple):
    image: bool
    label: str
    path: str  # in the repository, from its root; empty for a link that leads out of it
    anchor: str
    url: str  # as it is written


def site_paths(root: Path = ROOT) -> Dict[str, str]:
    """The path in the site of every page, by its path in the repository."""
    paths = {page.relative_to(root).as_posix() for page in (root / DOCS).rglob("*.md")}
    found = {path: path[len(DOCS) + 1 :] for path in sorted(paths)}
    found.update(OUTSIDE)
    for name in EXAMPLES:
        for page in sorted([*(root / "examples").glob(name), *(root / "examples").glob(f"*/{name}")]):
            path = page.relative_to(root).as_posix()
            found[path] = path.replace("README.md", "index.md").replace("RESULTS.md", "results.md")
    return found


def without_code(text: str) -> str:
    """The same text with code as blanks, so that positions stay."""
    for pattern in (FENCE, CODE):
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    return text


def replace_links(text: str, page: str, replacement: Callable[[Link, str], str]) -> str:
    """The text of a page with each of its links replaced.  page: its path in the repository."""
    plain = without_code(text)
    parts, end = [], 0
    for match in LINK.finditer(plain):
        url = match.group(3)
        label = text[match.start(2) : match.end(2)]
        nested = replace_links(label, page, replacement)
        link = make_link(bool(match.group(1)), nested, url, page)
        parts += [text[end : match.start()], replacement(link, text[match.start() : match.end()])]
        end = match.end()
    return "".join([*parts, text[end:]])


def make_link(image: bool, label: str, url: str, page: str) -> Link:
    target, _, anchor = url.partition("#")
    if re.match(r"[a-z]+:", target):
        return Link(image, label, "", "", url)
    path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
    return Link(image, label, path, anchor, url)


def links(text: str, page: str) -> Iterator[Link]:
    found = []
    replace_links(text, page, lambda link, written: found.append(link) or written)  # type: ignore[func-returns-value]
    return iter(found)


def for_site(text: str, page: str, paths: Dict[str, str]) -> str:
    """The text of a page with links to the pages of the site; a link to any other file becomes its label."""
    here = os.path.dirname(paths[page])

    def replacement(link: Link, written: str) -> str:
        if not link.path:
            return written
        path = paths.get(link.path) or paths.get(f"{link.path}/README.md") or image_path(link.path)
        if path is None:
            return link.label
        anchor = f"#{link.anchor}" if link.anchor else ""
        return f"{'!' if link.image else ''}[{link.label}]({os.path.relpath(path, here or '.')}{anchor})"

    return replace_links(text, page, replacement)


def image_path(path: str) -> "str | None":
    """The path of a picture in the site, wherever it is in the repository."""
    if not path.endswith(IMAGES):
        return None
    return path[len(DOCS) + 1 :] if path.startswith(f"{DOCS}/") else path


def anchors(text: str) -> Iterator[str]:
    """What links can point to within a page, as GitHub and the site name it."""
    for heading in HEADING.findall(FENCE.sub("", text)):
        plain = LINK.sub(r"\2", heading).replace("`", "").strip().lower()
        yield re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain))
