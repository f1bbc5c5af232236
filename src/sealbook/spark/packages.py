"""What executors are sent: Sealbook, the packages of its sources and all that these need, in one archive.

It is made once, and lies in the user's cache folder under a name that stands for its content.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from sealbook.config import SOURCE_ENTRY_POINTS
from sealbook.errors import ConfigError, Unwritable
from sealbook.spark.cache import cache_folder, draft_of, remove_unused

_KIND = "executor-packages"
_SPARKS_OWN = {"pyspark", "py4j", "pyarrow", "numpy", "pandas"}
"""What executors have, because their Spark needs it."""
_DRIVERS_OWN = {"alembic", "duckdb", "psycopg", "rich", "sqlalchemy", "typer"}
"""What Sealbook uses in a command or a program, and never in a task."""
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[(?P<extras>[^]]*)\])?[^;]*(?:;(?P<marker>.*))?"
)
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")

_Content = dict[str, Path | bytes]
"""By its name in the archive: a file, or what is written there."""


def package_archive(sources: Sequence[str]) -> Path:
    """Return the archive for executors that fetch from these sources; make it if it is not there."""
    content: _Content = {}
    for found in _needed(sources):
        content.update(_content(found))
    file = cache_folder() / f"{_KIND}-{_digest(content)}.zip"
    try:
        if not file.exists():
            with draft_of(file) as draft:
                _write(draft, content)
            remove_unused(_KIND, file.suffix)
        os.utime(file)  # says which archives are in use
    except OSError as error:
        raise Unwritable(
            f"the packages for executors cannot be kept in {file.parent}: {error.strerror}",
            remedy="Set XDG_CACHE_HOME to a folder that can be written,"
            " or install Sealbook on the executors and set `spark.ship_packages: false`.",
        ) from error
    return file


def _needed(sources: Sequence[str]) -> list[Distribution]:
    """Return what is sent: for each source the distribution that has it, with the extra of its name."""
    roots = [("sealbook", frozenset[str]())]
    roots += [
        (entry.dist.name, frozenset({_normal(entry.name)}))
        for entry in entry_points(group=SOURCE_ENTRY_POINTS)
        if entry.name in sources and entry.dist is not None
    ]
    found: dict[tuple[str, frozenset[str]], Distribution] = {}
    while roots:
        name, extras = roots.pop()
        if (name, extras) in found:
            continue
        try:
            found[name, extras] = one = distribution(name)
        except PackageNotFoundError:
            continue  # what this Python or this system does without
        for match in map(_REQUIREMENT.match, one.requires or ()):
            if match is None or _normal(match["name"]) in _SPARKS_OWN | _DRIVERS_OWN:
                continue
            asked_for = _EXTRA.search(match["marker"] or "")
            if asked_for is None or _normal(asked_for[1]) in extras:
                own = frozenset(_normal(each) for each in (match["extras"] or "").split(",") if each)
                roots.append((_normal(match["name"]), own))
    return list({_normal(each.name): each for each in found.values()}.values())


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).strip().lower()


def _content(found: Distribution) -> _Content:
    files = [] if _is_in_place(found) else found.files or []
    if not files:
        return _in_place(found)
    return {
        file.as_posix(): Path(str(found.locate_file(file)))
        for file in files
        if ".." not in file.parts and "__pycache__" not in file.parts and file.suffix != ".pth"
    }


def _is_in_place(found: Distribution) -> bool:
    """Say whether the package is used where its author works on it; what is installed is but a hint then."""
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    return bool(origin.get("dir_info", {}).get("editable"))


def _in_place(found: Distribution) -> _Content:
    named = {entry.module.partition(".")[0] for entry in found.entry_points}
    modules = named or {_normal(found.name).replace("-", "_")}
    content = {name: path for module in sorted(modules) for name, path in _module(module)}
    if not content:
        raise ConfigError(
            f"{found.name} cannot be sent to the executors: nothing says which modules it has",
            remedy="Install it from a wheel, or install Sealbook and its sources on the executors"
            " and set `spark.ship_packages: false`.",
        )
    about = f"{_normal(found.name).replace('-', '_')}-{found.version}.dist-info"
    texts = {name: found.read_text(name) for name in ("METADATA", "entry_points.txt")}
    return {**content, **{f"{about}/{name}": text.encode() for name, text in texts.items() if text}}


def _module(name: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(name)
    if spec is None:
        return
    if spec.submodule_search_locations is None and spec.origin is not None:
        yield Path(spec.origin).name, Path(spec.origin)
    for folder in map(Path, spec.submodule_search_locations or ()):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield (name / file.relative_to(folder)).as_posix(), file


def _digest(content: _Content) -> str:
    """Return what stands for the content, for this Python and this system."""
    digest = sha256(repr((sys.version_info[:2], sysconfig.get_platform())).encode())
    for name, part in sorted(content.items()):
        state = part if isinstance(part, bytes) else (part.stat().st_size, part.stat().st_mtime_ns)
        digest.update(repr((name, state)).encode())
    return digest.hexdigest()[:16]


def _write(file: Path, content: _Content) -> None:
    with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as archive:
        for name, part in sorted(content.items()):
            if isinstance(part, bytes):
                archive.writestr(name, part)
            else:
                archive.write(part, name)
