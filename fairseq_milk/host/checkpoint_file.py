"""Reads a checkpoint file once, verifies its checksums, and loads it as plain data."""

import argparse
import contextlib
import io
import pickle
import re
import struct
import zipfile
from typing import Any, Dict, Iterator, List

import torch

from ..console.errors import UserError, first_line
from ..console.files import read_bytes
from . import pickled_arrays
from .plain_data import NotPlainError, plain

ZIP = b"PK\x03\x04"
FOLDER = 0x10  # attribute of a record: MS-DOS directory, which torch does not read
# end records of ZIP and ZIP64: marker, size and offset of the directory; locator: marker, offset of the ZIP64 record
END, END_MARKER = struct.Struct("<4s8xII2x"), b"PK\x05\x06"
END64, END64_MARKER = struct.Struct("<4s36xQQ"), b"PK\x06\x06"
LOCATOR, LOCATOR_MARKER = struct.Struct("<4s4xQ4x"), b"PK\x06\x07"
LARGE = 2**32 - 1  # in the ZIP record: the value is in the ZIP64 record
TAR = (257, b"ustar")  # offset and magic of torch's oldest format, a tar file
# Allowed in addition to torch's own types: the options of models without a dataclass, and stand-ins for numpy's arrays.
ALLOWED: Dict[str, Any] = {"argparse.Namespace": argparse.Namespace, **pickled_arrays.NAMES}
TORCH = {  # the types of torch, for versions without `safe_globals`
    "collections.OrderedDict",
    "_codecs.encode",
    "torch.Size",
    "torch.device",
    *(f"torch._utils.{name}" for name in ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter")),
}
HAS_ALLOW_LIST = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 6)


def read_checkpoint(path: str) -> Dict[str, Any]:
    """The state in a local file as plain data; UserError if it is not a complete and undamaged checkpoint."""
    content = read_bytes(path)
    if not content:
        raise UserError(f"{path} is empty: it is no checkpoint")
    try:
        verify_checksums(content)
        state = plain(load_data(content))
    except NotPlainError as error:
        raise UserError(f"{path} is refused: {error}") from error
    except Exception as error:  # torch, pickle and zipfile raise many types
        code = re.search(r"GLOBAL (\S+)", str(error))
        if code is not None:
            raise UserError(f"{path} is refused: it holds {code.group(1)}, which may run code") from error
        raise UserError(f"{path} is no checkpoint, or only a part of one: {_reason(error)}") from error
    if not isinstance(state, dict) or not _has_names(state.get("model")):
        raise UserError(f"{path} is no checkpoint of fairseq-train: it has no parameters")
    if state.get("cfg") is None and state.get("args") is None:
        raise UserError(f"{path} is no checkpoint of fairseq-train: it has no configuration")
    return state


def _reason(error: Exception) -> str:
    """The first line of the message, without torch's advice to load the file without `weights_only`."""
    advice, mark, said = str(error).partition("WeightsUnpickler error:")
    return said.strip().partition("\n")[0] if mark else first_line(error)


def _has_names(parameters: Any) -> bool:
    return isinstance(parameters, dict) and all(isinstance(name, str) for name in parameters)


def verify_checksums(content: bytes) -> None:
    """Raise a ValueError if an archive is damaged, or could be read differently by another program.

    torch writes a checksum per record but does not verify it.  Records are not compressed, so their total size is at
    most that of the file.  Files from before torch 1.6 are not archives and have no checksums.
    """
    if not content.startswith(ZIP):
        if content[TAR[0] :].startswith(TAR[1]):
            raise ValueError("it is a tar file")
        return
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        records = archive.infolist()
        names = {record.filename for record in records}
        size = sum(record.file_size for record in records)
        stored = all(record.compress_type == zipfile.ZIP_STORED and not record.flag_bits & 1 for record in records)
        folders = any(record.external_attr & FOLDER or record.is_dir() for record in records)
        if len(names) < len(records) or size > len(content) or not stored or folders or archive.comment:
            raise ValueError("its records are not as torch writes them")
        if not _has_one_directory(content, archive.start_dir):
            raise ValueError("its directory is not where torch writes it")
        damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"its record {damaged} is damaged")


def _has_one_directory(content: bytes, start: int) -> bool:
    """Whether every pointer to the directory of an archive leads to the one at `start`, at the end of the file.

    zipfile and torch follow different pointers: a file could show one directory to each.
    """
    end = len(content) - END.size
    marker, size, offset = END.unpack_from(content, end)
    if content[end - LOCATOR.size : end].startswith(LOCATOR_MARKER):
        _, end64 = LOCATOR.unpack_from(content, end - LOCATOR.size)
        if end64 != end - LOCATOR.size - END64.size:
            return False
        marker64, size64, offset64 = END64.unpack_from(content, end64)
        if marker64 != END64_MARKER or size not in (size64, LARGE) or offset not in (offset64, LARGE):
            return False
        end, size, offset = end64, size64, offset64
    return bool(marker == END_MARKER) and (size, offset) == (end - start, start)


def load_data(content: bytes) -> Any:
    """The saved object if it contains only data, regardless of the version of torch and environment variables."""
    if not HAS_ALLOW_LIST:
        return load_with_data_pickle(content)
    with _only_allowed():
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


@contextlib.contextmanager
def _only_allowed() -> Iterator[None]:
    """Allow exactly `ALLOWED` during the block, not what other libraries have allowed."""
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    allowed: List[Any] = [(thing, name) for name, thing in ALLOWED.items()]
    torch.serialization.add_safe_globals(allowed)
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


_PythonUnpickler: Any = vars(pickle)["_Unpickler"]  # the implementation in Python, whose methods can be replaced


class DataPickle:
    """Python's pickle restricted to the same names, for older versions of torch."""

    class Unpickler(_PythonUnpickler):
        dispatch = dict(_PythonUnpickler.dispatch)

        def find_class(self, module: str, name: str) -> Any:
            full = f"{module}.{name}"
            if full in ALLOWED:
                return ALLOWED[full]
            if full not in TORCH:
                raise pickle.UnpicklingError(f"unsupported GLOBAL {full}")
            return super().find_class(module, name)

        def load_build(self) -> None:
            """Set the state of an object; classes and functions are refused."""
            if callable(self.stack[-2]):
                raise pickle.UnpicklingError("state for something that is not an object")
            super().load_build()

        dispatch[pickle.BUILD[0]] = load_build

    @classmethod
    def load(cls, file: Any, **options: Any) -> Any:
        return cls.Unpickler(file, **options).load()


def load_with_data_pickle(content: bytes) -> Any:
    """The two halves of an older `torch.load`, called one by one: the whole would run an archive of TorchScript."""
    torch_files, file = torch.serialization, io.BytesIO(content)
    if not torch_files._is_zipfile(file):
        return torch_files._legacy_load(file, "cpu", DataPickle, encoding="utf-8")  # type: ignore[no-untyped-call]
    with torch_files._open_zipfile_reader(file) as records:
        return torch_files._load(records, "cpu", DataPickle, encoding="utf-8")  # type: ignore[no-untyped-call]
