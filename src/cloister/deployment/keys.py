"""From a job and key files to what one end of a deployment holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cloister.credentials import OwnKeys, PublicKeyFile
from cloister.deployment.ends import End
from cloister.errors import ConfigError
from cloister.job import COORDINATOR, Job
from cloister.privacy.ledger.places import find_data_folder
from cloister.runtime.remote.greeting import Agreed
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.tls import TlsFiles

_END = b"-----END CERTIFICATE-----\n"


def find_role(job: Job, own: OwnKeys) -> str:
    """Return the name in the job of whoever holds these keys: a party's, or the coordinator's.

    Raises
    ------
    ConfigError
        If the job does not name this identity.
    """
    names = {party.public_key: party.name for party in job.parties} | {job.coordinator.public_key: COORDINATOR}
    role = names.get(own.identity.public_bytes)
    if role is None:
        raise ConfigError(
            f"the job must name the identity that takes part; {own.public.fingerprint} ({own.public.name}) is not in "
            "it. Use other keys, or have the job name these."
        )
    return role


def list_peers(job: Job, role: str) -> dict[str, bytes]:
    """Return the identities of everyone that one end talks to, by name: all parties, or the coordinator."""
    if role == COORDINATOR:
        return {party.name: party.public_key for party in job.parties}
    return {COORDINATOR: job.coordinator.public_key}


def agree(job: Job, *, revoked: Iterable[str] = ()) -> Agreed:
    """Return what both ends hold before they talk, from the job."""
    return Agreed(
        job=job.digest,
        parties={party.name: party.public_key for party in job.parties},
        coordinator=job.coordinator.public_key,
        revoked=frozenset(revoked),
    )


def make_end(
    job: Job,
    own: OwnKeys,
    peers: Mapping[str, PublicKeyFile],
    *,
    deadlines: Deadlines,
    journals: Path | None = None,
    revoked: Iterable[str] = (),
    hosts: Sequence[PublicKeyFile] = (),
) -> End:
    """Return what one end holds.

    Parameters
    ----------
    job, own, peers
        The job, our keys, and the public files of `list_peers`.
    deadlines
        How long it waits.
    journals
        The folder of its journals; by default in the user's data folder.
    revoked
        Identities and certificates that its policy revokes.
    hosts
        At the coordinator: public files of those who host clients. TLS lets them in; each client proves itself.
    """
    tls = make_tls(own, [*peers.values(), *hosts])
    return End(
        identity=own.identity,
        tls=tls,
        journal_key=own.journal_key,
        agreed=agree(job, revoked=revoked),
        journals=find_data_folder() / "journals" if journals is None else journals,
        deadlines=deadlines,
    )


def make_tls(own: OwnKeys, peers: Sequence[PublicKeyFile]) -> TlsFiles:
    """Return what one end gives TLS: its own key, and the certificates of those it talks to."""
    return TlsFiles(
        key_pem=own.tls_key_pem,
        certificates_pem=own.public.certificates_pem,
        trusted_pem=b"".join(_cut_leaf(peer.certificates_pem) for peer in peers),
        server_name=peers[0].chain.tls_name,
    )


def _cut_leaf(certificates_pem: bytes) -> bytes:
    """Return the certificate alone, without those that issued it: nobody else's are trusted."""
    return certificates_pem[: certificates_pem.index(_END) + len(_END)]
