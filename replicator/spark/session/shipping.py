"""``--ship``: what tasks need beside Spark, packed on the driver and unpacked by every executor.

The installed distributions travel as they are, compiled parts included: executors need only a Python of the
same version on the same kind of machine. Nothing has to stand at the same path, as a packed virtual
environment would demand ([why](docs/decisions/what-ship-packs.md)).
"""

import importlib.metadata
import importlib.util
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from replicator.errors import InputError

SITE = "replicator-site"
"""The folder, below the working folder of an executor, in which it unpacks the archive."""
ARCHIVE_NAME = f"{SITE}.zip"

NEEDED = (
    "confluent-kafka", "cramjam", "crc32c", "immutables", "kafka-python", "numpy", "orjson", "pandas",
    "pyarrow", "pydantic", "ruamel.yaml", "structlog", "tenacity",
)  # fmt: skip
"""Distributions that tasks import; what these require in turn comes with them."""

_OWN = "replicator"
_OF_SPARK = {"pyspark", "py4j"}
"""Every executor has them from its own Spark."""
_LEFT_OUT_FOLDERS = {"__pycache__", "tests", "test", "include", "examples"}
_DOCS = "docs"
"""Left out as well, but for modules: botocore imports its own."""
_LEFT_OUT_SUFFIXES = {
    ".pyc",
    ".pyx",
    ".pxd",
    ".pxi",
    ".pyi",
    ".h",
    ".hpp",
    ".c",
    ".cc",
    ".a",
    ".lib",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_QUICK = 1
"""The level of compression: a second level costs more time than its bytes do on a local network."""


def pack_site(into: Path, modules: Iterable[str] = ()) -> Path:
    """Writes the archive; returns its path.

    Args:
        into: a folder for it.
        modules: names of user modules that tasks import, such as those of transforms.

    Raises:
        InputError: a module cannot be found here.
    """
    archive = into / ARCHIVE_NAME
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=_QUICK) as packed:
        seen: set[str] = set()
        for name, file in _contents(modules):
            if name not in seen:
                seen.add(name)
                packed.write(file, name)
    return archive


def _contents(modules: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Names in the archive and the files behind them."""
    roots = sorted({module.partition(".")[0] for module in modules} - {_OWN})
    wanted = [*NEEDED]
    owners = importlib.metadata.packages_distributions()
    for root in roots:
        wanted += owners.get(root, [])
    for name in closure(wanted):
        yield from _files_of(importlib.metadata.distribution(name))
    for root in roots:
        yield from _module_files(root)


def closure(names: Iterable[str]) -> tuple[str, ...]:
    """The distributions and what they require, as far as installed here; Spark's own left out."""
    found: dict[str, None] = {}
    left = list(names)
    while left:
        name = _normal(left.pop())
        if name in found or name in _OF_SPARK or name == _OWN:
            continue
        try:
            requires = importlib.metadata.distribution(name).requires or ()
        except importlib.metadata.PackageNotFoundError:
            continue  # an optional requirement, or one of another platform
        found[name] = None
        # Requirements with a marker are extras or other platforms; those installed here do no harm.
        for line in requires:
            match = _NAME.match(line)
            if match is not None and "extra ==" not in line:
                left.append(match.group())
    return tuple(found)


def _files_of(distribution: importlib.metadata.Distribution) -> Iterator[tuple[str, Path]]:
    for file in distribution.files or ():
        inside = not file.is_absolute() and ".." not in file.parts
        path = Path(str(distribution.locate_file(file)))
        if inside and _is_wanted(Path(file)) and path.is_file():
            yield str(file), path


def _module_files(root: str) -> Iterator[tuple[str, Path]]:
    """A module that belongs to no distribution, or is installed in place: by where it is imported from."""
    found = importlib.util.find_spec(root)
    if found is None or (not found.origin and not found.submodule_search_locations):
        raise InputError(
            f"the module '{root}' of a transform cannot be found on this machine",
            remedy="Install it beside replicator, or put its folder on PYTHONPATH: --ship packs what is there.",
        )
    if not found.submodule_search_locations:
        file = Path(str(found.origin))
        yield file.name, file
        return
    for folder in map(Path, found.submodule_search_locations):
        for file in sorted(folder.rglob("*")):
            inner = file.relative_to(folder)
            if file.is_file() and "__pycache__" not in inner.parts:
                yield str(Path(root) / inner), file


def _is_wanted(file: Path) -> bool:
    folders = file.parts[:-1]
    return (
        file.suffix not in _LEFT_OUT_SUFFIXES
        and not _LEFT_OUT_FOLDERS.intersection(folders)
        and (file.suffix == ".py" or _DOCS not in folders)
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
