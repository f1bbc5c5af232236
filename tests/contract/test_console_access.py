"""Who gets into a console, by which ways, and what is refused: nothing is shown or changed by an attack."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

import sealbook
from sealbook.config.console import ConsoleSettings, ProxySettings
from sealbook.console.access import check_address
from sealbook.console.security.guard import HEADERS
from sealbook.console.security.local import LocalToken
from sealbook.console.security.people import Person, Role
from sealbook.console.security.proxies import ProxyIdentity
from sealbook.console.security.token_identity import TokenIdentity
from sealbook.console.security.tokens import TokenFile
from sealbook.errors import ConfigError, Forbidden, InvalidInput, NotFound
from tests.support.browser import served
from tests.support.console import ANN, HOST, ORIGIN, VIC, asking, console_of
from tests.support.demo_books import write_demo_book

PAGE = "/runs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a book with a ledger, in which nothing happens."""
    made = tmp_path_factory.mktemp("book")
    write_demo_book(made)
    with sealbook.open(made) as book:
        book.catch_up()
    return made


@pytest.fixture
def local() -> LocalToken:
    return LocalToken(ANN, 8700)


@pytest.fixture
def client(folder: Path, local: LocalToken) -> Iterator[TestClient]:
    """Yield a client of a console on one's own machine, without its token."""
    with asking(folder, identities=(local,)) as client:
        yield client


# Whose name it is asked for by.


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8700", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8700.evil.example", ""],
)
@pytest.mark.parametrize("path", [PAGE, "/healthz", "/static/console.css", "/login"])
def test_a_host_that_is_not_ours_is_refused_whatever_is_asked(
    client: TestClient, local: LocalToken, host: str, path: str
) -> None:
    given = {"Host": host, "Authorization": f"Bearer {local.token}"}
    answer = client.get(path, headers=given)
    assert answer.status_code == 421
    assert "Sealbook" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:8700", "localhost:8700", "LOCALHOST:8700", "[::1]:8700"])
def test_the_names_of_this_machine_are_ours(client: TestClient, local: LocalToken, host: str) -> None:
    given = {"Host": host, "Authorization": f"Bearer {local.token}"}
    assert client.get(PAGE, headers=given).status_code == 200


def test_two_hosts_are_none(folder: Path) -> None:
    with answering(folder) as (port, token):
        asked = (
            f"GET {PAGE} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n"
            f"Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        )
        assert raw_answer(port, asked).split()[1] in ("400", "421")


# By which token.


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}.json", "/metrics", "/nowhere", "/"])
def test_without_a_token_nothing_is_told(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Accept": "application/json"})
    assert answer.status_code == 401
    assert "who are you" in answer.text


def test_a_browser_without_a_token_is_asked_for_one(client: TestClient) -> None:
    answer = client.get(PAGE, headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert "token" in client.get("/login").text


def test_the_token_of_the_address_is_swapped_for_a_cookie(client: TestClient, local: LocalToken) -> None:
    answer = client.get(f"{PAGE}?limit=5&token={local.token}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}?limit=5")
    [cookie] = answer.headers.get_list("set-cookie")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {*cookie.split("; ")}
    assert local.token not in cookie
    assert client.get(f"{PAGE}?limit=5").status_code == 200
    assert "ann" in client.get(PAGE).text


@pytest.mark.parametrize("token", ["", "x", "ä", "\ud800"])
def test_a_wrong_token_lets_nobody_in(client: TestClient, token: str) -> None:
    answer = client.get(PAGE, params={"token": token.encode("utf-8", "surrogatepass")})
    assert (answer.status_code, answer.headers.get("set-cookie")) == (401, None)
    signed_in = client.post("/login", data={"token": token.encode("utf-8", "replace").decode()})
    assert (signed_in.status_code, signed_in.headers.get("set-cookie")) == (403, None)


def test_an_address_with_two_slashes_leads_nowhere_else(client: TestClient, local: LocalToken) -> None:
    answer = client.get(f"{ORIGIN}//evil.example/?token={local.token}")
    assert urlsplit(answer.headers["location"]).netloc == ""


def test_a_form_swaps_the_token_too_and_logout_lets_go(client: TestClient, local: LocalToken) -> None:
    assert client.post("/login", data={"token": local.token}).status_code == 303
    assert client.get(PAGE).status_code == 200
    client.post("/logout")
    assert client.get(PAGE).status_code == 401


def test_a_huge_form_is_not_read(client: TestClient, local: LocalToken) -> None:
    answer = client.post("/login", data={"filler": "x" * 10_000, "token": local.token})
    assert answer.status_code == 403


# From where something may be changed.


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": ORIGIN},
        {"Sec-Fetch-Site": ""},
        {"Origin": "http://evil.example"},
        {"Origin": f"http://{HOST}.evil.example"},
        {"Origin": f"http://evil.example/{HOST}"},
        {"Origin": "null"},
        {},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_page_of_somebody_else_changes_nothing(folder: Path, headers: dict[str, str], method: str) -> None:
    with asking(folder) as client:
        del client.headers["Sec-Fetch-Site"]
        answer = client.request(method, "/login", headers=headers, data={"token": "x"})
    assert (answer.status_code, answer.text) == (403, "only pages of this console may do this\n")


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": ORIGIN}],
)
def test_our_own_pages_may(folder: Path, headers: dict[str, str]) -> None:
    with asking(folder) as client:
        del client.headers["Sec-Fetch-Site"]
        assert "no token of this console" in client.post("/login", headers=headers, data={"token": "x"}).text


def test_a_program_with_a_token_needs_no_origin(client: TestClient, local: LocalToken) -> None:
    del client.headers["Sec-Fetch-Site"]
    answer = client.post("/logout", headers={"Authorization": f"Bearer {local.token}"})
    assert answer.status_code == 303


# Whom others are known by.


def test_a_bearer_token_is_known_by_its_hash_until_it_is_revoked(folder: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    made, secret = tokens.create("zoe", Role.VIEWER)
    kept = (tmp_path / "tokens.json").read_text()
    assert secret not in kept
    assert made.digest in kept
    assert (tmp_path / "tokens.json").stat().st_mode & 0o077 == 0
    given = {"Authorization": f"Bearer {secret}"}
    with asking(folder, identities=(TokenIdentity(tokens),)) as client:
        assert "zoe" in client.get(PAGE, headers=given).text
        assert client.post("/login", data={"token": secret}).status_code == 303
        assert "zoe" in client.get(PAGE).text  # by the cookie
        TokenFile(tmp_path / "tokens.json").revoke("zoe")  # by another process
        assert client.get(PAGE, headers=given).status_code == 401
        assert client.get(PAGE).status_code == 401


def test_a_cookie_is_of_no_use_with_another_token(folder: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    tokens.create("vic", Role.VIEWER)
    operator, _ = tokens.create("ann", Role.OPERATOR)
    identity = TokenIdentity(tokens)
    _, secret = tokens.create("eve", Role.VIEWER)
    signed_in = identity.sign_in(secret)
    assert signed_in is not None
    name, value = signed_in
    with asking(folder, identities=(identity,)) as client:
        client.cookies[name] = f"{operator.id}.{value.partition('.')[2]}"
        assert client.get(PAGE).status_code == 401


def test_a_token_that_has_run_out_is_none(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    made, secret = tokens.create("zoe", Role.VIEWER, timedelta(seconds=-1))
    assert (tokens.find(secret), tokens.get(made.id)) == (None, None)


def test_what_is_no_token_file_and_what_is_no_name_is_refused(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    for name in ("", "a\nb", "x" * 101):
        with pytest.raises(InvalidInput):
            tokens.create(name, Role.VIEWER)
    with pytest.raises(NotFound):
        tokens.revoke("nobody")
    (tmp_path / "tokens.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"tokens\.json"):
        tokens.all()


PROXY = ProxySettings((ip_network("10.0.0.5/32"), ip_network("fd00::/8")), "X-User", "X-Groups")
BEHIND = ProxyIdentity(PROXY, operators=frozenset({"ann"}), operator_groups=frozenset({"data"}))


@pytest.mark.parametrize(
    ("address", "headers", "expected"),
    [
        ("10.0.0.5", {"X-User": "ann"}, ANN),
        ("fd00::7", {"X-User": "vic"}, VIC),
        ("10.0.0.5", {"X-User": "bob", "X-Groups": "all, data"}, Person("bob", Role.OPERATOR)),
        ("10.0.0.5", {"X-User": "bob", "X-Groups": "database"}, Person("bob", Role.VIEWER)),
        ("10.0.0.5", {}, None),
        ("10.0.0.5", {"X-User": " "}, None),
        ("10.0.0.5", {"X-User": "x" * 201}, None),
        ("10.0.0.6", {"X-User": "ann"}, None),
        ("127.0.0.1", {"X-User": "ann"}, None),
        ("127.0.0.1", {"X-User": "ann", "X-Forwarded-For": "10.0.0.5"}, None),
        ("testclient", {"X-User": "ann"}, None),
    ],
)
def test_a_named_proxy_alone_says_who_asks(
    folder: Path, address: str, headers: dict[str, str], expected: Person | None
) -> None:
    with asking(folder, identities=(BEHIND,)) as given:
        client = TestClient(given.app, ORIGIN, client=(address, 50_000), follow_redirects=False)
        answer = client.get(PAGE, headers=headers)
    if expected is None:
        assert answer.status_code == 401
    else:
        assert expected.name in answer.text
        assert expected.role in answer.text


def test_a_proxy_that_names_two_names_nobody(folder: Path) -> None:
    with asking(folder, identities=(BEHIND,)) as given:
        client = TestClient(given.app, ORIGIN, client=("10.0.0.5", 50_000))
        assert client.get(PAGE, headers=[("X-User", "vic"), ("X-User", "ann")]).status_code == 401


# Where it listens.


def test_an_address_that_others_reach_needs_a_way_to_know_them(tmp_path: Path) -> None:
    alone = ConsoleSettings(tokens=tmp_path / "tokens.json", hosts=("console.example",))
    for host in ("127.0.0.1", "::1", "localhost"):
        check_address(host, alone)
    for host in ("0.0.0.0", "::", "10.0.0.1", "console.example"):
        with pytest.raises(ConfigError, match="no way by which they are known"):
            check_address(host, alone)
    check_address("0.0.0.0", ConsoleSettings(tokens=alone.tokens, hosts=alone.hosts, proxy=PROXY))
    TokenFile(alone.tokens).create("ann", Role.OPERATOR)
    check_address("0.0.0.0", alone)
    with pytest.raises(ConfigError, match="no name"):
        check_address("0.0.0.0", ConsoleSettings(tokens=alone.tokens))


def test_cookies_go_by_https_alone_where_people_come_by_it(folder: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    _, secret = tokens.create("zoe", Role.VIEWER)
    with asking(folder, identities=(TokenIdentity(tokens),), url="https://book.example") as client:
        given = {"Host": "book.example"}
        answer = client.post("/login", headers=given, data={"token": secret})
    assert "Secure" in answer.headers["set-cookie"].split("; ")


# What an answer lets a browser do.


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}.json", "/nowhere", "/static/console.css", "/healthz"])
def test_every_answer_says_what_a_browser_may_do(folder: Path, path: str) -> None:
    with asking(folder) as client:
        answer = client.get(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    if "static" not in path:
        assert answer.headers["cache-control"] in ("no-store", "private, no-cache")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/%00",
        "/../../etc/passwd",
        "/runs/..;/metrics.json",
        "/%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_no_path_leads_out(folder: Path, path: str) -> None:
    with answering(folder) as (port, token):
        answer = raw_answer(
            port,
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Connection: close\r\n\r\n",
        )
    assert answer.split()[1] in ("400", "404")
    assert "root:" not in answer
    assert "create_app" not in answer


# Who may act.


def test_who_may_only_look_gets_no_book_to_act_on(folder: Path) -> None:
    with asking(folder) as client:
        console = console_of(client)
        assert console.book_to_act_on(ANN) is console.book_to_act_on(ANN)
        with pytest.raises(Forbidden, match="vic may look, but not act"):
            console.book_to_act_on(VIC)
    with asking(folder, read_only=True) as client, pytest.raises(Forbidden, match="read-only"):
        console_of(client).book_to_act_on(ANN)


@contextmanager
def answering(folder: Path) -> Iterator[tuple[int, str]]:
    """Answer on a socket, for what no client would send; yield the port and the token of the owner."""
    with served(folder) as (address, _):
        found = urlsplit(address)
        assert found.port is not None
        yield found.port, found.query.removeprefix("token=")


def raw_answer(port: int, text: str) -> str:
    """Send bytes as they are, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(text.encode("latin-1"))
        answer = b""
        while chunk := connection.recv(65_536):
            answer += chunk
    return answer.decode("latin-1")
