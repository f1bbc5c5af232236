"""`sealbook console token`: by which people and programs a console knows others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.invocation import load_settings
from sealbook.cli.options import FormatOption, parsed_by
from sealbook.cli.output import Format, message, show, show_json, show_object
from sealbook.console.security.people import Role
from sealbook.model.spans import parse_span
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.cli.table import Column
    from sealbook.console.security.tokens import Token, TokenFile

app = typer.Typer(help="Tokens by which a console knows who asks.", no_args_is_help=True)

_CREATE_EXAMPLES = """
[bold]Examples[/bold]
  sealbook console token create ann --role operator
  sealbook console token create prometheus --expires 365d
"""
_REVOKE_EXAMPLES = """
[bold]Examples[/bold]
  sealbook console token revoke ann
"""


@app.command(epilog=_CREATE_EXAMPLES)
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is: the name in the audit log.")],
    role: Annotated[Role, typer.Option(help="What it lets them do: look, or act as well.")] = Role.VIEWER,
    expires: Annotated[
        str | None, typer.Option(metavar="SPAN", help="After how long it runs out, such as 90d.")
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Make a token and print it, this once: only its hash is kept."""
    lasts = None if expires is None else parsed_by(lambda text: parse_span("expires", text))(expires)
    token, secret = _tokens(ctx).create(name, role, lasts)
    if form is Format.JSON:
        show_object({**token.to_dict(), "token": secret})
    else:
        typer.echo(secret)
    message(f"Token {token.id} of {token.name}, {token.role}. It is not shown again.")


@app.command("list")
def list_(ctx: typer.Context, form: FormatOption = Format.TABLE) -> None:
    """List the tokens, the oldest first: whose they are, their role, and when they run out."""
    found = _tokens(ctx).all()
    if form is Format.JSON:
        show_json(each.to_dict() for each in found)
    else:
        show(found, _columns(), form)
    if not found:
        message("There is no token.")


@app.command(epilog=_REVOKE_EXAMPLES)
def revoke(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TOKEN", help="The id of a token, or whose they are.")],
) -> None:
    """Take a token out, or all of a name: a console that runs refuses them from then on."""
    gone = _tokens(ctx).revoke(name)
    message(f"{counted(len(gone), 'token')} of {gone[0].name} revoked.")


def _tokens(ctx: typer.Context) -> TokenFile:
    from sealbook.console.security.tokens import TokenFile

    return TokenFile(load_settings(ctx).console.tokens)


def _columns() -> list[Column[Token]]:
    from sealbook.cli.table import Column

    return [
        Column("id", lambda each: each.id),
        Column("name", lambda each: each.name),
        Column("role", lambda each: each.role),
        Column("created (UTC)", lambda each: each.created_at),
        Column("runs out (UTC)", lambda each: each.expires_at or "never"),
    ]
