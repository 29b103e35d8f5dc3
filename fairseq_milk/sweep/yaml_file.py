"""Reads YAML with the core schema of YAML 1.2, and refuses duplicate keys.

PyYAML implements YAML 1.1, in which `target-lang: no` is false and the learning rate 1e-3 is text.
"""

import re
from pathlib import Path
from typing import Any, Dict

import yaml

from ..console.errors import UserError
from ..console.files import read_bytes

LARGEST = 1 << 20  # bytes in a file
MOST = 100_000  # values in a file after aliases are expanded: a few lines of aliases can stand for billions


class _Loader(yaml.SafeLoader):
    """Loads plain data only: no tag creates an object."""

    yaml_implicit_resolvers: Any = {}

    def get_single_node(self) -> Any:
        node = super().get_single_node()
        if node is not None and _count(node, {}) > MOST:
            raise yaml.MarkedYAMLError(problem=f"it stands for more than {MOST} values", problem_mark=node.start_mark)
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Refuse duplicate keys; done here, before `<<` adds the keys of other mappings."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key in [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key '{key.value}' appears twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return node


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("int", r"[-+]?(0|[1-9][0-9]*)", [*"-+0123456789"]),
    ("float", r"[-+]?([0-9]+(?=[.eE])|(?=\.[0-9]))(\.[0-9]*)?([eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


def _count(node: Any, counted: Dict[int, int]) -> int:
    """The number of values of a node with its aliases expanded.  counted: numbers already known, by node id."""
    if id(node) in counted:
        if not counted[id(node)]:
            raise yaml.MarkedYAMLError(problem="it contains itself", problem_mark=node.start_mark)
        return counted[id(node)]
    counted[id(node)] = 0
    parts = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
    inside = 0 if isinstance(node, yaml.ScalarNode) else sum(_count(part, counted) for part in parts)
    counted[id(node)] = min(1 + inside, MOST + 1)
    return counted[id(node)]


def read_yaml(path: Path) -> Any:
    """The content of a YAML file; UserError with file and line if it is invalid or too large."""
    content = read_bytes(path, LARGEST + 1)
    if len(content) > LARGEST:
        raise UserError(f"{path} is not the file of a sweep: it has more than {LARGEST} bytes")
    try:
        return yaml.load(content.decode("utf-8"), _Loader)
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text") from None
    except RecursionError:
        raise UserError(f"{path} is not the file of a sweep: it is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        said = [text for text in (getattr(error, "context", None), getattr(error, "problem", None)) if text]
        raise UserError(f"{path}{where}: {', '.join(said) or str(error).splitlines()[0]}") from None
    except ValueError as error:  # a number that Python cannot parse
        raise UserError(f"{path}: {error}") from None
