"""What the roles of a synopsis agree on: refused where it cannot hold, and one digest for all of it."""

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest

from cloister.errors import ConfigError, PrecisionError, TooFewPartiesError
from cloister.jobfile.reader import parse_job
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Local, Shared
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import Budget, Unit
from cloister.protocols.guided_sums.agreement import Agreement, envelope_of
from cloister.protocols.guided_sums.algorithm import GuidedSession
from cloister.protocols.guided_sums.coordinator import NoBooks, coordinate
from cloister.protocols.guided_sums.protocol import agree_on_sums
from cloister.protocols.synopsis.settings import Knobs, Settings
from cloister.wire.codec import DEFAULT_LIMIT_BYTES
from tests.protocols.guided_sums import lies
from tests.protocols.guided_sums.sessions import COUNTED, count_thrice
from tests.protocols.synopsis.sessions import Session, counting
from tests.sessions import SESSION, RecordingSampler, blobs, split

POINTS = {d: blobs(300, d, 3, seed=5) for d in (1, 2, 7)}
SHARED = Shared(parties=3, colluding_max=1)


BASE = Session(COUNTED[:3]).agreement


def test_so_many_parties_and_no_more():
    """With one more it is the number that is refused, before anybody's identity is missed."""
    for parties, problem in ((32767, "directory must be one identity"), (32768, "parties must be from 1 to 32767")):
        with pytest.raises(ConfigError, match=problem):
            replace(BASE, settings=replace(BASE.settings, parties=parties))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"directory": BASE.directory[:2]}, "directory must be one identity for each party; got 2"),
        ({"members_min": 4}, "members_min must be from 1 to 3 parties; got 4"),
        ({"members_min": 0}, "members_min must be from 1"),
        ({"max_records": 0}, "max_records must be from 1"),
        ({"settings": replace(BASE.settings, placement=SHARED)}, "members_min must be at least 3"),
        (
            {"settings": replace(BASE.settings, placement=Local(parties=4))},
            "among all 3 parties; got a placement for 4",
        ),
        ({"settings": replace(BASE.settings, budget=Budget(epsilon=1.0, delta=0.0))}, "delta must be greater than 0"),
    ],
)
def test_bad_agreements_are_refused_with_what_must_hold(changes, problem):
    with pytest.raises(ConfigError, match=problem):
        replace(BASE, **changes)


def test_noise_and_rings_that_do_not_fit_are_refused_before_the_session():
    with pytest.raises(PrecisionError, match="at most 2\\^40"):
        replace(BASE, settings=replace(BASE.settings, budget=Budget(epsilon=1e-5, delta=1e-6)))
    with pytest.raises(PrecisionError, match="Use ring = 64"):
        replace(BASE, ring_bits=32)
    assert BASE.ring.bits == 64
    assert replace(BASE, max_records=2**31).ring.bits == 64


@pytest.mark.parametrize(("declared", "agreed"), [("max_records = 900\n", 900), ("", 2**31)])
def test_the_most_records_are_the_jobs(declared, agreed):
    """They decide the ring, and so how many bytes travel."""
    job = parse_job(
        'name = "a"\n[clusters]\nk = 2\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n[data]\n'
        + declared
        + "[columns]\nx = { low = 0, high = 1 }\n"
        + "".join(f'[[parties]]\nname = "{name}"\n' for name in "abc")
    )
    assert agree_on_sums(job, BASE.settings, BASE.directory).max_records == agreed


def test_agreements_that_differ_anywhere_have_different_digests():
    """Every field, and every field of the settings and of the knobs."""
    settings = BASE.settings
    changed_settings = {
        "clusters": 4,
        "dimensions": 2,
        "budget": Budget(epsilon=1.0, delta=1e-7),
        "records": 10,
        "choose_k": True,
        "placement": Local(parties=3),
        "fixed_point": FixedPoint(15),
        "knobs": Knobs(),
    }
    assert {"parties", *changed_settings} == {field.name for field in fields(Settings)}
    agreements = [replace(BASE, settings=replace(settings, **{n: v})) for n, v in changed_settings.items()]
    for field in fields(Knobs):
        value = getattr(settings.knobs, field.name)
        knobs = replace(settings.knobs, **{field.name: value + 1 if isinstance(value, int) else value + 0.001})
        agreements.append(replace(BASE, settings=replace(settings, knobs=knobs)))
    unit = replace(settings.budget, unit=Unit.CLIENT)
    agreements.append(replace(BASE, settings=replace(settings, budget=unit)))
    changed = {
        "directory": BASE.directory[::-1],
        "members_min": 1,
        "max_records": 9,
        "ring_bits": 64,
        "masks": "double",
        "colluding_max": 1,
        "context": "other columns",
    }
    assert {"settings", *changed} == {field.name for field in fields(Agreement)}
    agreements += [replace(BASE, **{name: value}) for name, value in changed.items()]
    assert len({agreement.digest for agreement in (BASE, *agreements)}) == len(agreements) + 1
    assert replace(BASE).digest == BASE.digest


def test_a_session_of_strangers_does_not_open():
    session, other = counting(2), counting(2, clusters=9)
    with pytest.raises(TooFewPartiesError, match="at least 2 of 2"):
        session.run([session.party(1), other.party(2)])


def test_the_coordinator_has_a_noise_duty_exactly_where_it_adds_the_noise():
    with pytest.raises(ConfigError, match="it has none"):
        coordinate(GuidedSession(agreement=BASE, algorithm=count_thrice), session=SESSION)
    local = replace(BASE, settings=replace(BASE.settings, placement=Local(parties=3)))
    agreed = GuidedSession(agreement=local, algorithm=count_thrice)
    with pytest.raises(ConfigError, match="it has one"):
        coordinate(agreed, session=SESSION, duty=NoiseDuty(charger=NoBooks(), sampler=RecordingSampler("c")))


def test_the_largest_allowed_job_fits_a_message():
    settings = Settings(
        clusters=1000, dimensions=2000, budget=Budget(epsilon=1.0, delta=1e-6), parties=2, knobs=Knobs(cells_max=10**6)
    )
    agreement = Agreement(settings=settings, directory=BASE.directory[:2])
    lengths = [agreement.sums.body_bytes(slot.length) for slot in settings.slots]
    boxes = GuidedSession(agreement=agreement, algorithm=count_thrice).forms.lengths
    assert max(lengths) + max(boxes) + 4096 < DEFAULT_LIMIT_BYTES


@pytest.mark.parametrize("bits", [32, 64])
def test_in_every_ring_128_bits_of_check_words_follow_a_vector(bits):
    """Very few units and very little noise fit 32 bits."""
    budget = Budget(epsilon=1000.0, delta=1e-6, unit=Unit.CLIENT)
    session = Session(COUNTED[:2], budget=budget) if bits == 32 else Session(COUNTED[:2])
    agreement = session.agreement
    assert agreement.ring.bits == bits
    assert agreement.sums.check_words * bits == 128
    run, parties = session.run()
    assert run.steps == agreement.steps == 3 + 2 * len(agreement.slots) + 3
    assert np.array_equal(parties[0].centres, parties[1].centres)


def test_two_quorums_have_an_honest_party_in_common():
    """Of n parties t may collude: any two sets of q have more than t in common."""
    for parties, colluding in itertools.product(range(2, 12), range(4)):
        if colluding >= parties:
            continue
        placement = Shared(parties=parties, colluding_max=colluding)
        settings = replace(BASE.settings, parties=parties, placement=placement)
        directory = BASE.directory[:1] * parties
        agreement = replace(BASE, settings=settings, directory=directory, members_min=placement.members_min)
        for round_ in (1, len(settings.slots) + 1):
            assert colluding + parties < 2 * agreement.quorum_of(round_) <= 2 * parties
        assert parties < 2 * replace(
            agreement, settings=replace(settings, placement=Local(parties=parties)), members_min=1
        ).quorum_of(1)


def test_the_envelope_covers_what_all_rounds_together_are_charged():
    for d, placement in itertools.product((1, 7), (SHARED, Local(parties=3))):
        session = Session(split(POINTS[d], 3), placement=placement, members_min=3)
        session.run()
        books = Accountant(session.settings.budget)
        books.charge(envelope_of(session.settings))
        assert books.spent().rho >= max(spent.rho for spent in session.spent()) * (1 - 1e-12)


def test_a_unit_that_no_vector_is_bounded_for_is_refused():
    """A person's records would be charged as one record."""
    for settings in (BASE.settings, lies.make_settings("published", Unit.RECORD)[0]):
        with pytest.raises(ConfigError, match="must say how many records of each count"):
            _ = replace(settings, budget=replace(settings.budget, unit=Unit.PERSON)).noise_std
