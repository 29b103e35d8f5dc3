"""The configuration in a checkpoint: plain values, without interpolation, of limited size.

OmegaConf evaluates `${...}` each time a value is read: the value can change between two reads, and can contain
environment variables.  fairseq saves resolved configurations, so none is expected.
"""

from argparse import Namespace
from typing import Any, Dict

from ..console.errors import printable

DEEPEST = 12
MOST = 20_000  # largest number of values; fairseq has about 400
LONGEST = 20_000  # characters in a string
LARGEST = 2**63


class ConfigurationError(ValueError):
    """A fault of the configuration, as a phrase that follows the name of its file."""


def plain_configuration(cfg: Any) -> Dict[str, Any]:
    """The configuration as dictionaries, lists, numbers and strings; a Namespace becomes a dictionary."""
    if not isinstance(cfg, (dict, Namespace)):
        raise ConfigurationError(f"its configuration is a {type(cfg).__name__}")
    result: Dict[str, Any] = _Copier().copy(cfg, "", 0)
    return result


class _Copier:
    left = MOST  # values that may still be copied

    def copy(self, value: Any, key: str, depth: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise ConfigurationError(f"its configuration has more than {MOST} values")
        if depth > DEEPEST:
            raise ConfigurationError(f"its configuration is nested more than {DEEPEST} deep")
        if isinstance(value, Namespace):
            value = vars(value)
        if isinstance(value, dict):
            return {self._key(name): self.copy(item, f"{key}.{name}", depth + 1) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.copy(item, key, depth + 1) for item in value]
        return self._leaf(value, key.lstrip("."))

    def _key(self, name: Any) -> Any:
        if isinstance(name, str):
            return _text(name, "a name")
        if type(name) is int:
            return name
        raise ConfigurationError(f"its configuration has a {type(name).__name__} as a name")

    def _leaf(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return _text(value, key)
        if isinstance(value, int) and abs(value) >= LARGEST:
            raise ConfigurationError(f"its configuration has a number beyond all bounds ({key})")
        if value is None or isinstance(value, (bool, int, float)):
            return value
        raise ConfigurationError(f"its configuration has a {type(value).__name__} ({key})")


def _text(text: str, key: str) -> str:
    if len(text) > LONGEST:
        raise ConfigurationError(f"its configuration has a text of more than {LONGEST} characters")
    if "${" in text:
        raise ConfigurationError(f"its configuration has an interpolation, ${{...}} ({key})")
    one_line = text.replace("\n", "").replace("\t", "")
    if printable(one_line) != one_line:
        raise ConfigurationError(f"its configuration has control characters ({key!a})")
    return text
