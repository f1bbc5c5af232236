"""Credentials by the conventions of the official client: they reach Google Ads, and no message or log."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from sealbook.errors import ConfigError, Permanent, SealbookError, Transient
from sealbook.extract.source import load_source
from tests.support.google_ads import (
    CUSTOMER_ID,
    Batch,
    Failure,
    GoogleAdsServer,
    google_ads_key,
    google_ads_query,
)

DEVELOPER_TOKEN = "developer-token-hunter2"
ACCESS_TOKEN = "access-token-hunter2"
CLIENT_SECRET = "client-secret-hunter2"
REFRESH_TOKEN = "refresh-token-hunter2"

# A process of its own, because gRPC reads its root certificates once. Everything is logged, and shown.
FETCH_TWICE = """
import json, logging, sys, traceback
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
logging.getLogger("google").setLevel(logging.DEBUG)
from sealbook.extract.source import load_source
from tests.support.google_ads import google_ads_key, google_ads_query
source = load_source("google_ads", json.loads(sys.argv[1]))
print(json.dumps(list(source.fetch(google_ads_key(), google_ads_query()))))
try:
    list(source.fetch(google_ads_key(), google_ads_query()))
except Exception:
    traceback.print_exc()
print(repr(source), vars(source), file=sys.stderr)
"""


class Keys:
    """A private key, for the service account and for the TLS of a server at localhost."""

    def __init__(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(key, hashes.SHA256())
        )
        self.private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def secret_line(self) -> str:
        return self.private.decode().splitlines()[2]


class TokenServer:
    """Grants access tokens to a service account, or refuses them."""

    def __init__(self) -> None:
        server = self
        self.status, self.answer = 200, {"access_token": ACCESS_TOKEN, "expires_in": 3600}

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(server.status)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(server.answer).encode())

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/token"


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys()


@pytest.fixture
def token_server() -> Iterator[TokenServer]:
    server = TokenServer()
    thread = threading.Thread(target=server.http.serve_forever)
    thread.start()
    yield server
    server.http.shutdown()
    thread.join()
    server.http.server_close()


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without credentials, and without a way out of this machine."""
    for name in [name for name in os.environ if name.startswith("GOOGLE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")


@pytest.fixture
def service_account(tmp_path: Path, keys: Keys, token_server: TokenServer) -> Path:
    return write_service_account(tmp_path, keys.private.decode(), token_server.url)


def write_service_account(folder: Path, private_key: str, token_uri: str) -> Path:
    file = folder / "service-account.json"
    account = {
        "type": "service_account",
        "client_email": "reader@example.test",
        "private_key": private_key,
        "token_uri": token_uri,
    }
    file.write_text(json.dumps(account))
    return file


def write_credentials(folder: Path, **settings: object) -> Path:
    file = folder / "google-ads.yaml"
    file.write_text(
        yaml.safe_dump({"developer_token": DEVELOPER_TOKEN, "use_proto_plus": True, **settings}), "utf-8"
    )
    return file


def fetch(**options: object) -> list[object]:
    return list(load_source("google_ads", options).fetch(google_ads_key(), google_ads_query()))


def shown(error: BaseException) -> str:
    """Everything that a log or a traceback could show of an error."""
    return f"{''.join(traceback.format_exception(error))} {error!r} {getattr(error, 'remedy', '')}"


@pytest.mark.parametrize("way", ["credentials_file", "environment"])
def test_credentials_reach_google_ads_and_no_output_of_the_process(
    way: str, tmp_path: Path, keys: Keys, service_account: Path
) -> None:
    roots = tmp_path / "roots.pem"
    roots.write_bytes(keys.certificate)
    tls = grpc.ssl_server_credentials([(keys.private, keys.certificate)])
    with GoogleAdsServer(credentials=tls) as server:
        refused = Failure(
            "PERMISSION_DENIED", [{"error_code": {"authorization_error": "CUSTOMER_NOT_ENABLED"}}]
        )
        server.reply(CUSTOMER_ID, [Batch(["campaign.id"], [{"campaign": {"id": 5}}])], [refused])
        settings = {
            "json_key_file_path": str(service_account),
            "login_customer_id": "1112223333",
            "endpoint": server.endpoint,
        }
        options, variables = {}, {}
        if way == "credentials_file":
            options = {"credentials_file": str(write_credentials(tmp_path, **settings))}
        else:
            options = {"login_customer_id": "444-555-6666"}
            settings |= {"developer_token": DEVELOPER_TOKEN, "use_proto_plus": "True"}
            variables = {f"GOOGLE_ADS_{name.upper()}": value for name, value in settings.items()}
        done = subprocess.run(
            [sys.executable, "-c", FETCH_TWICE, json.dumps(options)],
            env={
                **os.environ,
                **variables,
                "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(roots),
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert json.loads(done.stdout) == [{"campaign_id": 5}], done.stderr
        metadata = server.requests[0].metadata
    assert metadata["developer-token"] == DEVELOPER_TOKEN
    assert metadata["authorization"] == f"Bearer {ACCESS_TOKEN}"
    assert (
        metadata["login-customer-id"] == {"credentials_file": "1112223333", "environment": "4445556666"}[way]
    )
    assert "CUSTOMER_NOT_ENABLED" in done.stderr
    assert "POST /token" in done.stderr  # the logs of every library were on
    for secret in (DEVELOPER_TOKEN, ACCESS_TOKEN, keys.secret_line):
        assert secret not in done.stderr + done.stdout


def test_credentials_that_are_refused_are_a_permanent_failure_without_a_secret(
    tmp_path: Path,
    keys: Keys,
    service_account: Path,
    token_server: TokenServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    token_server.status, token_server.answer = 400, {"error": "invalid_grant", "error_description": "revoked"}
    credentials = write_credentials(tmp_path, json_key_file_path=str(service_account))
    with caplog.at_level(logging.DEBUG), pytest.raises(Permanent, match="RefreshError") as caught:
        fetch(credentials_file=str(credentials))
    for secret in (DEVELOPER_TOKEN, keys.secret_line):
        assert secret not in shown(caught.value) + caplog.text


def test_a_token_server_that_cannot_be_reached_is_transient(tmp_path: Path, keys: Keys) -> None:
    with socket.socket() as taken:  # bound but not listening: refused, and nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/token"
        account = write_service_account(tmp_path, keys.private.decode(), url)
        with pytest.raises(Transient, match="could not be reached"):
            fetch(credentials_file=str(write_credentials(tmp_path, json_key_file_path=str(account))))


@pytest.mark.parametrize(
    "text",
    [
        f"developer_token: {DEVELOPER_TOKEN}\nrefresh_token: [{REFRESH_TOKEN}\nuse_proto_plus: true\n",
        f"developer_token: {DEVELOPER_TOKEN}\nclient_secret: {CLIENT_SECRET}\n",
        f"developer_token: {DEVELOPER_TOKEN}\nuse_proto_plus: true\nclient_secret: {CLIENT_SECRET}\n",
        f"developer_token: {DEVELOPER_TOKEN}\nuse_proto_plus: true\nlogin_customer_id: {CLIENT_SECRET}\n",
        f"- {DEVELOPER_TOKEN}\n- {CLIENT_SECRET}\n",
        f"{CLIENT_SECRET}\n",
        f"logging: {CLIENT_SECRET}\nuse_proto_plus: true\n",
    ],
    ids=["not yaml", "no use_proto_plus", "incomplete", "login customer", "list", "text", "logging"],
)
def test_credentials_in_the_wrong_format_are_refused_without_a_secret(tmp_path: Path, text: str) -> None:
    file = tmp_path / "google-ads.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match="Google Ads credentials") as caught:
        fetch(credentials_file=str(file))
    assert caught.value.remedy is not None
    assert "hunter2" not in shown(caught.value)


@pytest.mark.parametrize(
    "private_key", ["hunter2", "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"]
)
def test_a_private_key_that_cannot_be_read_is_refused_without_showing_it(
    tmp_path: Path, private_key: str
) -> None:
    account = write_service_account(tmp_path, private_key, "http://127.0.0.1:9/token")
    with pytest.raises(SealbookError, match="Google Ads credentials") as caught:
        fetch(credentials_file=str(write_credentials(tmp_path, json_key_file_path=str(account))))
    assert not isinstance(caught.value, Transient)
    assert "hunter2" not in shown(caught.value)


def test_credentials_that_are_not_there_are_missed_by_their_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=str(tmp_path / "other.yaml")):
        fetch(credentials_file=str(tmp_path / "other.yaml"))
    with pytest.raises(ConfigError, match=str(tmp_path / "google-ads.yaml")):
        fetch()


def test_a_plain_text_endpoint_gets_no_credential(
    tmp_path: Path, google_ads_server: GoogleAdsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_ADS_DEVELOPER_TOKEN", DEVELOPER_TOKEN)
    credentials = write_credentials(tmp_path, refresh_token=REFRESH_TOKEN)
    fetch(endpoint=google_ads_server.endpoint, credentials_file=str(credentials))
    (request,) = google_ads_server.requests
    assert not {"developer-token", "authorization"} & request.metadata.keys()
    assert "hunter2" not in str(request.metadata)
