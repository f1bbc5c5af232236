"""One request to an HTTP API: its answer whole, within bounds of time and size, and from a trusted host.

The standard library does it, without its own handling of redirections and of status codes. No message has
more of a URL than its origin: the rest may be secret.
"""

from __future__ import annotations

import ssl
import time
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException, HTTPResponse, InvalidURL
from typing import cast
from urllib.error import URLError
from urllib.parse import quote, urljoin
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

from sealbook.errors import Permanent, SealbookError, Transient, first_line
from sealbook.extract.sources.http_json_options import origin_of

_CHUNK = 64 * 1024
_MOST_REDIRECTIONS = 5
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_KEEPS_METHOD = frozenset({307, 308})
_GZIP = 31  # zlib's word for it
_OF_A_URL = "/:?#[]@!$&'()*+,;=%~"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said."""

    status: int
    headers: Message
    body: bytes


class HttpClient:
    """Asks hosts that may be asked. Threads can share it: a connection serves one request."""

    def __init__(self, origins: Collection[str], *, timeout_seconds: float, most_bytes: int) -> None:
        self._origins = frozenset(origins)
        self._timeout_seconds = timeout_seconds
        self._most_bytes = most_bytes
        self._opener = OpenerDirector()
        for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler(context=ssl.create_default_context())):
            self._opener.add_handler(handler)

    def ask(self, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """Return an answer of whatever status; Transient or Permanent if there is none."""
        deadline = time.monotonic() + self._timeout_seconds
        for _ in range(_MOST_REDIRECTIONS + 1):
            origin = self._trusted(url)
            with self._open(url, origin, headers, body) as response:
                location = response.headers.get("Location")
                if response.status not in _REDIRECTIONS or location is None:
                    return Answer(response.status, response.headers, self._read(response, origin, deadline))
                if response.status not in _KEEPS_METHOD:
                    body = None
                url = urljoin(url, location)
        raise Permanent(f"{origin} redirects more than {_MOST_REDIRECTIONS} times")

    def _trusted(self, url: str) -> str:
        """Return the origin of a URL; Permanent if the credentials are not to go there."""
        try:
            origin = origin_of(url)
        except ValueError:
            raise Permanent("the API leads to what is no URL") from None
        if origin not in self._origins:
            raise Permanent(
                f"the API leads to {origin}, which is not the host that it was asked at",
                remedy=f"If it may have the credentials, add it: `origins: [{origin}]`.",
            )
        return origin

    def _open(self, url: str, origin: str, headers: Mapping[str, str], body: bytes | None) -> HTTPResponse:
        sent = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "sealbook",
        }
        if body is not None:
            sent["Content-Type"] = "application/json"
        request = Request(quote(url, safe=_OF_A_URL), body, {**sent, **headers})
        try:
            return cast(HTTPResponse, self._opener.open(request, timeout=self._timeout_seconds))
        except InvalidURL:  # without what it says: it quotes the URL
            raise Permanent(f"{origin} cannot be asked for such a path") from None
        except (URLError, OSError, HTTPException) as error:
            raise _unanswered(origin, error) from error

    def _read(self, response: HTTPResponse, origin: str, deadline: float) -> bytes:
        """Read an answer, unpack it if it is packed, and see that it is whole."""
        packed = response.headers.get("Content-Encoding", "identity").strip().lower()
        if packed not in ("identity", "gzip", "x-gzip", ""):
            raise Permanent(f"{origin} answers in the encoding {packed}, and was asked for gzip or none")
        unpack = zlib.decompressobj(_GZIP) if "gzip" in packed else None
        body = bytearray()
        try:
            while chunk := response.read1(_CHUNK):
                # One more than there may be, so that a small bomb does not grow large.
                room = self._most_bytes + 1 - len(body)
                body += chunk if unpack is None else unpack.decompress(chunk, room)
                if len(body) > self._most_bytes:
                    raise Permanent(
                        f"a page of {origin} has more than {self._most_bytes // 1024**2} MB",
                        remedy="Ask for smaller pages, or raise `page_megabytes`.",
                    )
                if time.monotonic() > deadline:
                    raise Transient(f"{origin} took more than {self._timeout_seconds:g} s for a page")
        except (OSError, HTTPException, zlib.error) as error:
            raise _unanswered(origin, error) from error
        if response.length or (unpack is not None and body and not unpack.eof):
            raise Transient(f"{origin} broke off in the middle of a page")
        return bytes(body)


def _unanswered(origin: str, error: Exception) -> SealbookError:
    cause = error.reason if isinstance(error, URLError) else error
    why = first_line(cause) if isinstance(cause, BaseException) else str(cause)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Permanent(
            f"the certificate of {origin} cannot be trusted: {cause.verify_message}",
            remedy="Set SSL_CERT_FILE to a file with the certificate of who issued it.",
        )
    return Transient(f"{origin} did not answer: {why}")
