"""The source files: which files make up a day, when that is complete, and what their rows are."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import tracemalloc
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealbook.config import SourceOptions
from sealbook.errors import ConfigError, NotFound, Permanent, SealbookError, Transient
from sealbook.extract.source import Row
from sealbook.extract.sources.files import FilesSource
from sealbook.model.contract import Query
from sealbook.raw.lines import encode_rows
from sealbook.storage import open_storage
from tests.support.sources import described, key_of

KEY = key_of("files")
FOLDER = "acme/2026-01-01"
MARKED = {"marker": "_SUCCESS"}


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest) -> str:
    """A folder or a prefix of a bucket: the test runs on both."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "drops")


def drop(place: str, files: Mapping[str, bytes | str], below: str = FOLDER) -> None:
    """Put files where somebody drops them."""
    _, storage = open_storage("files", place)
    for name, content in files.items():
        path = f"{below}/{name}" if below else name
        storage.put(path, content if isinstance(content, bytes) else content.encode(), draft=f"{path}.new")


def text(files: str = "{customer_id}/{logical_date}/*.csv", **more: object) -> dict[str, object]:
    return {"files": files, "complete": MARKED, **more}


def rows_of(place: str, asked: Query, **options: object) -> list[Row]:
    return list(FilesSource.from_options({"url": place, **options}).fetch(KEY, asked))


def lines_of(place: str, asked: Query, **options: object) -> list[str]:
    """Return rows as they are sealed."""
    return b"".join(encode_rows(rows_of(place, asked, **options))).decode().splitlines()


def failure(place: str, asked: Query, **options: object) -> SealbookError:
    with pytest.raises(SealbookError) as caught:
        rows_of(place, asked, **options)
    return caught.value


class TestWhenItIsComplete:
    """Nothing is read before all of it is there; and what is not there yet is asked for again later."""

    def test_by_a_marker(self, place: str) -> None:
        asked = described("files", text())
        drop(place, {"b.csv": "id\n3\n", "a.csv": "id\n1\n"})
        error = failure(place, asked, ask_again_seconds=600)
        assert str(error) == f"{KEY} is not complete yet: its marker {FOLDER}/_SUCCESS is not there"
        assert isinstance(error, Transient)
        assert error.retry_after == 600, "longer than a task waits: no try is spent on it"
        drop(place, {"_SUCCESS": "", "_temporary.csv": "id\n7\n", ".a.csv": "id\n8\n", "c.txt": "id\n9\n"})
        drop(place, {"deeper.csv": "id\n9\n"}, f"{FOLDER}/more")
        assert lines_of(place, asked) == ['{"id":1}', '{"id":3}']

    def test_a_complete_day_may_have_no_file(self, place: str) -> None:
        drop(place, {"_SUCCESS": ""})
        assert rows_of(place, described("files", text())) == []

    def test_but_not_if_it_is_named(self, place: str) -> None:
        drop(place, {"_SUCCESS": ""})
        error = failure(place, described("files", text("{customer_id}/{logical_date}/orders.csv")))
        assert isinstance(error, Transient)
        assert f"{FOLDER}/orders.csv is not there, but its marker is" in str(error)

    def test_a_marker_may_lie_elsewhere(self, place: str) -> None:
        asked = described("files", text(complete={"marker": "done/{logical_date:%Y%m%d}.{customer_id}"}))
        drop(place, {"a.csv": "id\n1\n"})
        assert "its marker done/20260101.acme is not there" in str(failure(place, asked))
        drop(place, {"20260101.acme": ""}, "done")
        assert lines_of(place, asked) == ['{"id":1}']

    def test_files_may_lie_at_the_top(self, place: str) -> None:
        drop(place, {"acme-2026-01-01.csv": "id\n1\n", "acme-2026-01-02.csv": "id\n2\n"}, "")
        asked = described("files", text("{customer_id}-{logical_date}.csv", complete={"files": 1}))
        assert lines_of(place, asked) == ['{"id":1}']
        several = described("files", text("{customer_id}-{logical_date}*.csv", complete={"files": 1}))
        assert lines_of(place, several) == ['{"id":1}']

    def test_by_a_number_of_files(self, place: str) -> None:
        asked = described("files", text(complete={"files": 2}))
        drop(place, {"a.csv": "id\n1\n"})
        assert f"1 of 2 files {FOLDER}/*.csv are there" in str(failure(place, asked))
        drop(place, {"b.csv": "id\n2\n"})
        assert lines_of(place, asked) == ['{"id":1}', '{"id":2}']
        drop(place, {"c.csv": "id\n3\n"})
        error = failure(place, asked)
        assert isinstance(error, Permanent)
        assert "there are 3 files" in str(error)

    @pytest.mark.parametrize("shape", [lambda files: files, lambda files: {"files": files, "by": "them"}])
    def test_by_a_manifest_in_its_order(self, place: str, shape: Any) -> None:
        asked = described("files", text(complete={"manifest": "manifest.json"}))
        first, second = b"id\n2\n", b"id\n1\n"
        drop(place, {"z.csv": first, "a.csv": second, "stray.csv": "id\n9\n"})
        assert "its manifest acme/2026-01-01/manifest.json is not there" in str(failure(place, asked))
        listed = [
            {"name": "z.csv", "size": len(first), "sha256": hashlib.sha256(first).hexdigest().upper()},
            {"name": "a.csv", "md5": hashlib.md5(second).hexdigest(), "rows": 1},
        ]
        drop(place, {"manifest.json": json.dumps(shape(listed))})
        assert lines_of(place, asked) == ['{"id":2}', '{"id":1}']


class TestAManifestThatIsNotKept:
    asked = described("files", text(complete={"manifest": "m.json"}))

    def given(self, place: str, *listed: object) -> SealbookError:
        drop(place, {"a.csv": "id\n1\n", "m.json": json.dumps(listed)})
        return failure(place, self.asked)

    def test_a_file_is_missing_or_still_being_written(self, folder: str) -> None:
        for listed, said in (
            ("b.csv", "b.csv is not there"),
            ({"name": "a.csv", "size": 99}, "a.csv has 5 bytes, not 99"),
        ):
            error = self.given(folder, listed)
            assert isinstance(error, Transient)
            assert error.retry_after == 900
            assert f"{said}, though its manifest is there" in str(error)

    @pytest.mark.parametrize("digest", [{"sha256": "0" * 64}, {"md5": "0" * 32}])
    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet"])
    def test_a_file_is_another_than_was_listed(
        self, folder: str, tmp_path: Path, name: str, digest: dict[str, str]
    ) -> None:
        """Rows may have been given by then: what is raised keeps them from being sealed."""
        pq.write_table(pa.table({"id": [1]}), tmp_path / "made")
        contents: dict[str, bytes] = {
            "a.csv": b"id\n1\n",
            "a.csv.gz": gzip.compress(b"id\n1\n"),
            "a.jsonl": b'{"id":1}\n',
            "a.parquet": (tmp_path / "made").read_bytes(),
        }
        drop(folder, {name: contents[name], "m.json": json.dumps([{"name": name, **digest}])})
        form = name.removesuffix(".gz").rpartition(".")[2]
        asked = described("files", text(complete={"manifest": "m.json"}, format=form))
        error = failure(folder, asked)
        assert isinstance(error, Permanent)
        assert f"{FOLDER}/{name} is not what its manifest says" in str(error)

    @pytest.mark.parametrize("name", ["../b.csv", "/etc/passwd", "x/../../b.csv", ""])
    def test_it_leads_elsewhere(self, folder: str, name: str) -> None:
        error = self.given(folder, name)
        assert isinstance(error, Permanent)
        assert "which is not beside it" in str(error)

    @pytest.mark.parametrize("content", ["", '[{"name": "a.c'])
    def test_it_is_just_being_written(self, folder: str, content: str) -> None:
        drop(folder, {"m.json": content})
        error = failure(folder, self.asked)
        assert isinstance(error, Transient)
        assert "m.json is not whole" in str(error)

    @pytest.mark.parametrize("content", ["5", '[{"nme": ""}]', '[{"name": "a.csv", "sha256": "x"}]'])
    def test_it_cannot_be_read(self, folder: str, content: str) -> None:
        drop(folder, {"m.json": content})
        error = failure(folder, self.asked)
        assert isinstance(error, Permanent)
        assert "m.json cannot be read" in str(error)


COLUMNS = {
    "id": "bigint", "name": "string", "price": "decimal(9,2)", "rate": "double", "open": "boolean",
    "day": "date", "tags": "array<string>", "extra": "json",
}  # fmt: skip


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


class TestCsv:
    def read(self, place: str, content: str | bytes, *, name: str = "a.csv", **more: Any) -> list[str]:
        drop(place, {name: content, "_SUCCESS": ""})
        return lines_of(place, described("files", text(**more), **COLUMNS))

    def test_a_cell_is_what_its_column_is(self, folder: str) -> None:
        head = "id,name,price,rate,open,day,tags,extra,other\n"
        good = '7,007,19.90,1.50,TRUE,2026-01-01,"[""a"", ""b""]","{""a"": 1.10}",5\n'
        odd = "007,,x,1e5,1,soon,a,b,c\n"
        assert self.read(folder, head + good + odd) == [
            (
                '{"id":7,"name":"007","price":"19.90","rate":1.50,"open":true,"day":"2026-01-01",'
                '"tags":["a","b"],"extra":{"a":1.10},"other":"5"}'
            ),
            (
                '{"id":"007","name":null,"price":"x","rate":1e5,"open":"1","day":"soon",'
                '"tags":"a","extra":"b","other":"c"}'
            ),
        ]

    def test_its_form_can_be_said(self, folder: str) -> None:
        form = {
            "delimiter": ";", "quote": "'", "nulls": ["", "NULL"], "names": ["id", "name"],
            "encoding": "latin-1",
        }  # fmt: skip
        assert self.read(folder, "1;'K\xf6ln;\n'\nNULL;x\n".encode("latin-1"), csv=form) == [
            '{"id":1,"name":"Köln;\\n"}',
            '{"id":null,"name":"x"}',
        ]

    def test_columns_can_be_chosen_and_named(self, folder: str) -> None:
        content = "\ufeffOrder ID,Name.of,x\n1,a,b\n\n"
        assert self.read(folder, content, columns={"name": "Name.of", "id": "Order ID"}) == [
            '{"name":"a","id":1}'
        ]

    def test_it_may_be_packed(self, folder: str) -> None:
        twice = gzip.compress(b"id\n1\n") + gzip.compress(b"2\n")
        assert self.read(folder, twice, name="a.csv.gz", files="{customer_id}/{logical_date}/*.csv.gz") == [
            '{"id":1}',
            '{"id":2}',
        ]

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(st.tuples(CELLS, CELLS), max_size=5), st.sampled_from([(",", '"'), (";", "'"), ("\t", "|")])
    )
    def test_text_comes_back_as_it_was(
        self, folder: str, rows: list[tuple[str, str]], form: tuple[str, str]
    ) -> None:
        """Whatever is in it: quotes, delimiters, lines."""
        written = io.StringIO()
        delimiter, quote = form
        writer = csv.writer(written, delimiter=delimiter, quotechar=quote)
        writer.writerows([("name", "other"), *rows])
        drop(folder, {"a.csv": written.getvalue(), "_SUCCESS": ""})
        said = text(csv={"delimiter": delimiter, "quote": quote, "nulls": []})
        found = rows_of(folder, described("files", said, name="string", other="string"))
        assert found == [{"name": name, "other": other} for name, other in rows]

    def test_a_file_without_a_line_has_no_rows(self, folder: str) -> None:
        assert self.read(folder, "") == []
        assert self.read(folder, "id\n") == []

    @pytest.mark.parametrize(
        ("content", "more", "said"),
        [
            ("id,name\n1\n", {}, "a.csv, line 2: 1 values for 2 columns"),
            ("id\n1\n2,3\n", {}, "a.csv, line 3: 2 values for 1 columns"),
            ("id,id\n1,2\n", {}, "the column 'id' is there twice"),
            ("id\n1\n", {"columns": {"id": "no"}}, "has no column 'no', but id"),
            ('id\n"1\n', {}, "a.csv cannot be read: unexpected end of data"),
            (b"id\n\xff\n", {}, "a.csv cannot be read: 'utf-8' codec"),
        ],
    )
    def test_what_cannot_be_read_is_named(self, folder: str, content: Any, more: Any, said: str) -> None:
        drop(folder, {"a.csv": content, "_SUCCESS": ""})
        error = failure(folder, described("files", text(**more), **COLUMNS))
        assert type(error) is Permanent
        assert said in str(error)

    @pytest.mark.parametrize("content", [b"id\n1\n", gzip.compress(b"id\n1\n", mtime=0)[:-3]])
    def test_what_is_not_packed_as_its_name_says(self, folder: str, content: bytes) -> None:
        drop(folder, {"a.csv.gz": content, "_SUCCESS": ""})
        error = failure(folder, described("files", text("{customer_id}/{logical_date}/*.csv.gz")))
        assert type(error) is Permanent
        assert "a.csv.gz cannot be read" in str(error)


def test_lines_of_json_are_handed_on_as_they_are(place: str) -> None:
    """Also what is none: the validator says which line that is."""
    content = b'{"id": 1,  "price": 1.10}\r\n\n[2]\nno json\n{"id": 3}'
    drop(place, {"a.jsonl": content, "_SUCCESS": ""})
    whole = text("{customer_id}/{logical_date}/*.jsonl")
    assert lines_of(place, described("files", whole)) == [
        '{"id": 1,  "price": 1.10}', "[2]", "no json", '{"id": 3}',
    ]  # fmt: skip
    chosen = described("files", {**whole, "columns": {"cost": "price"}}, cost="double")
    assert lines_of(place, chosen) == ['{"cost":1.10}', "[2]", "no json", "{}"]


def test_parquet_has_its_types(place: str, tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, 12, 30, 0, 5, UTC)
    table = pa.table(
        {
            "id": [1, None],
            "price": [Decimal("1.10"), None],
            "day": [date(2026, 1, 1), None],
            "at": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "fine": pa.array([1_767_225_600_000_000_999, None], pa.timestamp("ns")),
            "to": [{"city": "Köln"}, None],
            "tags": [["a", "b"], []],
            "by": pa.array([[("x", 1)], None], pa.map_(pa.string(), pa.int64())),
            "raw": [b"\x00\xff", None],
        }
    )
    pq.write_table(table, tmp_path / "made.parquet", row_group_size=1)
    drop(place, {"a.parquet": (tmp_path / "made.parquet").read_bytes(), "_SUCCESS": ""})
    whole = text("{customer_id}/{logical_date}/*.parquet")
    assert lines_of(place, described("files", whole)) == [
        (
            '{"id":1,"price":"1.10","day":"2026-01-01","at":"2026-01-01T12:30:00.000005Z",'
            '"fine":"2026-01-01T00:00:00","to":{"city":"Köln"},"tags":["a","b"],"by":{"x":1},"raw":"AP8="}'
        ),
        '{"id":null,"price":null,"day":null,"at":null,"fine":null,"to":null,"tags":[],"by":null,"raw":null}',
    ]
    columns = {"city": "to.city", "order_id": "id"}
    chosen = described("files", {**whole, "columns": columns}, city="string", order_id="bigint")
    assert lines_of(place, chosen) == ['{"city":"Köln","order_id":1}', '{"city":null,"order_id":null}']
    drop(place, {"b.parquet": "no parquet"})
    error = failure(place, described("files", whole))
    assert type(error) is Permanent
    assert "b.parquet cannot be read" in str(error)


def test_a_file_that_grows_while_it_is_read_is_read_again(folder: str) -> None:
    drop(folder, {"a.csv": "id\n1\n", "b.csv": "id\n2\n", "_SUCCESS": ""})
    rows = FilesSource.from_options({"url": folder}).fetch(KEY, described("files", text()))
    next(rows)
    (Path(folder) / FOLDER / "b.csv").write_text("id\n2\n3\n")
    with pytest.raises(Transient, match=r"b\.csv changed while it was read"):
        list(rows)


def test_a_file_is_read_a_piece_at_a_time(folder: str) -> None:
    rows = 20_000
    packed = gzip.compress(b"id,name\n" + b"".join(b"%d,%s\n" % (n, b"x" * 1_000) for n in range(rows)), 1)
    drop(folder, {"a.csv.gz": packed, "_SUCCESS": ""})
    asked = described("files", text("{customer_id}/{logical_date}/*.csv.gz"))
    found = FilesSource.from_options({"url": folder}).fetch(KEY, asked)
    next(found)  # what is imported and opened by now does not count
    tracemalloc.start()
    try:
        assert sum(1 for _ in found) == rows - 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024**2, "of 20 MB"


def test_a_folder_is_relative_to_the_book_and_is_not_made(tmp_path: Path) -> None:
    drop(str(tmp_path / "drops"), {"a.csv": "id\n1\n", "_SUCCESS": ""})
    source = FilesSource.from_options(SourceOptions({"url": "drops"}, tmp_path))
    assert len(list(source.fetch(KEY, described("files", text())))) == 1
    absent = FilesSource.from_options(SourceOptions({"url": "other"}, tmp_path))
    for ask in (lambda: absent.check([]), lambda: list(absent.fetch(KEY, described("files", text())))):
        with pytest.raises(ConfigError, match=f"there is no folder {tmp_path}/other"):
            ask()
    assert not (tmp_path / "other").exists()


def test_a_bucket_that_there_is_not(s3_url: str) -> None:
    source = FilesSource.from_options({"url": f"{s3_url.rpartition('/')[0]}x/drops"})
    with pytest.raises(NotFound):
        source.check([])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "url: the field is missing"),
        ({"url": "x", "complete": {}}, "complete: one of `marker`, `manifest` and `files`"),
        ({"url": "x", "complete": {"marker": "a", "files": 1}}, "complete: one of `marker`"),
        ({"url": "x", "complete": {"marker": "{x}"}}, "complete.marker: template"),
        ({"url": "x", "format": "xml"}, "format: 'xml' is not one of csv, jsonl, parquet"),
        ({"url": "x", "csv": {"delimiter": ";;"}}, "csv.delimiter"),
        ({"url": "x", "csv": {"encoding": "klingon"}}, "csv: there is no encoding 'klingon'"),
        ({"url": "x", "csv": {"names": ["a", "a"]}}, "csv: a name stands twice"),
    ],
    ids=str,
)
def test_wrong_options_are_named(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FilesSource.from_options(options)
    assert f"options of source files: {said}" in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{customer_id}/*.csv", "text: the files do not say where the day goes"),
        ("{logical_date}/*.csv", "text: nothing says when a day is complete"),
        (text("{logical_date}/*.txt"), "text: the name of the files does not tell what they are"),
        (text("{logical_date}/"), "text: files are named by a path below the URL"),
        (text("/{logical_date}/a.csv"), "text: files are named by a path below the URL"),
        (text("../{logical_date}/a.csv"), "text: files are named by a path below the URL"),
        (text("*/{logical_date}.csv"), "text: only the last name"),
        (text(complete={"marker": [5]}), "text.complete.marker: expected text"),
        (text(forms=1), "text.forms: there is no such field"),
        (text(columns={"ido": "id"}), "text.columns.ido: no contract of the query has this column"),
    ],
    ids=str,
)
def test_wrong_texts_are_named(tmp_path: Path, wrong: object, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FilesSource.from_options({"url": str(tmp_path)}).check([described("files", wrong)])
    assert f"query orders: {said}" in str(caught.value)
