"""What executors are sent: which packages, from where, and that they are packed once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest

from sealbook.errors import ConfigError, Unwritable
from sealbook.spark.packages import package_archive


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which Python imports."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install(
    site: Path,
    name: str,
    *requires: str,
    sources: Mapping[str, str] | None = None,
    about: Mapping[str, object] | None = None,
    modules: Path | None = None,
) -> None:
    """Install a package of one module as pip does: its files, and what is recorded of them."""
    module = (modules or site) / name / "__init__.py"
    module.parent.mkdir(parents=True)
    module.write_text("")
    cached = module.parent / "__pycache__" / "__init__.pyc"
    cached.parent.mkdir()
    cached.touch()
    texts = {
        "METADATA": "\n".join(
            [f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {each}" for each in requires)]
        ),
        "entry_points.txt": "\n".join(
            ["[sealbook.sources]", *(f"{key} = {value}" for key, value in (sources or {}).items())]
        ),
        "direct_url.json": json.dumps(about or {}),
    }
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir()
    for file, text in texts.items():
        (folder / file).write_text(text)
    recorded = [] if modules else [f"{name}/__init__.py", f"{name}/__pycache__/__init__.pyc"]
    recorded += [f"{folder.name}/{file}" for file in texts]
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in [*recorded, "../../bin/script"]))


def names(sources: tuple[str, ...] = ()) -> set[str]:
    """Return the names at the top of the archive."""
    with ZipFile(package_archive(sources)) as archive:
        return {name.partition("/")[0] for name in archive.namelist()}


def test_sealbook_goes_with_what_tasks_need_and_no_more() -> None:
    sent = names()
    assert {"sealbook", "msgspec", "obstore", "ulid", "yaml"} <= sent
    assert not {"sqlalchemy", "duckdb", "psycopg", "typer", "pyspark", "pyarrow", "google"} & sent


def test_the_package_of_a_source_goes_with_what_it_needs(site: Path) -> None:
    install(site, "leaf")
    install(site, "wanted", "leaf (>=1)")
    install(site, "unwanted")
    install(
        site,
        "ours",
        "wanted[x]>=1; python_version > '3'",
        'unwanted; extra == "other"',
        sources={"shop": "ours:Shop"},
    )
    sent = names(("shop",))
    assert {"ours", "ours-1.0.dist-info", "wanted", "leaf"} <= sent
    assert not {"unwanted", "..", "bin"} & sent
    assert not {"ours", "wanted"} & names()


def test_an_extra_that_has_the_name_of_the_source_goes_with_it(site: Path) -> None:
    install(site, "client")
    install(
        site, "ours", 'client; extra == "web-shop"', sources={"web_shop": "ours:Shop", "other": "ours:Other"}
    )
    assert "client" in names(("web_shop",))
    assert "client" not in names(("other",))


def test_what_is_not_installed_here_is_not_needed(site: Path) -> None:
    install(site, "ours", "winonly; sys_platform == 'win32'", sources={"shop": "ours:Shop"})
    assert "ours" in names(("shop",))


def test_what_is_compiled_by_python_stays_here(site: Path) -> None:
    install(site, "ours", sources={"shop": "ours:Shop"})
    with ZipFile(package_archive(("shop",))) as archive:
        assert not [name for name in archive.namelist() if "__pycache__" in name]


IN_PLACE = {"dir_info": {"editable": True}}


def test_a_package_that_is_worked_on_goes_from_where_it_is(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "work"))
    install(site, "ours", sources={"shop": "ours:Shop"}, about=IN_PLACE, modules=tmp_path / "work")
    with ZipFile(package_archive(("shop",))) as archive:
        assert "ours/__init__.py" in archive.namelist()
        assert b"shop = ours:Shop" in archive.read("ours-1.0.dist-info/entry_points.txt")


def test_one_that_cannot_be_found_is_refused(site: Path, tmp_path: Path) -> None:
    install(site, "ours", sources={"shop": "ours:Shop"}, about=IN_PLACE, modules=tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="ours cannot be sent to the executors"):
        package_archive(("shop",))


def test_an_archive_is_made_once_and_again_when_something_changes(site: Path, cache: Path) -> None:
    install(site, "ours", sources={"shop": "ours:Shop"})
    first = package_archive(("shop",))
    made = first.read_bytes()
    first.write_bytes(b"as it was")
    assert package_archive(("shop",)) == first
    assert first.read_bytes() == b"as it was"
    (site / "ours" / "__init__.py").write_text("changed = True")
    second = package_archive(("shop",))
    assert second != first
    assert second.read_bytes() != made
    assert {each.suffix for each in (cache / "sealbook").iterdir()} == {".zip"}


def test_a_cache_that_cannot_be_written_is_named(cache: Path) -> None:
    cache.write_text("in the way")
    with pytest.raises(Unwritable, match=r"cannot be kept in .*cache/sealbook"):
        package_archive(())
