"""A Spark cluster on this machine: a master, workers, and a Python that has what Spark needs and no more."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pyspark
import pytest

from sealbook.spark.java import find_spark
from tests.support.cli import SEALBOOK, Ran

_HERE = "127.0.0.1"
_FOR_S3 = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "NO_PROXY")
_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master (\S+)")

_CONNECTED = re.compile(r"Spark Connect server started at: (\S+)")


@dataclass(frozen=True)
class Cluster:
    """A master, and a worker with one executor of one core."""

    url: str
    python: Path
    folder: Path

    def settings(self, python: Path | None = None, **others: object) -> dict[str, Any]:
        """Return what a book's `spark` says to work here; executors can reach the S3 server of the test."""
        config = {
            "spark.driver.host": _HERE,
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.pyspark.python": str(python or self.python),
            **{f"spark.executorEnv.{name}": os.environ[name] for name in _FOR_S3 if name in os.environ},
        }
        return {"master": self.url, "config": config, **others}

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[str]]:
        """Run another worker while the block lasts."""
        arguments = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder), self.url)
        with _daemon("worker.Worker", _REGISTERED, *arguments) as (process, _):
            yield process


def bare_python(folder: Path, *packages: str) -> Path:
    """Make a Python of the version of this one that has some packages of it, and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [there] = folder.glob("lib/python*/site-packages")
    here = Path(pyspark.__file__).parents[1]
    for package in packages:
        for part in (here / package, *here.glob(f"{package}-*.dist-info")):
            (there / part.name).symlink_to(part)
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster of this test process."""
    python = bare_python(tmp_path_factory.mktemp("bare"), "pyspark", "py4j", "pyarrow")
    with _daemon("master.Master", _STARTED) as (_, url):
        cluster = Cluster(url, python, tmp_path_factory.mktemp("work"))
        with cluster.worker():
            yield cluster


@pytest.fixture(scope="session")
def connect_server() -> Iterator[str]:
    """The address of a Spark Connect server whose Python is that of the tests."""
    settings = {
        "spark.master": "local[1]",
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.address": _HERE,
        "spark.connect.grpc.binding.port": str(_free_port()),
    }
    command = ["spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    with _running(_CONNECTED, *command, "spark-internal") as (_, address):
        yield f"sc://{address}"


def _free_port() -> int:
    """Return a port that nobody has: this server wants to be told one."""
    with socket.socket() as free:
        free.bind((_HERE, 0))
        port: int = free.getsockname()[1]
        return port


def _daemon(
    name: str, said: re.Pattern[str], *arguments: str
) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    """Run a part of a cluster while the block lasts."""
    here = ("--host", _HERE, "--port", "0", "--webui-port", "0")
    return _running(said, "spark-class", f"org.apache.spark.deploy.{name}", *here, *arguments)


@contextmanager
def _running(
    said: re.Pattern[str], program: str, *arguments: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a program of Spark while the block lasts; yield it, and what it has said by then."""
    process = subprocess.Popen(
        [find_spark() / "bin" / program, *arguments],
        env={
            **os.environ,
            "SPARK_LOCAL_IP": _HERE,
            "SPARK_DAEMON_MEMORY": "512m",
            "PYSPARK_PYTHON": sys.executable,
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process.stderr as lines:
        try:
            found = next(filter(None, map(said.search, lines)), None)
            assert found is not None, f"{program} ended with {process.wait()}"
            # It would wait for somebody to read what it says.
            reader = Thread(target=lambda: list(lines), daemon=True)
            reader.start()
            yield process, found[1]
        finally:
            process.kill()
            process.wait()
        reader.join()


def sealbook_on(cwd: Path, *arguments: str) -> Ran:
    """Run `sealbook` in a process of its own, with time for a cluster."""
    ended = subprocess.run([SEALBOOK, *arguments], cwd=cwd, capture_output=True, text=True, timeout=240)
    return Ran(ended.returncode, ended.stdout, ended.stderr)


def program_on(cwd: Path, code: str, environment: Mapping[str, str]) -> str:
    """Run a Python program, and return what it prints."""
    program = cwd / "program.py"
    program.write_text(code)
    ended = subprocess.run(
        [sys.executable, program],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
