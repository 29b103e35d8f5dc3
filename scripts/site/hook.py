"""What mkdocs calls (`hooks` of mkdocs.yml): pages from outside of docs/, generated sections, equations, links."""

from typing import Any, Callable, Dict

from mkdocs.structure.files import File, Files

from fairseq_milk.host.command_line import only_warnings
from scripts.site import commands, diagrams, equations, links, options, python_api

GENERATED: Dict[str, Callable[[], str]] = {
    "verbs": commands.verbs_page,
    "sweep-file": commands.sweep_file,
    "fairseq-options": options.options_page,
    "python-api": python_api.api_page,
}
PATHS = links.site_paths()
SOURCES = {path: source for source, path in PATHS.items()}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are not in docs/, and the pictures that pages show from elsewhere."""
    for source, path in PATHS.items():
        text = (links.ROOT / source).read_text(encoding="utf-8")
        if files.get_file_from_path(path) is None:
            files.append(File.generated(config, path, content=text))
        for link in links.links(text, source):
            if link.image and link.path and not link.path.startswith("docs/"):
                picture = links.image_path(link.path)
                if picture is not None and files.get_file_from_path(picture) is None:
                    files.append(File.generated(config, picture, abs_src_path=str(links.ROOT / link.path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    source = SOURCES[page.file.src_uri]
    for name, generate in GENERATED.items():
        marker = f"<!-- generated: {name} -->"
        if marker in markdown:
            markdown = markdown.replace(marker, generate())
            only_warnings()  # what is generated may have imported fairseq
    return diagrams.as_tables(equations.as_mathml(links.for_site(markdown, source, PATHS)))
