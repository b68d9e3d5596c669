"""A party's own policy: what it takes part in, whatever a job asks for. It is checked at the party, before all else.

A job can only ask. Nothing in it, and nothing that another role says, changes a policy: `find_breaches` reads the
policy and the contract, and no key of a contract makes a limit wider. A key that a policy leaves out limits nothing;
one that it misspells is refused, for it would limit nothing either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cloister.crypto import read_fingerprint
from cloister.errors import ConfigError, PolicyError
from cloister.job.model import Job, OwnSide
from cloister.job.options import known_options
from cloister.job.refusals import (
    KeyedConfigError,
    check_choice,
    check_fields,
    format_path,
    refuse,
    show_value,
)
from cloister.privacy.ledger.places import find_data_folder

_CERTIFICATE = re.compile(r"sha256:[0-9a-f]{64}")
_SHOWN = 5
_Word = Annotated[str, Meta(max_length=200)]


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one party takes part in. None: no limit.

    Attributes
    ----------
    columns
        The columns that may be clustered, and the one by which records may be aligned.
    parties_min
        How many parties a job must have at least, and how many any sum must be over.
    epsilon_max, delta_max
        What one job may spend; a job without a budget spends without limit.
    protocols
        By name.
    variants
        Of protocols that have variants.
    placements, masks
        Who may add the noise, and what may mask the sums; ``none`` allows jobs without.
    coordinators, parties
        Identities that may coordinate, and that may take part beside this party.
    revoked
        Identities and certificates that are not accepted any more, ``ed25519:...`` or ``sha256:...``.
    """

    columns: tuple[_Word, ...] | None = None
    parties_min: Annotated[int, Meta(ge=2)] | None = None
    epsilon_max: Annotated[float, Meta(gt=0)] | None = None
    delta_max: Annotated[float, Meta(ge=0, lt=1)] | None = None
    protocols: tuple[_Word, ...] | None = None
    variants: tuple[_Word, ...] | None = None
    placements: tuple[Literal["aggregator", "shared", "local", "joint", "none"], ...] | None = None
    masks: tuple[Literal["common", "double", "none"], ...] | None = None
    coordinators: tuple[_Word, ...] | None = None
    parties: tuple[_Word, ...] | None = None
    revoked: tuple[_Word, ...] = ()

    def __post_init__(self) -> None:
        check_fields((), self)
        for i, name in enumerate(self.protocols or ()):
            check_choice(("protocols", i), name, known_options())
        for key in ("coordinators", "parties", "revoked"):
            for i, one in enumerate(getattr(self, key) or ()):
                if not (key == "revoked" and _CERTIFICATE.fullmatch(one)):
                    _check_identity(key, i, one)


@dataclass(frozen=True, kw_only=True)
class Breach:
    """One limit that a job does not keep.

    Attributes
    ----------
    key, limit
        Of the policy.
    must
        What must hold of the job.
    got
        What the job has.
    """

    key: str
    limit: str
    must: str
    got: str

    def __str__(self) -> str:
        return f"{self.key} = {self.limit}: {self.must}; got {self.got}."


def find_policy(own: OwnSide) -> Path | None:
    """Return a party's policy file: what its own side names, else ``policy.toml`` in the data folder; None without."""
    usual = find_data_folder() / "policy.toml"
    return own.policy or (usual if usual.exists() else None)


def find_breaches(policy: Policy, job: Job, party: str) -> tuple[Breach, ...]:
    """Return every limit of a party's policy that a job does not keep."""
    found = [
        *_check_budget(policy, job),
        *_check_protocol(policy, job),
        *_check_columns(policy, job, party),
        *_check_people(policy, job, party),
    ]
    return tuple(breach for breach in found if breach is not None)


def check_policy(policy: Policy, job: Job, party: str, *, source: str) -> None:
    """Refuse a job that a party's policy does not allow.

    Raises
    ------
    PolicyError
        Names each key, its limit and what the job has.
    """
    breaches = find_breaches(policy, job, party)
    if breaches:
        listed = " ".join(map(str, breaches))
        raise PolicyError(
            f"{source}: the job must keep this party's own policy; it does not. {listed} Ask for another job, or "
            "whoever keeps the policy. Nothing was sent."
        )


def _check_budget(policy: Policy, job: Job) -> Iterable[Breach | None]:
    spent = "no [budget]: exact results" if job.budget is None else None
    for key, limit in (("epsilon", policy.epsilon_max), ("delta", policy.delta_max)):
        if limit is None:
            continue
        asked = None if job.budget is None else getattr(job.budget, key)
        if asked is None or not asked <= limit:
            yield Breach(
                key=f"{key}_max",
                limit=f"{limit:g}",
                must=f"budget.{key} must be at most that",
                got=spent or f"{asked:g}",
            )


def _check_protocol(policy: Policy, job: Job) -> Iterable[Breach | None]:
    protocol, parties = job.protocol, len(job.parties)
    least = min(parties, protocol.resolve_min_parties(parties))
    if policy.parties_min is not None and least < policy.parties_min:
        must = "the job's parties, and protocol.min_parties, must be at least that"
        got = f"{parties} parties and sums over {least}"
        yield Breach(key="parties_min", limit=str(policy.parties_min), must=must, got=got)
    yield _check_word("protocols", policy.protocols, "protocol.name", protocol.name)
    variant = getattr(protocol, "variant", None)
    if variant is not None:
        yield _check_word("variants", policy.variants, "protocol.variant", variant)
    noise = "none" if job.budget is None else protocol.name_placement(parties)
    yield _check_word("placements", policy.placements, "protocol.placement", noise)
    yield _check_word("masks", policy.masks, "protocol.masks", protocol.name_masks(parties))


def _check_columns(policy: Policy, job: Job, party: str) -> Iterable[Breach | None]:
    if policy.columns is None:
        return
    own = next(one for one in job.parties if one.name == party)
    asked = [column.name for column in job.find_columns(own)]
    if asked and job.data.id is not None:
        asked.append(job.data.id)
    more = [name for name in asked if name not in policy.columns]
    if more:
        yield Breach(
            key="columns",
            limit=_list(policy.columns),
            must="the job must use no other columns of this party",
            got=_list(more),
        )


def _check_people(policy: Policy, job: Job, party: str) -> Iterable[Breach | None]:
    people = [(one.name, one.identity) for one in job.parties if one.name != party]
    coordinator = job.coordinator.identity
    if policy.coordinators is not None and coordinator not in policy.coordinators:
        must = "the coordinator must be one of those"
        yield Breach(key="coordinators", limit=_list(policy.coordinators), must=must, got=coordinator or "no identity")
    if policy.parties is not None:
        yield _check_names("parties", policy.parties, people, lambda one: one in policy.parties)  # type: ignore[operator]
    everyone = [("the coordinator", coordinator), *((one.name, one.identity) for one in job.parties)]
    yield _check_names("revoked", policy.revoked, everyone, lambda one: one not in policy.revoked)


def _check_names(
    key: str,
    limit: tuple[str, ...],
    people: Iterable[tuple[str, str | None]],
    allows: Callable[[str | None], bool],
) -> Breach | None:
    others = [name for name, identity in people if not allows(identity)]
    if not others:
        return None
    must = "nobody of those may take part" if key == "revoked" else "all others who take part must be among those"
    return Breach(key=key, limit=_list(limit), must=must, got=_list(others))


def _check_word(key: str, allowed: tuple[str, ...] | None, what: str, got: str) -> Breach | None:
    if allowed is None or got in allowed:
        return None
    return Breach(key=key, limit=_list(allowed), must=f"{what} must be one of those", got=show_value(got))


def _check_identity(key: str, i: int, identity: str) -> None:
    try:
        read_fingerprint(identity)
    except ConfigError as error:
        path = (key, i)
        if key == "revoked" and not identity.startswith("ed25519:"):
            refuse(
                path, "be ed25519: or sha256: with a fingerprint", show_value(identity), "See: cloister keys show NAME"
            )
        raise KeyedConfigError(path, f"{format_path(path)}: {error}") from None


def _list(names: Iterable[str]) -> str:
    """Write names as a list, shortened."""
    shown = list(names)
    more = f", and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"[{', '.join(show_value(name) for name in shown[:_SHOWN])}{more}]"
