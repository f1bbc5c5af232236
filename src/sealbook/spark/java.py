"""The Java process behind the Spark session: started by us, in a group of its own, and ended by us.

PySpark's own start leaves it to itself: if Python is stopped before Java has answered, Java never ends.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any

from sealbook.errors import ConfigError
from sealbook.stopping import end_at_stop, uninterrupted

_JAVA_REMEDY = "Install Java 17 or newer, or set JAVA_HOME to one; `scripts/ensure-java` helps."
_LEAST_JAVA = 17
_VERSION = re.compile(r'version "((?P<major>\d+)[^"]*)"')
_STDERR = 2
_INCUBATOR_NOTICE = b"WARNING: Using incubator modules"
_SECONDS_TO_END = 3.0
_SECONDS_BETWEEN_LOOKS = 0.01


def find_java() -> Path:
    """Return the `java` that Spark will use; ConfigError if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java" if home is None else str(Path(home) / "bin" / "java"))
    if found is None:
        where = "on PATH" if home is None else f"in JAVA_HOME, which is {home}"
        raise ConfigError(f"Spark needs Java, and there is none {where}", remedy=_JAVA_REMEDY)
    return Path(found).resolve()


def java_version() -> str:
    """Return the version of that `java`; ConfigError if it does not answer, or is too old for Spark."""
    java = find_java()
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{java} cannot be run: {error}", remedy=_JAVA_REMEDY) from error
    found = _VERSION.search(said)
    if found is None:
        raise ConfigError(f"{java} does not say its version", remedy=_JAVA_REMEDY)
    if int(found["major"]) < _LEAST_JAVA:
        raise ConfigError(f"{java} is Java {found[1]}, which is too old for Spark", remedy=_JAVA_REMEDY)
    return found[1]


def find_spark() -> Path:
    """Return the folder that Spark is in, without importing PySpark."""
    home = os.environ.get("SPARK_HOME")
    if home is not None:
        return Path(home)
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigError("PySpark is not installed", remedy="Install it: pip install pyspark")
    return Path(spec.origin).parent


class JavaProcess:
    """A gateway for PySpark. It ends when this process does, however that happens, or when it is told to."""

    def __init__(self, configuration: Mapping[str, str], environment: Mapping[str, str]) -> None:
        find_java()
        self._folder = TemporaryDirectory(prefix="sealbook-java-")
        self._answer = Path(self._folder.name) / "gateway"
        self._said = _Said()
        self._ending: Thread | None = None
        self._has_answered = False
        self._lock = Lock()
        command = [str(find_spark() / "bin" / "spark-submit")]
        for name, value in sorted(configuration.items()):
            command += ["--conf", f"{name}={value}"]
        with uninterrupted(), self._said:
            # A session of its own: Ctrl-C in a terminal goes to us alone, and all of it can be ended at once.
            # It keeps none of our streams open, and the end of its stdin tells it that this process has gone.
            self._process = subprocess.Popen(
                [*command, *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))],
                stdin=subprocess.PIPE,
                stdout=self._said.file_descriptor,
                stderr=self._said.file_descriptor,
                env={
                    **os.environ,
                    **environment,
                    "SPARK_CONNECT_MODE": "0",
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._answer),
                },
                start_new_session=True,
            )
            end_at_stop(self)
        atexit.register(self._end_if_unanswered)

    def gateway(self) -> Any:
        """Wait until Java answers, and return PySpark's way to it; ConfigError says why it does not."""
        port, secret = self._connection()
        from pyspark.java_gateway import launch_gateway

        # How a gateway that is there already is handed to PySpark.
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
        try:
            return launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]

    def finish(self) -> None:
        """Have Java end as it does when this process has gone, and return when it has ended."""
        self._process.communicate()

    @property
    def is_running(self) -> bool:
        """Say whether Java is there, and was not told to end."""
        return self._ending is None and self._process.poll() is None

    def end(self) -> None:
        """Have Java end, and all that it started. Returns at once; asked again, it does not get any time."""
        with self._lock:
            if self._ending is not None:
                self._signal(signal.SIGKILL)
                return
            self._said.hush()
            self._signal(signal.SIGTERM)
            self._ending = Thread(target=self._kill_if_slow, name="java-end", daemon=True)
        self._ending.start()

    def wait(self) -> None:
        """Return when Java, told to end, has ended."""
        if self._ending is not None:
            self._ending.join()

    def _connection(self) -> tuple[int, str]:
        from pyspark.serializers import UTF8Deserializer, read_int

        while not self._answer.is_file():
            if self._process.poll() is not None:
                raise ConfigError(f"Spark could not start: {self._said.first_line()}", remedy=_JAVA_REMEDY)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        with self._folder, self._answer.open("rb") as answer:
            self._has_answered = True
            return read_int(answer), UTF8Deserializer().loads(answer)  # type: ignore[no-untyped-call]

    def _end_if_unanswered(self) -> None:
        """Without the folder for its answer, which goes with this process, Java would not end by itself."""
        if not self._has_answered:
            self.end()
            self.wait()

    def _signal(self, number: int) -> None:
        if self._process.poll() is None:  # else its number may be another's by now
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _kill_if_slow(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_SECONDS_TO_END)
        self._signal(signal.SIGKILL)
        self._process.wait()


class _Said:
    """What Java writes, passed on to stderr but for a notice that says nothing to anybody."""

    def __init__(self) -> None:
        read, self.file_descriptor = os.pipe()
        self._first_line = b""
        self._is_hushed = False
        self._thread = Thread(target=self._pass_on, args=(read,), name="java-said", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        """Leave the writing end to the process that inherited it."""
        os.close(self.file_descriptor)

    def hush(self) -> None:
        """Pass nothing on any more."""
        self._is_hushed = True

    def first_line(self) -> str:
        """Return the first that the process said, once it has ended."""
        self._thread.join(timeout=5)
        return self._first_line.decode(errors="replace").strip() or "Java ended without a word"

    def _pass_on(self, read: int) -> None:
        with os.fdopen(read, "rb") as pipe:
            for line in pipe:
                self._first_line = self._first_line or line
                if not self._is_hushed and not line.startswith(_INCUBATOR_NOTICE):
                    os.write(_STDERR, line)
