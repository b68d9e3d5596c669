"""``cloister keys new | show | renew``: an organisation's identity, and the certificate that it uses for TLS."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.cli.failures import guard
from cloister.cli.output import AsJson, print_json
from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.credentials import OwnKeys, PublicKeyFile

keys_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="This organisation's identity, and the certificate that it uses between organisations.",
)
Days = Annotated[int, typer.Option(min=1, max=3650, help="How long a self-signed certificate is valid.")]
Request = Annotated[bool, typer.Option("--csr", help="Write NAME.csr for a certificate authority of your own.")]
Certificate = Annotated[
    Path | None,
    typer.Option(metavar="CHAIN.PEM", help="Take the certificate that the authority has issued for NAME.csr."),
]
_DAYS = 730
_LETTERS = 4


@keys_app.command()
@guard
def new(
    name: Annotated[str, typer.Argument(help="What the others will call you, such as north.", show_default=False)],
    folder: Annotated[
        Path | None, typer.Option(help="Where the files go; default: keys in the data folder, beside the ledgers.")
    ] = None,
    days: Days = _DAYS,
    csr: Request = False,
    certificate: Certificate = None,
    as_json: AsJson = False,
) -> None:
    """Make an identity: NAME.key, which never leaves, and NAME.pub, which the others get. Replaces nothing."""
    from cloister.credentials import default_folder, make_keys, request_certificate
    from cloister.credentials.keys import PRIVATE_SUFFIX

    place = default_folder() if folder is None else folder
    if certificate is not None:
        _take(place / f"{name}{PRIVATE_SUFFIX}", certificate, csr=csr, as_json=as_json)
        return
    if not csr:
        _tell(make_keys(name, place, days=days), place, as_json=as_json)
        return
    if (place / f"{name}{PRIVATE_SUFFIX}").exists():
        raise ConfigError(f"new keys must have a new name; {name} has keys. Run: cloister keys renew {name} --csr")
    _tell_request(request_certificate(name, place), "new", as_json=as_json)


@keys_app.command()
@guard
def renew(
    name: Annotated[str, typer.Argument(help="The keys' name, or NAME.key.", show_default=False)],
    days: Days = _DAYS,
    csr: Request = False,
    certificate: Certificate = None,
    as_json: AsJson = False,
) -> None:
    """Make a new certificate for the same identity. Jobs stay as they are; the others need the new NAME.pub."""
    from cloister.credentials import find_keys, renew_keys, request_certificate
    from cloister.credentials.keys import read_private_form

    path = find_keys(name)
    if certificate is not None:
        _take(path, certificate, csr=csr, as_json=as_json)
        return
    if csr:
        _tell_request(request_certificate(read_private_form(path).name, path.parent), "renew", as_json=as_json)
        return
    _tell(renew_keys(path, days=days), path.parent, as_json=as_json)


@keys_app.command()
@guard
def show(
    name: Annotated[str, typer.Argument(help="Keys by name, NAME.key, or anybody's NAME.pub.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Print an identity, to compare it on the phone, and its certificate. Shows no secret."""
    from cloister.credentials import find_keys, load_keys, load_public, write_public
    from cloister.credentials.keys import PUBLIC_SUFFIX

    path = Path(name)
    if path.suffix == PUBLIC_SUFFIX:
        _describe(load_public(path, any_date=True), as_json=as_json)
        return
    private = find_keys(name)
    own = load_keys(private, any_date=True)
    public = private.parent / f"{own.public.name}{PUBLIC_SUFFIX}"
    if not public.exists():
        typer.echo(f"Written again, for it was missing: {write_public(private)}", err=True)
    _describe(own.public, as_json=as_json, private=private, public=public)
    if not as_json:
        typer.echo(f"private     {private}\npublic      {public}")


def _take(path: Path, chain: Path, *, csr: bool, as_json: bool) -> None:
    from cloister.credentials import take_certificate

    if csr:
        raise ConfigError("--csr asks for a certificate and --certificate takes one; got both. Leave one out.")
    _tell(take_certificate(path, chain), path.parent, as_json=as_json)


def _tell(own: OwnKeys, folder: Path, *, as_json: bool) -> None:
    name = own.public.name
    _describe(own.public, as_json=as_json, private=folder / f"{name}.key", public=folder / f"{name}.pub")
    if as_json:
        return
    typer.echo(f"private     {folder / name}.key: keep it, and a copy in a safe place; nobody else may read it")
    typer.echo(f"public      {folder / name}.pub: send it to the other organisations, by any channel")
    typer.echo(f'In a job: identity = "{own.public.fingerprint}"')


def _tell_request(request: Path, command: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"request": request})
        return
    typer.echo(f"Written: {request}. Have your certificate authority issue a certificate for TLS, server and client.")
    typer.echo(f"Then: cloister keys {command} {request.stem} --certificate CHAIN.PEM")


def _describe(shown: PublicKeyFile, *, as_json: bool, private: Path | None = None, public: Path | None = None) -> None:
    kind, _, letters = shown.fingerprint.partition(":")
    groups = " ".join(letters[i : i + _LETTERS] for i in range(0, len(letters), _LETTERS))
    chain = shown.chain
    if as_json:
        valid = {"valid_from": chain.valid_from, "valid_until": chain.valid_until}
        names = {"name": shown.name, "identity": shown.fingerprint, "certificate": shown.certificate_fingerprint}
        print_json({**names, **valid, "private": private, "public": public})
        return
    typer.echo(f"name        {shown.name}")
    typer.echo(f"identity    {shown.fingerprint}")
    typer.echo(f"  read out  {kind} {groups}")
    typer.echo(f"certificate {shown.certificate_fingerprint}")
    typer.echo(f"  valid     {chain.valid_from:%Y-%m-%d} to {chain.valid_until:%Y-%m-%d}{_rate(chain.valid_until)}")


def _rate(until: datetime) -> str:
    left = (until - datetime.now(UTC)).days
    return ": EXPIRED" if left < 0 else f": {left} days left, renew it" if left < 30 else ""
