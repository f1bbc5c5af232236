"""What only a storage behind a network can do to a raw store: lost answers, refusals, silence."""

from __future__ import annotations

import pytest

from sealbook.errors import ConfigError, NotFound, Permanent, Transient
from sealbook.model.selection import Selection
from sealbook.raw import RawStore
from sealbook.storage import opening
from tests.support.s3 import KEY, RUN, SEAL, Fault, S3Server, numbered, seal_rows

REQUESTS = ("put payload", "put seal")


def test_a_seal_costs_two_requests(s3_url: str, s3_server: S3Server) -> None:
    """R-RAW-2: two puts and nothing else."""
    store = RawStore.open(s3_url)
    s3_server.expect(None)
    seal_rows(store, numbered(200))
    assert s3_server.requests == len(REQUESTS)


@pytest.mark.parametrize("at", range(1, len(REQUESTS) + 1), ids=REQUESTS)
@pytest.mark.parametrize("applied", [True, False], ids=["answer lost", "request lost"])
def test_a_writer_does_not_lose_to_itself(s3_url: str, s3_server: S3Server, at: int, applied: bool) -> None:
    """R-RAW-2: a create-only put whose answer got lost finds its own work on the second try."""
    store = RawStore.open(s3_url)
    s3_server.expect(Fault(at, applied))
    sealed = seal_rows(store, numbered(3))
    assert s3_server.requests > len(REQUESTS)
    assert store.read(KEY, RUN).metadata == sealed
    assert store.read(KEY, RUN).payload().count(b"\n") == 3


@pytest.mark.parametrize("applied", [True, False], ids=["answer lost", "request lost"])
def test_a_seal_that_failed_can_be_asked_for_again(
    s3_url: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, applied: bool
) -> None:
    """A seal whose outcome is not known is Transient, and the same payload may be sealed again."""
    monkeypatch.setattr(opening, "_RETRY", {"max_retries": 0})
    store = RawStore.open(s3_url)
    payload = store.write(KEY, RUN, numbered(3))
    s3_server.expect(Fault(1, applied))
    with pytest.raises(Transient):
        store.seal(KEY, RUN, payload, **SEAL)
    sealed = store.seal(KEY, RUN, payload, **SEAL)
    assert sealed.payload_name == payload.name
    assert store.read(KEY, RUN).payload().count(b"\n") == 3


def test_a_listing_takes_one_request_for_each_customer(s3_url: str, s3_server: S3Server) -> None:
    store = RawStore.open(s3_url)
    for customer in ("1", "2", "3"):
        for day in range(1, 4):
            key = type(KEY)("demo", customer, "q", KEY.logical_date.replace(day=day))
            seal_rows(store, numbered(1), key)
    s3_server.expect(None)
    assert len(list(store.sealed(Selection(source="demo", customers=["1", "3"])))) == 6
    assert s3_server.requests == 2


def test_a_storage_that_does_not_answer_is_transient(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-VER-4: unreachable is not corrupt, and not absent."""
    monkeypatch.setattr(opening, "_RETRY", {"max_retries": 0})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    store = RawStore.open(s3_url)
    for call in (
        lambda: seal_rows(store, numbered(1)),
        lambda: store.read(KEY, RUN),
        lambda: store.runs(KEY),
        lambda: list(store.sealed()),
        lambda: store.is_sealed(KEY, RUN),
    ):
        with pytest.raises(Transient) as error:
            call()
        assert error.value.remedy is not None


def test_a_refused_credential_is_permanent(s3_url: str, s3_server: S3Server) -> None:
    """R-CTL-7: nothing that a retry would mend."""
    store = RawStore.open(s3_url)
    s3_server.expect(Fault(1, applied=False, times=99, status="403 Forbidden"))
    for call in (
        lambda: seal_rows(store, numbered(1)),
        lambda: store.read(KEY, RUN),
        lambda: store.runs(KEY),
        lambda: list(store.sealed()),
    ):
        with pytest.raises(Permanent, match="refused access") as error:
            call()
        assert not isinstance(error.value, NotFound)
        assert "environment" in (error.value.remedy or "")


def test_options_override_the_environment(
    s3_url: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    store = RawStore.open(s3_url, {"endpoint": s3_server.endpoint})
    assert seal_rows(store, numbered(1)).record_count == 1


def test_a_server_elsewhere_is_not_reached_without_encryption(
    s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://storage.example:9000")
    with pytest.raises(ConfigError, match="without encryption") as error:
        RawStore.open(s3_url)
    assert "AWS_ALLOW_HTTP" in (error.value.remedy or "")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    assert RawStore.open(s3_url).url == s3_url
