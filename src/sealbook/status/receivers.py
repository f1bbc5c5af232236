"""Who is told of alerts: a command, which gets them on its standard input, or an address, by a POST."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import IO, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sealbook.config.settings import AlertSettings
from sealbook.errors import Permanent, SealbookError, Transient, first_line

PATIENCE_SECONDS = 60.0
"""How long a receiver may take for a batch."""

_KEPT = "What it was not told is kept, and sent by the next `sealbook status alerts --send`."


class Receiver(Protocol):
    """Takes a batch whole, or raises an error, and is then told of it again."""

    def take(self, batch: bytes) -> None:
        """Take a JSON list of notices."""


@dataclass(frozen=True, slots=True)
class CommandReceiver:
    """A command that has taken the batch when it ends with 0."""

    command: tuple[str, ...]
    folder: Path

    def take(self, batch: bytes) -> None:
        """Run the command in the folder of the book, with the batch as its standard input."""
        name = self.command[0]
        try:
            ended = subprocess.run(
                self.command, input=batch, cwd=self.folder, capture_output=True, timeout=PATIENCE_SECONDS
            )
        except OSError as error:
            raise Permanent(
                f"alerts: the command {name} cannot be run: {error.strerror}",
                remedy=f"Correct alerts.command. {_KEPT}",
            ) from error
        except subprocess.TimeoutExpired as error:
            raise Transient(
                f"alerts: the command {name} took more than {PATIENCE_SECONDS:.0f} s", remedy=_KEPT
            ) from error
        if ended.returncode:
            said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
            last = f": {said[-1]}" if said else ""
            raise Transient(
                f"alerts: the command {name} ended with exit code {ended.returncode}{last}", remedy=_KEPT
            )


@dataclass(frozen=True, slots=True)
class HttpReceiver:
    """An address that has taken the batch when it answers with 2xx."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    section: str = "alerts"
    """The part of the settings that has the address."""
    kept: str = _KEPT
    patience: float = PATIENCE_SECONDS

    def take(self, batch: bytes) -> None:
        """POST the batch."""
        headers = {"Content-Type": "application/json", "User-Agent": "sealbook", **self.headers}
        request = Request(self.url, data=batch, headers=headers, method="POST")
        try:
            with build_opener(_NoRedirect).open(request, timeout=self.patience) as answer:
                answer.read()
        except HTTPError as error:
            with error:
                raise self._refused(error.code) from error
        except (URLError, OSError, HTTPException) as error:
            cause = error.reason if isinstance(error, URLError) else error
            why = first_line(cause) if isinstance(cause, BaseException) else str(cause)
            raise Transient(
                f"{self.section}: {self._host} did not answer: {why}", remedy=self.kept
            ) from error

    def _refused(self, code: int) -> SealbookError:
        said = f"{self.section}: {self._host} answered {code}"
        if code >= 500 or code in (408, 425, 429):
            return Transient(said, remedy=self.kept)
        return Permanent(said, remedy=f"Correct {self.section}.url and {self.section}.headers. {self.kept}")

    @property
    def _host(self) -> str:
        """The address as far as it can be shown: what comes after the host may be a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}{'' if parts.port is None else f':{parts.port}'}"


class _NoRedirect(HTTPRedirectHandler):
    """A POST that is sent elsewhere would arrive there as a GET, without its body."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Follow no redirection: it is an answer like any other that is not 2xx."""


def receiver_of(settings: AlertSettings, folder: Path) -> Receiver:
    """Return the receiver that is configured; a command is run in the folder."""
    if settings.command is not None:
        return CommandReceiver(settings.command, folder)
    return HttpReceiver(settings.url or "", settings.headers)
