"""From a URL to a store: every form that is allowed, and a way out of every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealbook.errors import ConfigError
from sealbook.raw import RawStore


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")


def test_a_folder_by_path_or_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is settled at once: a worker may run elsewhere."""
    folder = tmp_path / "with space" / "raw"
    monkeypatch.chdir(tmp_path)
    for url in (
        folder,
        str(folder),
        "with space/raw",
        folder.as_uri(),
        f"file://localhost{folder.as_uri()[7:]}",
    ):
        assert RawStore.open(url).url == folder.as_uri()
    assert folder.is_dir()


def test_a_folder_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert RawStore.open("~/raw").url == (tmp_path / "raw").as_uri()


@pytest.mark.parametrize(
    "url", ["s3://bucket/a/prefix", "gs://bucket/prefix", "az://container/prefix", "s3://bucket"]
)
def test_a_bucket(url: str) -> None:
    assert RawStore.open(url).url == url
    assert RawStore.open(f"{url}/").url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3://",
        "s3:///prefix",
        "s3:bucket",
        "s3:/bucket",
        "S3://bucket",
        "s3://key:secret@bucket/prefix",
        "s3://bucket/prefix?versionId=1",
        "s3://bucket/prefix#part",
        "s3://buc ket/prefix",
        "s3://[bucket/prefix",
        "ftp://host/folder",
        "https://host/folder",
        "memory:///",
        "file://",
        "file://host/folder",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        RawStore.open(url)
    assert error.value.remedy is not None


def test_a_secret_in_a_url_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as error:
        RawStore.open("s3://key:secret@bucket/prefix?token=secret")
    assert "secret" not in str(error.value)


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match="not a folder"):
            RawStore.open(str(path))


def test_options_must_fit_the_storage(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="takes no options"):
        RawStore.open(str(tmp_path), {"region": "eu-west-1"})
    with pytest.raises(ConfigError, match="regoin"):
        RawStore.open("s3://bucket", {"regoin": "eu-west-1"})


def test_azure_needs_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    with pytest.raises(ConfigError, match="Account") as error:
        RawStore.open("az://container/prefix")
    assert "AZURE_*" in (error.value.remedy or "")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
def test_a_server_on_this_machine_may_do_without_encryption(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:9000")
    assert RawStore.open("s3://bucket").url == "s3://bucket"
