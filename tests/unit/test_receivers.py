"""Who is told of alerts has taken a batch whole, or is told of it again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sealbook.config.settings import AlertSettings
from sealbook.errors import Permanent, SealbookError, Transient
from sealbook.status import receivers
from sealbook.status.receivers import receiver_of
from tests.support.receivers import AlertServer

BATCH = b'[{"id": "1/raised"}]'


def command(*code: str) -> AlertSettings:
    return AlertSettings(command=(sys.executable, "-c", *code))


def test_a_command_gets_the_batch_on_its_standard_input_in_the_folder_of_the_book(tmp_path: Path) -> None:
    copy = "import pathlib, sys; pathlib.Path('taken').write_bytes(sys.stdin.buffer.read())"
    receiver_of(command(copy), tmp_path).take(BATCH)
    assert (tmp_path / "taken").read_bytes() == BATCH


def test_a_command_that_fails_has_not_taken_it(tmp_path: Path) -> None:
    failing = "import sys; print('the pager is\\nfull', file=sys.stderr); sys.exit(7)"
    with pytest.raises(Transient, match=r"ended with exit code 7: full") as error:
        receiver_of(command(failing), tmp_path).take(BATCH)
    assert "kept" in str(error.value.remedy)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match=r"no-such-command cannot be run"):
        receiver_of(AlertSettings(command=("no-such-command",)), tmp_path).take(BATCH)


def test_a_command_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receivers, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(Transient, match="took more than"):
        receiver_of(command("import time; time.sleep(60)"), tmp_path).take(BATCH)


def test_an_address_gets_a_post_with_its_headers(tmp_path: Path) -> None:
    server = AlertServer()
    with server.up():
        settings = AlertSettings(url=server.url, headers={"Authorization": "Bearer hunter2"})
        receiver_of(settings, tmp_path).take(BATCH)
    assert server.batches == [[{"id": "1/raised"}]]
    [headers] = server.headers
    assert headers["Authorization"] == "Bearer hunter2"
    assert headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("code", "error"),
    [(500, Transient), (503, Transient), (429, Transient), (401, Permanent), (404, Permanent)],
)
def test_an_address_that_refuses_has_not_taken_it(
    tmp_path: Path, code: int, error: type[SealbookError]
) -> None:
    server = AlertServer()
    server.code = code
    with server.up(), pytest.raises(error, match=f"answered {code}") as caught:
        receiver_of(AlertSettings(url=server.url), tmp_path).take(BATCH)
    assert "t0ken" not in str(caught.value), "what comes after the host may be a secret"


def test_a_post_is_not_sent_elsewhere(tmp_path: Path) -> None:
    """There it would arrive as a GET, without its body, and count as taken."""
    server = AlertServer()
    server.code = 302
    with server.up():
        server.location = server.url
        with pytest.raises(Permanent, match="answered 302"):
            receiver_of(AlertSettings(url=server.url), tmp_path).take(BATCH)
    assert len(server.batches) == 1


def test_an_address_at_which_nobody_is(tmp_path: Path) -> None:
    server = AlertServer()
    with server.up():
        pass
    with pytest.raises(Transient, match=r"did not answer: .*refused") as caught:
        receiver_of(AlertSettings(url=server.url), tmp_path).take(BATCH)
    assert "t0ken" not in str(caught.value)


def test_neither_address_nor_headers_are_shown() -> None:
    settings = AlertSettings(url="https://host/t0ken", headers={"Authorization": "hunter2"})
    for each in (settings, receiver_of(settings, Path())):
        assert "t0ken" not in repr(each)
        assert "hunter2" not in repr(each)
