"""The archive of Spark's loaded classes, by which Java starts in half the time: made once, by itself.

It lies in the user's cache folder, under a name that stands for the Java, the Spark and the options that it
fits. A process that found none leaves one to be made when it ends: by a process of its own, with the lowest
priority. Java itself checks that an archive fits, and starts without one that does not.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from sealbook.spark.cache import cache_folder, draft_of, is_being_made, remove_unused

_KIND = "spark-classes"
_CLASSPATH_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH")
# A word about archives says nothing to whoever runs a command.
_SILENT = ("-Xlog:cds*=off", "-Xlog:class*=off")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive for one Java, one Spark and one set of options, which may not be there yet."""

    file: Path

    @classmethod
    def of(cls, java: Path, spark: Path, options: Sequence[str]) -> ClassArchive:
        """Return the archive that fits; `options` change which classes Java loads, or from where."""
        fits = json.dumps(
            [
                str(java),
                _state(java),
                _state(java.parents[1] / "release"),
                str(spark),
                sorted((jar.name, _state(Path(jar))) for jar in os.scandir(spark / "jars")),
                [os.environ.get(name) for name in _CLASSPATH_VARIABLES],
                list(options),
            ]
        )
        return cls(cache_folder() / f"{_KIND}-{sha256(fits.encode()).hexdigest()[:16]}.jsa")

    def java_options(self) -> list[str]:
        """Return the options by which Java uses the archive; none if it is not there."""
        if not self.file.is_file():
            return []
        try:
            os.utime(self.file)  # says which archives are in use
        except OSError as error:  # the cache may be read only
            _log.debug("the class archive cannot be marked as used: %s", error)
        return [f"-XX:SharedArchiveFile={self.file}", *_SILENT]

    def leave_to_be_made(self, configuration: Mapping[str, str]) -> None:
        """Have a process of its own make the archive, with Spark configured in this way."""
        subprocess.Popen(
            [sys.executable, "-m", "sealbook.spark.class_archive", str(self.file), json.dumps(configuration)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def make(self, configuration: Mapping[str, str]) -> None:
        """Make the archive, unless another process is at it."""
        from sealbook.spark.rehearsal import rehearse

        if is_being_made(self.file):
            return
        with draft_of(self.file) as draft:
            rehearse(configuration, [f"-XX:ArchiveClassesAtExit={draft}", *_SILENT])
        if self.file.exists():  # else there was no room
            remove_unused(_KIND, self.file.suffix)


def _state(file: Path) -> tuple[int, int] | None:
    """Return what tells that a file is another than before; None if there is none."""
    with suppress(FileNotFoundError):
        found = file.stat()
        return found.st_size, found.st_mtime_ns
    return None


if __name__ == "__main__":
    os.nice(19)
    ClassArchive(Path(sys.argv[1])).make(json.loads(sys.argv[2]))
