"""What results say of their noise is what is seen over many runs on the same records."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from cloister.crypto import Stream
from cloister.kmeans import nearest
from cloister.numeric import FixedPoint
from cloister.privacy import centre_noise
from cloister.privacy.placement import Joint, Local, Shared
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget, Unit
from cloister.protocols.fastlloyd import offsets
from cloister.protocols.fastlloyd.published import PublishedSettings, plan_published
from cloister.protocols.fastlloyd.rehearsal import rehearse as rehearse_rounds
from cloister.protocols.fastlloyd.sound import SoundSettings, plan_fastlloyd
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums import refinement
from cloister.protocols.guided_sums.algorithm import rehearse
from cloister.protocols.multiparty_lloyd.noise import plan_noise
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import Settings
from cloister.protocols.vertical.algorithm import run_vertical
from cloister.protocols.vertical.rehearsal import rehearse_vertical
from cloister.protocols.vertical.settings import Settings as VerticalSettings
from cloister.records import ArrayRecords

RUNS = 32
PLACES = np.array([[-0.6, -0.5, 0.4, 0.0], [0.5, -0.6, -0.4, 0.3], [0.1, 0.6, 0.0, -0.4]])
SHARES = (0.5, 0.3, 0.2)


def draw(n, d, seed=7):
    rng = np.random.default_rng(seed)
    places = np.hstack([PLACES] * 3)[:, :d]
    labels = rng.choice(3, n, p=SHARES)
    return FixedPoint().quantise(np.clip(places[labels] + 0.1 * rng.standard_normal((n, d)), -1, 1))


@dataclass
class Found:
    """One run: centres and their noise, and sizes, all in the order of the true clusters."""

    centres: np.ndarray
    noise: np.ndarray
    sizes: object = None
    order: np.ndarray | None = None

    def sorted_by(self, means):
        order = linear_sum_assignment(cdist(means, self.centres))[1]
        return Found(self.centres[order], self.noise[order], self.sizes, order)


def budget(epsilon=1.0, unit=Unit.RECORD):
    return Budget(epsilon=epsilon, delta=1e-6, unit=unit)


def run_guided(points, settings, pipeline, seed):
    parts = [ArrayRecords(part) for part in np.array_split(points, settings.parties)]
    noise = SimulationSampler(Stream.from_seed(seed, "noise"))
    run = rehearse(settings, parts, pipeline=pipeline, sampler=noise, stream=Stream.from_seed(seed, "algorithm"))
    return Found(run.finding.centres, run.finding.centre_noise, run.finding.sizes), run


def run_lloyd(points, plan, seed):
    start = PLACES[:, : points.shape[1]] + 0.1
    parts = [ArrayRecords(part) for part in np.array_split(points, 3)]
    run = rehearse_rounds(plan, parts, start, sampler=SimulationSampler(Stream.from_seed(seed, "noise")))
    return Found(run.centres, plan.find_centre_noise(run.totals, points.shape[1])), run


def run_split(points, settings, seed):
    samplers = [SimulationSampler(Stream.from_seed(seed, "noise", number)) for number in range(2)]
    run = rehearse_vertical(settings, points, samplers=samplers, stream=Stream.from_seed(seed, "algorithm"))
    return Found(run.finding.centres, run.finding.centre_noise, run.finding.sizes), run


def synopsis(points, *, epsilon=1.0, unit=Unit.RECORD, parties=3, **options):
    settings = Settings(
        clusters=3,
        dimensions=points.shape[1],
        budget=budget(epsilon, unit),
        parties=parties,
        **options,
    )
    return partial(run_guided, points, settings, run_synopsis)


def feddp(points, *, epsilon=1.0, unit=Unit.RECORD, parties=3, **options):
    server = np.ascontiguousarray(draw(150, points.shape[1], seed=8))
    settings = FeddpSettings(
        clusters=3, dimensions=points.shape[1], budget=budget(epsilon, unit), parties=parties, **options
    )
    return partial(run_guided, points, settings.for_server(server), bind_server(server))


def fastlloyd(points, *, kind="gaussian", placement=None):
    settings = SoundSettings(clusters=3, dimensions=points.shape[1], parties=3, max_records=10**6, kind=kind)
    return partial(run_lloyd, points, plan_fastlloyd(settings, budget(), placement=placement))


def mask_noise_average(points, **options):
    plan = plan_noise(
        budget(2.0), iterations=6, clusters=3, dimensions=points.shape[1], fixed_point=FixedPoint(), **options
    )
    return partial(run_lloyd, points, plan)


def sulloyd(points):
    settings = PublishedSettings(
        preset="sulloyd", records=len(points), clusters=3, dimensions=points.shape[1], parties=3
    )
    return partial(run_lloyd, points, plan_published(settings, budget()))


def vertical(points, epsilon=1.0):
    settings = VerticalSettings(
        clusters=3, columns_alice=(0,), columns_encrypted=((1,),), records=len(points), budget=budget(epsilon)
    )
    return partial(run_split, points, settings)


RECORDS = draw(3000, 2)
CASES = {
    "synopsis": synopsis(RECORDS, placement=Shared(parties=3, colluding_max=1)),
    "synopsis, few records": synopsis(draw(1500, 2), records=1500),
    "synopsis, many columns": synopsis(draw(3000, 10)),
    "synopsis, clients": synopsis(draw(3200, 2), epsilon=3.0, unit=Unit.CLIENT, parties=100),
    "feddp": feddp(RECORDS, placement=Local(parties=3)),
    "feddp, many columns": feddp(draw(3000, 10)),
    "feddp, one step": feddp(RECORDS, lloyd_steps=0),
    "feddp, clients": feddp(draw(3200, 2), epsilon=3.0, unit=Unit.CLIENT, parties=100),
    "feddp, published": feddp(RECORDS, variant="published"),
    "fastlloyd, aggregator": fastlloyd(RECORDS),
    "fastlloyd, shared": fastlloyd(RECORDS, placement=Shared(parties=3, colluding_max=1)),
    "fastlloyd, joint": fastlloyd(RECORDS, kind="laplace", placement=Joint(parties=3)),
    "mask-noise-average": mask_noise_average(RECORDS, kind="gaussian"),
    "mask-noise-average, shared laplace": mask_noise_average(
        RECORDS, kind="laplace", placement=Shared(parties=3, colluding_max=1)
    ),
    "sulloyd": sulloyd(RECORDS),
    "vertical": vertical(draw(4000, 2), 0.5),
}


def compare(run, runs=RUNS):
    """Return stated deviations of centres over observed ones, (k, d), and sizes' errors in stated deviations."""
    points = run.args[0]
    labels = nearest(points, np.hstack([PLACES] * 3)[:, : points.shape[1]]).labels
    means = np.array([points[labels == j].mean(axis=0) for j in range(3)])
    found = [run(seed)[0].sorted_by(means) for seed in range(100, 100 + runs)]
    observed = np.std([one.centres for one in found], axis=0, ddof=1)
    stated = np.sqrt(np.mean([one.noise**2 for one in found], axis=0))
    errors = [count_errors(one, np.bincount(labels)) for one in found if one.sizes is not None]
    return stated / observed, np.array(errors)


def count_errors(found, true):
    sizes, of_unit = found.sizes, 1.0 if found.sizes.unit == "records" else true.sum()
    clusters, noise = np.array(sizes.clusters)[found.order], np.array(sizes.noise)[found.order]
    total = (sizes.total - true.sum() / of_unit) / sizes.total_noise if sizes.total_noise else 0.0
    return np.append((clusters - true / of_unit) / noise, total)


def fits(ratios, least=0.75):
    """Whether what is stated is what is seen: within a third for most coordinates, a factor of 2 or 2.5 for each."""
    return bool(least < np.median(ratios) < 1.33 and ratios.min() > 0.5 and ratios.max() < 2.5)


LOOSE = {"feddp, one step": 0.6, "vertical": 0.6}
"""With one step the start's noise is left where offsets were clipped; and noise in the cells is not counted."""


@pytest.mark.parametrize("case", CASES)
def test_noise_that_is_stated_is_noise_that_is_seen(case):
    ratios, errors = compare(CASES[case])
    assert fits(ratios, LOOSE.get(case, 0.75)), ratios
    if errors.size:  # also those of records that joined another cluster than their own
        assert 0.8 < np.sqrt((errors[:, :-1] ** 2).mean()) < 1.4
        assert np.sqrt((errors[:, -1] ** 2).mean()) < 1.4


def halve_sums(means, counts, *, sum_std, count_variances):
    return centre_noise.blur_means(means, counts, sum_std=sum_std / 2, count_variances=count_variances)


def forget_earlier_rounds(left, fresh, gains):
    return centre_noise.blend(0.0 * left, fresh, gains)


def forget_the_gain(left, fresh, gains):
    return centre_noise.blend(left, fresh, 1.0)


@pytest.mark.parametrize(
    ("case", "module", "name", "mutant"),
    [
        ("synopsis", refinement, "blur_means", halve_sums),
        ("synopsis", refinement, "blend", forget_earlier_rounds),
        ("synopsis", refinement, "blend", forget_the_gain),
        ("fastlloyd, shared", offsets, "blur_means", halve_sums),
    ],
)
def test_mutants_are_seen(case, module, name, mutant, monkeypatch):
    monkeypatch.setattr(module, name, mutant)
    assert not fits(compare(CASES[case])[0])


# --- post-processing only -------------------------------------------------------------------------------------------


def replay(asking, totals):
    """Run an algorithm on released totals alone: there are no records here."""
    query = next(asking)
    for total in totals:
        try:
            query = asking.send(total[: query.length])
        except StopIteration as stop:
            return stop.value
    raise AssertionError("the algorithm must end with the totals.")


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith(("synopsis", "feddp", "vertical"))])
def test_it_all_follows_from_what_was_released(case):
    run = CASES[case]
    _, made = run(3)
    stream, settings = Stream.from_seed(3, "algorithm"), run.args[1]
    if case == "vertical":
        again = replay(run_vertical(settings, made.codebooks, stream), made.totals)
    else:
        again = replay(run.args[2](settings, stream), made.totals)
    assert np.array_equal(again.centre_noise, made.finding.centre_noise)
    assert again.sizes == made.finding.sizes


def test_where_a_guarantee_fails_nothing_is_said_of_the_noise():
    settings = PublishedSettings(preset="csulloyd", records=3000, clusters=3, dimensions=2, parties=3)
    plan = plan_published(settings, budget())
    assert plan.flaw
    assert plan.find_centre_noise((np.ones((3, 3), dtype=np.int64),) * len(plan.targets), 2) is None


def test_a_coordinate_is_never_less_certain_than_one_of_which_nothing_is_known():
    for case in (synopsis(draw(60, 2), epsilon=0.01), mask_noise_average(draw(20, 2), kind="gaussian")):
        noise = case(1)[0].noise
        assert noise.max() <= 3**-0.5 + 1e-12
        assert np.median(noise) > 0.2
