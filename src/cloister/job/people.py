"""Who takes part in a job: its parties and its coordinator, by name and, between organisations, by identity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from cloister.crypto import read_fingerprint
from cloister.errors import ConfigError
from cloister.job.refusals import KeyedConfigError, KeyPath, check_text, format_path, refuse, show_value

COORDINATOR = "coordinator"
_ADDRESS = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>[0-9]{1,5})", re.ASCII)


class JobParty(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of ``[[parties]]``.

    Attributes
    ----------
    name
        What messages and results call it.
    columns
        Where columns are split: its own, in the order of its table.
    identity
        Its identity, ``ed25519:...``: who may act for it between organisations. Simulations need none.
    """

    name: str
    columns: tuple[str, ...] | None = None
    identity: str | None = None

    @property
    def public_key(self) -> bytes:
        """The identity's public key."""
        return _read_identity(self.name, self.identity)


class JobCoordinator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section ``[coordinator]``: who coordinates between organisations, and where.

    Attributes
    ----------
    identity
        As that of a party.
    address
        ``host:port``, where it listens. Everyone must reach the same identity, not the same address, so this is not
        part of the digest.
    """

    identity: str | None = None
    address: Annotated[str, Meta(max_length=300)] | None = None

    @property
    def public_key(self) -> bytes:
        """The identity's public key."""
        return _read_identity(COORDINATOR, self.identity)


def check_parties(parties: Sequence[JobParty]) -> None:
    """Refuse no parties, and names that cannot be told apart or name no file."""
    if not parties:
        refuse(("parties",), "be at least 1", "0", "Add a [[parties]] section for each organisation.")
    seen: dict[str, int] = {}
    for i, party in enumerate(parties):
        path: KeyPath = ("parties", i, "name")
        check_text(path, party.name)
        if party.name == COORDINATOR:
            refuse(path, "not be the coordinator's", show_value(party.name), "Choose another name.")
        if set(party.name) & set("/\\"):
            what_to_do = "A party's ledger file is named after it."
            refuse(path, "be a name without / and \\", show_value(party.name), what_to_do)
        if party.name in seen:
            got = f"{show_value(party.name)}, which parties[{seen[party.name]}] already has"
            refuse(path, "be unique", got, "Give each party its own name.")
        seen[party.name] = i


def check_identities(parties: Sequence[JobParty], coordinator: JobCoordinator) -> None:
    """Refuse identities that cannot be read, that two share, or that only some have."""
    listed: list[tuple[KeyPath, str | None]] = [
        (("parties", i, "identity"), party.identity) for i, party in enumerate(parties)
    ]
    listed.append((("coordinator", "identity"), coordinator.identity))
    given: dict[str, KeyPath] = {}
    for path, identity in listed:
        if identity is None:
            continue
        check_text(path, identity, longest=100)
        try:
            read_fingerprint(identity)
        except ConfigError as error:
            raise KeyedConfigError(path, f"{format_path(path)}: {error}") from None
        if identity in given:
            got = f"that of {format_path(given[identity][:-1])}"
            refuse(path, "be an identity of its own", got, "One who takes part twice could open sums alone.")
        given[identity] = path
    for path, identity in listed:
        if identity is None and given:
            refuse(path, "be given for everyone or for no one", "none", 'Write: identity = "ed25519:..."')


def check_address(address: str | None) -> None:
    """Refuse what is not a host and a port."""
    if address is None:
        return
    path: KeyPath = ("coordinator", "address")
    check_text(path, address, longest=300)
    match = _ADDRESS.fullmatch(address)
    if match is None or not 1 <= int(match["port"]) <= 65535:
        what_to_do = 'Write: address = "cluster.example.org:7400"'
        refuse(path, "be a host and a port, host:port", show_value(address), what_to_do)


def list_agreed(party: JobParty) -> dict[str, object]:
    """Return what of a party the digest of a job covers; without an identity, as before jobs could name any."""
    agreed: dict[str, object] = {"name": party.name, "columns": party.columns}
    return agreed if party.identity is None else agreed | {"identity": party.identity}


def _read_identity(name: str, identity: str | None) -> bytes:
    if identity is None:
        raise ConfigError(
            f"the job must name the identity of everyone who takes part between organisations; that of {name} is "
            'missing. Write: identity = "ed25519:...", as in its public file.'
        )
    return read_fingerprint(identity)
