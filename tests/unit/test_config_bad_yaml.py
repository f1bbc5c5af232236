"""Files that are no configuration at all: each is a ConfigError that names the file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.config import load_settings
from sealbook.errors import ConfigError
from tests.support.books import CATALOGUE, SETTINGS, refused, write_book

NO_CONSTRUCTOR = "not valid YAML: could not determine a constructor"
RECURSIVE = "not valid YAML: found unconstructable recursive node"

TEXTS = {
    "empty": ("", "expected a mapping, got `null`"),
    "only a comment": ("# nothing\n", "expected a mapping, got `null`"),
    "a list": ("- ledger\n", "expected a mapping, got a list"),
    "a word": ("ledger\n", "expected a mapping, got `str`"),
    "a number": ("5\n", "expected a mapping, got `int`"),
    "an open quote": ('ledger: "sqlite\n', "not valid YAML: found unexpected end of stream"),
    "an open list": ("ledger: [a, b\n", "not valid YAML: did not find expected ',' or ']'"),
    "a tab": ("ledger:\n\tx: 1\n", "not valid YAML: found character that cannot start any token (line 2)"),
    "bad indentation": ("ledger: a\n  raw: b\n", "not valid YAML: mapping values are not allowed"),
    "two documents": ("ledger: a\n---\nledger: b\n", "not valid YAML: but found another document (line 2)"),
    "a key twice": (
        "ledger: a\nraw: b\nledger: c\n",
        "not valid YAML: the key 'ledger' stands twice (line 3)",
    ),
    "a deep key twice": ("sources: {a: {x: 1, x: 2}}\n", "not valid YAML: the key 'x' stands twice (line 1)"),
    "a list as key": ("? [a, b]\n: c\n", "not valid YAML: a key is not text (line 1)"),
    "an unknown alias": ("ledger: *nope\n", "not valid YAML: found undefined alias"),
    "a list in itself": ("ledger: &a [*a]\n", RECURSIVE),
    "a mapping in itself": ("ledger: &a {b: *a}\n", RECURSIVE),
    "a Python object": ("ledger: !!python/object:os.system {}\n", NO_CONSTRUCTOR),
    "a binary": ("ledger: !!binary aGk=\n", NO_CONSTRUCTOR),
    "a tag of its own": ("ledger: !secret x\n", NO_CONSTRUCTOR),
    "a word tagged as number": ("ledger: !!int abc\n", "not valid YAML: this is no int (line 1)"),
    "nothing tagged as number": ("ledger: !!int\n", "not valid YAML: this is no int (line 1)"),
    "a word tagged as float": ("ledger: !!float abc\n", "not valid YAML: this is no float (line 1)"),
    "a word tagged as boolean": ("ledger: !!bool maybe\n", "not valid YAML: this is no bool (line 1)"),
    "a word tagged as null": ("ledger: !!null abc\n", "not valid YAML: this is no null (line 1)"),
    "a list tagged as text": ("ledger: !!str [a]\n", "not valid YAML: this is no str (line 1)"),
    "a word tagged as list": ("ledger: !!seq abc\n", "not valid YAML: a list is expected (line 1)"),
    "a list tagged as mapping": ("ledger: !!map [a]\n", "not valid YAML: a mapping is expected (line 1)"),
    "a control character": ("ledger: \x01\n", "not valid YAML: "),
    "a merge of a word": ("<<: word\nledger: x\n", "not valid YAML: expected a mapping"),
}


@pytest.mark.parametrize(("text", "says"), TEXTS.values(), ids=TEXTS)
def test_text_that_is_no_settings_file(tmp_path: Path, text: str, says: str) -> None:
    error = refused(write_book(tmp_path, text))
    assert str(error).startswith(f"{tmp_path}/sealbook.yaml: {says}")


@pytest.mark.parametrize(("text", "says"), TEXTS.values(), ids=TEXTS)
def test_text_that_is_no_catalogue(tmp_path: Path, text: str, says: str) -> None:
    error = refused(write_book(tmp_path, SETTINGS, text))
    assert str(error).startswith(f"{tmp_path}/config/google_apis.yaml: {says}")


@pytest.mark.parametrize("encoded", [b"ledger: \xff\xfe", b"\x80abc", "ledger: é".encode("latin-1")])
def test_bytes_that_are_no_utf8(tmp_path: Path, encoded: bytes) -> None:
    file = write_book(tmp_path)
    file.write_bytes(encoded)
    assert str(refused(file)) == f"{file}: not UTF-8 text"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1), cut=st.integers(0, 12), put=st.text(max_size=6))
def test_a_damaged_file_is_read_or_refused_and_nothing_else(
    tmp_path: Path, at: float, cut: int, put: str
) -> None:
    text = yaml.safe_dump(CATALOGUE, sort_keys=False)
    start = int(at * len(text))
    damaged = text[:start] + put + text[start + cut :]
    file = write_book(tmp_path)
    (tmp_path / "config" / "google_apis.yaml").write_bytes(damaged.encode("utf-8", "surrogatepass"))
    with suppress(ConfigError):
        load_settings(file)
