"""Organisations for tests: throw-away keys and certificates, and all ends of a run in one event loop."""

from __future__ import annotations

import asyncio
import datetime
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from cloister.crypto import Identity, derive_key, make_entropy
from cloister.deployment.ends import End, coordinate, participate
from cloister.job import OwnSide, Setup
from cloister.runtime.remote.greeting import Agreed
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.tls import TlsFiles

TLS_NAME = "cloister.invalid"
DEADLINES = Deadlines(start_s=60.0, step_s=60.0)
COORDINATOR = "coordinator"


@cache
def make_certificate(name):
    """A self-signed P-256 certificate and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(TLS_NAME)]), critical=False)
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, certificate.public_bytes(Encoding.PEM)


class Organisations:
    """Everybody's keys for one job."""

    def __init__(self, setup, journals=None, deadlines=DEADLINES):
        self.setup = setup
        self.names = [party.name for party in setup.job.parties]
        self.identities = {
            name: Identity(make_entropy(f"identity of {name}", seed=setup.seed)) for name in (*self.names, COORDINATOR)
        }
        self.agreed = Agreed(
            job=setup.job.digest,
            parties={name: self.identities[name].public_bytes for name in self.names},
            coordinator=self.identities[COORDINATOR].public_bytes,
        )
        self.journals, self.deadlines = journals, deadlines

    def make_end(self, name):
        key, certificate = make_certificate(name)
        if name == COORDINATOR:
            trusted = b"".join(make_certificate(party)[1] for party in self.names)
        else:
            trusted = make_certificate(COORDINATOR)[1]
        return End(
            identity=self.identities[name],
            tls=TlsFiles(key_pem=key, certificates_pem=certificate, trusted_pem=trusted, server_name=TLS_NAME),
            journal_key=derive_key(name.encode(), "journal key for tests"),
            agreed=self.agreed,
            journals=None if self.journals is None else self.journals / name,
            deadlines=self.deadlines,
        )

    def own_setup(self, name):
        """The job with one party's own side."""
        own = {name: self.setup.own_side(name)} if name != COORDINATOR else {}
        return Setup(job=self.setup.job, own=own, folder=self.setup.folder, seed=self.setup.seed)

    async def run_all(self, relay=None, **options):
        """Run everybody; returns the coordinator's course and each party's result, with its labels."""
        port = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(
            coordinate(
                self.own_setup(COORDINATOR),
                self.make_end(COORDINATOR),
                listen="127.0.0.1:0",
                on_listening=port.set_result,
                **options,
            )
        )
        await asyncio.wait((serving, port), return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        address = f"127.0.0.1:{port.result()}"
        parties = [asyncio.ensure_future(self.run_party(name, address)) for name in self.names]
        try:
            results = await asyncio.gather(*parties)
            course = await serving
        finally:
            for task in (serving, *parties):
                task.cancel()
            await asyncio.gather(serving, *parties, return_exceptions=True)
        return course, dict(zip(self.names, results, strict=True))

    async def run_party(self, name, address):
        kept = []
        result = await participate(
            self.own_setup(name),
            name,
            self.make_end(name),
            address=address,
            keep=lambda result, labels, sign: kept.append(labels),
        )
        return result, kept[-1]


def without_ledgers(setup):
    own = {name: OwnSide(data=side.data, alignment=side.alignment) for name, side in setup.own.items()}
    return Setup(job=setup.job, own=own, folder=setup.folder, seed=setup.seed)
