"""Uploads: indicators and residuals arrive where they belong, and nothing else is accepted."""

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import RemoteProtocolError
from cloister.lattice.slots import encode_weights
from cloister.lattice.weighted_sums import Products, WeightedSums
from cloister.protocols.vertical import agreement as agreement_module
from tests.protocols.vertical.sessions import Session, Wire, make_case


def exact(name, **options):
    return make_case(name, exact=True, **options)


@pytest.mark.parametrize("name", ["two blocks, far start", "server-aided", "residuals"])
def test_what_arrives_is_one_indicator_a_record_and_its_residuals(name, monkeypatch):
    monkeypatch.setattr(agreement_module, "_UPLOAD_BYTES", 1)
    wire = Wire(exact(name, records=4500, residuals=name != "server-aided"))
    agreement = wire.session.agreement
    assert agreement.uploads == agreement.blocks
    assert agreement.uploads == (1 if name == "server-aided" else 2)
    for number in range(agreement.uploads):
        wire.receiver.take(wire.upload(number), number)
    found, n, m = wire.decrypt_blocks(), 4500, wire.codebooks[0].cells
    assert not found[:, n:].any()  # the last block is filled up with nothing
    indicators = np.zeros((m, n))
    indicators[wire.cells[0], np.arange(n)] = 1
    assert np.array_equal(found[:m, :n], indicators)
    columns = wire.codebooks[0].columns
    assert len(found) == m * (1 + columns * agreement.settings.has_residuals)
    if agreement.settings.has_residuals:
        expected = indicators[:, None] * wire.residuals[0].T
        assert np.array_equal(found[m:, :n].reshape(m, columns, n), expected)
        assert wire.residuals[0].any()


def test_joint_cells_are_one_indicator_a_record():
    """Counted through the sums of a round: each joint cell's weight is 1 on its own records."""
    session = Session(
        exact("joint, one key").table,
        ((0, 1), (2,), (3,)),
        model="server-aided",
        budget=None,
        cells=3,
        fractional_bits=6,
    )
    wire = Wire(session)
    wire.receiver.take(wire.upload(0), 0)
    (block,), parameters = wire.receiver.blocks, session.agreement.parameters
    assert len(block.masks) == 9
    rng = np.random.default_rng(2)
    n, degree = len(session.table), parameters.degree
    records = np.zeros((1, degree), dtype=np.int64)
    records[0, :n] = rng.integers(-9, 10, n)
    sums = WeightedSums(parameters.ring, 9)
    sums.add(
        block.masks,
        block.bodies,
        Products(
            weights=encode_weights(degree, parameters.plaintext_modulus, records),
            row_of=np.zeros(9, dtype=np.int64),
            source_of=np.arange(9),
            first_target=np.arange(10),
            into=np.arange(9),
            factors=np.ones(9, dtype=np.int64),
        ),
    )
    masks, bodies = sums.finish()
    joint = wire.cells[0].astype(np.int64) * 3 + wire.cells[1]
    expected = np.bincount(joint, weights=records[0, :n], minlength=9)
    assert wire.decrypt_sums(masks, bodies) == expected.astype(int).tolist()


def test_two_encryptions_of_one_column_have_nothing_in_common():
    raws = []
    for seed in (1, 2):
        wire = Wire(exact("two clusters"))
        sender = wire.senders[0]
        sender._stream = Stream.from_seed(seed, "other errors")
        raws.append(np.frombuffer(sender.encrypt_upload(0), np.uint8))
    # One secret, one seed of masks: only errors differ, and with them most low bits.
    assert (raws[0] != raws[1]).mean() > 0.2


@pytest.mark.parametrize("name", ["two clusters", "server-aided", "joint, one key"])
def test_an_upload_of_another_size_or_order_is_refused_and_nothing_is_kept(name):
    wire = Wire(exact(name))
    raws = wire.upload(0)
    for wrong in ([raws[0][:-1], *raws[1:]], [raws[0] + b"\0", *raws[1:]], [b"", *raws[1:]]):
        with pytest.raises(RemoteProtocolError, match=r"upload 1 must have \d+ bytes; got"):
            wire.receiver.take(wrong, 0)
    for number, pieces in ((0, raws[1:]), (0, [*raws, raws[0]]), (1, raws)):
        with pytest.raises(RemoteProtocolError):
            wire.receiver.take(pieces, number)
    too_large = b"\xff" * len(raws[0])
    with pytest.raises(RemoteProtocolError, match=r"residue|bits"):
        wire.receiver.take([too_large, *raws[1:]], 0)
    assert not wire.receiver.blocks
    wire.receiver.take(raws, 0)
    assert len(wire.receiver.blocks) == 1
    with pytest.raises(RemoteProtocolError, match="in order"):
        wire.receiver.take(raws, 0)
