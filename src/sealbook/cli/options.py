"""Options and arguments that several commands share; those that choose partitions are in `selecting`.

Here hyphens leave customer ids (R-KEY-2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from sealbook.cli.output import Format
from sealbook.errors import InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.horizons import IRREPLACEABLE
from sealbook.views.choosing import parse_key

T = TypeVar("T")

KEY_FORM = "SOURCE/CUSTOMER_ID/QUERY_NAME/YYYY-MM-DD"


def parsed_by(parse: Callable[[str], T]) -> Callable[[str | T], T]:
    """Make the model's own check the parser of an option, and its refusal wrong usage."""

    def parser(value: str | T) -> T:
        if not isinstance(value, str):  # Typer passes defaults through too
            return value
        try:
            return parse(value)
        except InvalidInput as error:
            raise typer.BadParameter(str(error)) from error

    return parser


def user_name() -> str:
    """Return the name of the user in front of the terminal, for the log."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        raise InvalidInput("your user has no name", field="actor", remedy="Give --actor.") from None


def is_confirmed(word: str | None) -> bool:
    """Tell whether the word that confirms was given; no other is one."""
    if word not in (None, IRREPLACEABLE):
        raise InvalidInput.of("confirm", word, IRREPLACEABLE)
    return word is not None


KeyArgument = Annotated[
    PartitionKey,
    typer.Argument(metavar="KEY", help=f"A partition, as {KEY_FORM}.", parser=parsed_by(parse_key)),
]
RunIdArgument = Annotated[RunId, typer.Argument(metavar="RUN_ID", help="The run.", parser=parsed_by(RunId))]
RunIdOption = Annotated[
    RunId | None,
    typer.Option("--run-id", "--run", metavar="ULID", help="This run.", parser=parsed_by(RunId)),
]
ResumedRunOption = Annotated[
    RunId | None,
    typer.Option("--run-id", "--run", metavar="ULID", help="Go on with this run.", parser=parsed_by(RunId)),
]
ReasonOption = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept in the log.")]
ActorOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who says so. Default: your user's name.")
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Leave out what is behind; at a cut, what was withdrawn since.")
]
CutOption = Annotated[str | None, typer.Option("--cut", metavar="TOKEN", help="Ask as of this cut.")]
FullOption = Annotated[
    bool,
    typer.Option("--full", help="Compare all states and pointers, not only those noted as changed."),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")]
ConfirmOption = Annotated[
    str | None,
    typer.Option(
        "--confirm",
        metavar=IRREPLACEABLE,
        help=f"Say `{IRREPLACEABLE}`, to take even the only copy of a day from consumers.",
    ),
]
LimitOption = Annotated[int | None, typer.Option(metavar="N", min=1, help="Show at most so many.")]
FormatOption = Annotated[Format, typer.Option("--format", help="For people, or for programs.")]
