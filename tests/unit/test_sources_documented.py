"""Every option of the sources that YAML describes is in docs/reference/sources.md with its default."""

from __future__ import annotations

import re

import msgspec
import pytest

from sealbook.extract.sources import files_options, http_json_options, http_json_paging
from tests.support.pages import DOCS, shown_default

PAGE = (DOCS / "reference" / "sources.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##+ |\Z)", PAGE, re.MULTILINE | re.DOTALL))
PLACES: dict[type[msgspec.Struct], str] = {
    http_json_options.HttpJsonOptions: "http_json.options",
    http_json_options.FromEnvironment: "http_json.options.headers",
    http_json_options.Statuses: "http_json.options.statuses",
    http_json_options.RateLimit: "http_json.options.rate_limit",
    http_json_options.Request: "http_json.text",
    http_json_paging.ByLink: "paging by link",
    http_json_paging.ByCursor: "paging by cursor",
    http_json_paging.ByPage: "paging by page",
    http_json_paging.ByOffset: "paging by offset",
    files_options.FilesOptions: "files.options",
    files_options.Complete: "files.options.complete",
    files_options.CsvForm: "files.options.csv",
    files_options.Drop: "files.text",
}


def test_every_struct_has_its_section() -> None:
    structs = {
        value
        for module in (http_json_options, http_json_paging, files_options)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    }
    assert structs == set(PLACES)
    assert list(SECTIONS) == list(PLACES.values())


@pytest.mark.parametrize("struct", PLACES)
def test_every_field_is_explained_with_its_default(struct: type[msgspec.Struct]) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| .+ \|$", SECTIONS[PLACES[struct]], re.MULTILINE)
    assert rows == [(field.name, shown_default(field)) for field in msgspec.structs.fields(struct)]
