"""The text of a GAQL query for several days, made of the one for a day where each day gets the same rows."""

from __future__ import annotations

import re
from datetime import date

PLACEHOLDER = "{logical_date}"
DAYS_PER_REQUEST = 31
"""A month: few enough that a stream that breaks is soon had again."""

_DAY = "segments.date"
_OF_ONE_DAY = frozenset({"click_view"})
"""Resources that the API gives for one day at a time only."""

_CONDITION = re.compile(r"(?<![\w.])segments\.date\s*=\s*(['\"])\{logical_date\}\1")
_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_QUERY = re.compile(
    r"\s*SELECT\s(?P<fields>.*?)\sFROM\s+(?P<resource>\w+)\s+WHERE\s(?P<conditions>.*?)"
    r"(?P<end>(?:\sORDER\s+BY\s(?P<order>.*?))?)(?:\sPARAMETERS\s.*)?\s*",
    re.DOTALL | re.IGNORECASE,
)
_LIMIT = re.compile(r"\sLIMIT\s", re.IGNORECASE)


def bind_range(text: str, first: date, last: date) -> str | None:
    """Return the text that asks for all days from `first` to `last`, in order; None if it must be each alone.

    The query has to select `segments.date`. To add it would be another query: Google Ads leaves out rows
    without metrics where a segment is selected, and gives them where it is only compared.
    """
    bare = _LITERAL.sub(lambda literal: "'" * len(literal[0]), text)  # what is quoted is no clause
    query, conditions = _QUERY.fullmatch(bare), list(_CONDITION.finditer(text))
    if query is None or len(conditions) != 1 or text.count(PLACEHOLDER) != 1 or _LIMIT.search(bare):
        return None
    [day] = conditions
    if not query.start("conditions") <= day.start() < query.end("conditions") or bare[day.start()] == "'":
        return None
    order = query["order"]
    if not _selects_day(query["fields"]) or query["resource"] in _OF_ONE_DAY or _DAY in (order or ""):
        return None
    between = f"{_DAY} BETWEEN '{first}' AND '{last}'"
    if order is None:
        end = query.start("end")
        return f"{text[: day.start()]}{between}{text[day.end() : end]} ORDER BY {_DAY}{text[end:]}"
    begin = query.start("order")
    return f"{text[: day.start()]}{between}{text[day.end() : begin]}{_DAY}, {text[begin:]}"


def _selects_day(fields: str) -> bool:
    return _DAY in (field.strip() for field in fields.split(","))
