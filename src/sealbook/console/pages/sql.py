"""A box for questions in SQL over what is published, and their answers as table, JSON and CSV."""

from __future__ import annotations

import shlex
import threading
from io import StringIO

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sealbook.book.sql_process import SqlAnswer, ask_in_process
from sealbook.console.answers import Answer
from sealbook.console.page import Ask, page
from sealbook.errors import Forbidden, InvalidInput, SealbookError, Transient
from sealbook.read.sandbox import Sandbox
from sealbook.views.sql_answer import objects_of, rows_of, write_csv

AT_ONCE = 2
"""Questions that are answered at a time; others wait, and not for ever."""

_MOST = 20_000
"""Characters of a question."""

_turns = threading.BoundedSemaphore(AT_ONCE)


def _gather(ask: Ask) -> Answer:
    text = ask.one("sql")
    command = f"sealbook sql {shlex.quote(text)}" if text else "sealbook sql 'select …'"
    shown = {"text": text or "", "limits": ask.console.settings.sql, "tables": _tables(ask)}
    shown |= {"columns": [], "rows": [], "is_cut": False, "is_answered": False, "failure": None}
    if text is None or _is_from_elsewhere(ask.request):
        return Answer([], command, shown)
    try:
        found = _answer(ask, text)
        objects = list(objects_of(found.table)) if _is_for_programs(ask.request) else []
    except SealbookError as error:
        if _is_for_programs(ask.request):
            raise
        return Answer([], command, shown | {"failure": error})  # beside the question, to be mended
    shown |= {"columns": found.table.column_names, "rows": rows_of(found.table, nested_as_text=True)}
    return Answer(objects, command, shown | {"is_cut": found.is_cut, "is_answered": True})


async def _csv(request: Request) -> Response:
    ask = Ask(request)

    def answer() -> str:
        text = ask.one("sql")
        if text is None or _is_from_elsewhere(request):
            raise InvalidInput("there is no question", field="sql", remedy="Ask on the page /sql.")
        file = StringIO()
        write_csv(_answer(ask, text).table, file)
        return file.getvalue()

    content = await run_in_threadpool(answer)
    disposition = {"Content-Disposition": 'attachment; filename="sealbook.csv"'}
    return Response(content, media_type="text/csv; charset=utf-8", headers=disposition)


def _answer(ask: Ask, text: str) -> SqlAnswer:
    """Answer in a process of its own, when it is its turn."""
    settings = ask.console.settings
    if not settings.show_rows:
        raise Forbidden(
            "this console shows no rows", remedy="Its settings say so: show_rows, in the section console."
        )
    if len(text) > _MOST:
        raise InvalidInput(f"the question is longer than {_MOST:,} characters", field="sql")
    limits = settings.sql
    sandbox = Sandbox(limits.seconds, limits.rows, limits.megabytes, settings.masked_columns)
    if not _turns.acquire(timeout=limits.seconds):
        raise Transient("others are asking; there is no turn for this question", remedy="Ask again.")
    try:
        return ask_in_process(ask.book.settings, text, sandbox)
    finally:
        _turns.release()


def _is_for_programs(request: Request) -> bool:
    return request.url.path.endswith(".json")


def _is_from_elsewhere(request: Request) -> bool:
    """Tell whether another site sent somebody here: what it asks is shown, and not carried out."""
    return request.headers.get("sec-fetch-site") == "cross-site"


def _tables(ask: Ask) -> dict[str, list[str]]:
    """Return the tables, each with its columns."""
    from sealbook.read.schema import all_columns

    return {f"{query.source}.{query.name}": list(all_columns(query)) for query in ask.book.queries}


routes = [Route("/sql.csv", _csv), *page("/sql", "sql.html", _gather, shared=False)]
