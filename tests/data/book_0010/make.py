"""Make the book of revision 0010, with the code of then: `python make.py LEDGER_URL FOLDER`.

Run it with the source tree of commit cfaeb32 as PYTHONPATH. Nothing runs it any more: the book is kept so
that what was written then, and not what would be written now, is what the tests carry over.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from sealbook.extract.sources.demo import demo_configuration

DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]
ROWS = "select * from campaign_daily order by customer_id, logical_date, campaign_id, segments_device"
QUESTIONS = [
    ["state", "inspect"],
    *(
        ["state", "history", f"demo/{customer}/campaign_daily/{day}"]
        for customer in ("1001", "1003")
        for day in DAYS
    ),
    ["runs", "list"],
    ["coverage"],
    ["coverage", "--strict"],
    ["coverage", "--cut", "before"],
    ["warehouse", "plan"],
    ["warehouse", "pointers"],
    ["warehouse", "records"],
    ["warehouse", "cut", "list"],
    ["warehouse", "cut", "show", "before"],
    ["raw", "list"],
    ["ledger", "verify"],
    ["warehouse", "verify"],
    ["sql", ROWS],
    ["sql", "--cut", "before", ROWS],
]


class Book:
    """A book in a folder, as a user works on it."""

    def __init__(self, folder: Path, ledger_url: str) -> None:
        self.folder = folder
        self.ledger_url = ledger_url

    def write(self, *faults: dict[str, Any], restatement: int = 0, most_rows: int = 100) -> None:
        """Write the settings."""
        catalogue = yaml.safe_load(demo_configuration())
        query = catalogue["queries"]["campaign_daily"]
        query["contracts"]["1"]["row_count"] = {"min": 1, "max": most_rows}
        settings = {
            "ledger": self.ledger_url,
            "sources": {
                "demo": {
                    "queries": "demo.yaml",
                    "customers": ["1001", "1003", "1005"],
                    "options": {"rows": 5, "restatement": restatement, "faults": list(faults)},
                }
            },
            "spark": {"master": "local[2]"},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "sealbook.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
        catalogue = {"source": "demo", "queries": {"campaign_daily": query}}
        (self.folder / "demo.yaml").write_text(yaml.safe_dump(catalogue, sort_keys=False))

    def call(self, *arguments: str, code: int = 0) -> None:
        """Run a command; it must end as expected."""
        ended = self._run(*arguments)
        if ended.returncode != code:
            raise SystemExit(f"{arguments}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}")

    def ask(self, *question: str) -> dict[str, Any]:
        """Ask a question, and return it with its answer."""
        ended = self._run(*question, "--format", "json")
        return {"question": question, "code": ended.returncode, "answer": json.loads(ended.stdout)}

    def newest_run(self) -> str:
        """Return the run that was opened last."""
        newest: str = self.ask("runs", "list")["answer"][0]["runId"]
        return newest

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sealbook", *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True)


def make(book: Book) -> None:
    """Let happen to partitions what can happen to them."""
    days = ("--since", DAYS[0], "--until", DAYS[-1])
    bad = {"kind": "malformed", "customers": ["1003"], "dates": [DAYS[1]]}
    disabled = {"kind": "permanent", "customers": ["1005"]}
    book.write(bad, disabled)
    book.call("run", *days, code=3)
    first = book.newest_run()
    book.call("warehouse", "cut", "create", "before", "--note", "all as it was first loaded")
    # 1001 has every day anew: replaced. Its second day is then rolled back, and its third is demoted.
    book.write(bad, disabled, restatement=2)
    book.call("run", "--customer-id", "1001", *days)
    book.call(
        *("state", "rollback", f"demo/1001/campaign_daily/{DAYS[1]}", "--to", first),
        *("--reason", "conversions look wrong", "--actor", "kim"),
    )
    book.write(bad, disabled, restatement=2, most_rows=4)
    book.call("validate", f"demo/1001/campaign_daily/{DAYS[2]}", "--revalidate", code=3)
    # A retry of 1003 that fails hides nothing, and its last day is sealed and judged, but not loaded.
    book.write({"kind": "malformed", "customers": ["1003"]}, restatement=3)
    book.call("run", "--customer-id", "1003", "--day", DAYS[0], code=1)
    book.write(restatement=4)
    book.call("extract", "--customer-id", "1003", "--day", DAYS[2])
    book.call("validate", f"demo/1003/campaign_daily/{DAYS[2]}")
    # A run that somebody gave up on, after it had sealed what it set out to do.
    book.call("extract", "--customer-id", "1005", "--day", DAYS[2])
    given_up = book.newest_run()
    book.call("runs", "cancel", given_up, "--reason", "not needed after all", "--actor", "kim")
    book.call("project", "run")


def main() -> None:
    """Make it, and write down what it says of itself."""
    book = Book(Path(sys.argv[2]), sys.argv[1])
    make(book)
    answers = [book.ask(*question) for question in QUESTIONS]
    (book.folder / "answers.json").write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    main()
