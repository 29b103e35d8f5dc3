"""YAML as people expect it: 1e-3 is a number, `no` is a word, and a key that is there twice is a mistake.

That is the core schema of YAML 1.2; PyYAML has 1.1, where a Norwegian system (`target-lang: no`) loses its language and
the learning rate 1e-3 is text.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from ..console.errors import UserError


class _Loader(yaml.SafeLoader):
    """Plain data only: no tag makes an object."""

    yaml_implicit_resolvers: Any = {}

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Here the keys are still those that were written; later `<<` has added others."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key in [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]:
            if key.value in seen:
                problem = f"the key '{key.value}' is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
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


def read_yaml(path: Path) -> Any:
    """What is in the file; UserError with file and line if it is not YAML."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text") from None
    except RecursionError:
        raise UserError(f"{path} is not the file of a sweep: it is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        said = [text for text in (getattr(error, "context", None), getattr(error, "problem", None)) if text]
        raise UserError(f"{path}{where}: {', '.join(said) or str(error).splitlines()[0]}") from None
    except ValueError as error:  # a number that Python does not take
        raise UserError(f"{path}: {error}") from None
