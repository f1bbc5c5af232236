"""What executors say of themselves, and for what they are refused: in one sentence."""

from __future__ import annotations

import sys
import sysconfig
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

import sealbook
from sealbook.config import SOURCE_ENTRY_POINTS, SparkSettings
from sealbook.errors import ConfigError
from sealbook.spark import executors
from sealbook.spark.executors import _cannot_run, _check, _looking

GOOD = {
    "python": "/usr/bin/python3 on node-1",
    "platform": sysconfig.get_platform(),
    "pyspark": pyspark.__version__,
    "pyarrow": "99.0",
    "sealbook": sealbook.__version__,
}
THEIRS = "the executors' Python, /usr/bin/python3 on node-1,"


def refused(said: dict[str, str], *, ship: bool = True) -> ConfigError:
    with pytest.raises(ConfigError) as error:
        _check(said, SparkSettings(ship_packages=ship))
    assert error.value.remedy
    return error.value


def test_an_executor_that_has_all_is_taken() -> None:
    _check(GOOD, SparkSettings())
    _check(GOOD, SparkSettings(ship_packages=False))


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"pyspark": "3.5.1"}, f"{THEIRS} has PySpark 3.5.1, and this is {pyspark.__version__}"),
        ({"pyarrow": "19.0.1"}, f"{THEIRS} has pyarrow 19.0.1, which is too old"),
        ({"sealbook": "0.0.1"}, f"{THEIRS} has Sealbook 0.0.1, and this is {sealbook.__version__}"),
        ({"lacks": "source shop", "because": "no x"}, f"{THEIRS} lacks source shop: no x"),
    ],
)
def test_one_that_has_not_is_refused(other: dict[str, str], sentence: str) -> None:
    for ship in (True, False):
        assert str(refused({**GOOD, **other}, ship=ship)) == sentence


def test_one_without_pyarrow_is_refused() -> None:
    said = {name: value for name, value in GOOD.items() if name not in ("pyarrow", "sealbook")}
    assert str(refused(said | {"lacks": "pyarrow", "because": "?"})) == f"{THEIRS} lacks pyarrow"


def test_packages_are_not_sent_to_another_platform() -> None:
    other = GOOD | {"platform": "macosx-14.0-arm64", "lacks": "msgspec", "because": "?"}
    assert "is for macosx-14.0-arm64, and packages from here for" in str(refused(other))
    assert "lacks msgspec" in str(refused(other, ship=False))


@pytest.mark.parametrize(
    ("modules", "sources", "lacks"),
    [
        (("json", "sealbook", "no_such_module", "csv"), ("demo",), "no_such_module"),
        (("sealbook",), ("demo", "no_such"), "source no_such"),
        (("sealbook",), ("demo",), None),
    ],
)
def test_an_executor_says_what_it_lacks(
    modules: tuple[str, ...], sources: tuple[str, ...], lacks: str | None
) -> None:
    said = _looking(modules, SOURCE_ENTRY_POINTS, sources)(0)
    assert said.get("lacks") == lacks
    assert said["sealbook"] == sealbook.__version__
    assert sys.executable in said["python"]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] has different version: 3.9 than that in driver: 3.11, PySpark cannot",
            f"the executors have Python 3.9, and this is {sys.version_info[0]}.{sys.version_info[1]}",
        ),
        (
            'java.io.IOException: Cannot run program "python9": error=2',
            "the executors have no Python python9",
        ),
        ("Job aborted\nOSError: no room", "the executors of spark://x cannot run tasks: OSError: no room"),
    ],
)
def test_executors_that_run_no_python_are_refused(said: str, sentence: str) -> None:
    context: Any = SimpleNamespace(master="spark://x")
    assert str(_cannot_run(RuntimeError(said), context)) == sentence


def test_executors_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Context:
        """One that can be remembered."""

    sent: list[object] = []
    monkeypatch.setattr(executors, "_send", lambda *_: sent.append(1))
    monkeypatch.setattr(executors, "_look", lambda *_: [GOOD])
    context: Any = Context()
    for _ in range(2):
        executors.prepare_executors(context, SparkSettings())
    assert len(sent) == 1
