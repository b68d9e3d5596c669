"""Appendix E: what is moved comes back; simplification keeps heavy points; only clear records count in Part 2."""

import numpy as np

from cloister.crypto import Stream
from cloister.numeric import FixedPoint
from cloister.privacy.units import Budget
from cloister.protocols.feddp.options import ExtraSteps
from cloister.protocols.feddp.questions import MovedRecords
from cloister.protocols.feddp.reduction import plan_relocation, simplify_server
from cloister.protocols.feddp.settings import FeddpSettings, count_simplify_rounds
from cloister.protocols.guided_sums.refinement import Guide
from cloister.protocols.guided_sums.statistics import Subspace
from cloister.records import ArrayRecords
from tests.protocols.synopsis.steps import answer

GROUPS = np.array([[-0.9, -0.9], [-0.9, -0.8999], [0.9, 0.9], [0.9, 0.8999], [0.0, 0.95]])
RECORDS = FixedPoint(16).quantise(np.array([[-0.9, -0.9], [0.9, 0.9], [0.9, 0.9002]]))


def relocate(*, reach=0.001):
    return plan_relocation(GROUPS, np.array([50.0, 50, 50, 50, 1]), reach=reach, least_records=30, least_points=9)


def test_far_groups_are_brought_nearer_and_back():
    relocation = relocate()
    moved = relocation.move(RECORDS)
    before, after = np.abs(RECORDS[0] - RECORDS[1]).max(), np.abs(moved[0] - moved[1]).max()
    assert after < before / 5
    assert after >= 50 * 0.001 * relocation.scale  # groups do not mix
    assert np.allclose(moved[2] - moved[1], (RECORDS[2] - RECORDS[1]) * relocation.scale)
    assert np.allclose(relocation.move_back(moved), RECORDS)
    assert len(relocation.points) == 4  # the lonely point is dropped
    assert np.allclose(relocation.moved_points.mean(axis=0), 0)  # around the origin the scale can be largest


def test_groups_that_are_near_already_stay():
    relocation = relocate(reach=0.1)
    assert not relocation.shifts.any()
    assert np.array_equal(relocation.move(RECORDS), RECORDS)


def test_a_record_moves_the_same_alone_and_among_others():
    relocation = relocate()
    together = next(MovedRecords(ArrayRecords(RECORDS), relocation).batches())
    alone = [next(MovedRecords(ArrayRecords(row[None]), relocation).batches())[0] for row in RECORDS]
    assert np.array_equal(together, np.array(alone))


def test_points_that_many_records_share_are_thinned_out_until_each_stands_for_many():
    """A cluster with 256 of the server's points, none of them heavy enough alone, keeps some; an empty place none."""
    rng = np.random.default_rng(1)
    crowd = rng.normal(scale=0.01, size=(256, 2)) + 0.5
    server = np.concatenate([crowd, [[-0.9, -0.9]], [[0.5, -0.5]]])
    records = np.concatenate([rng.normal(scale=0.01, size=(3000, 2)) + 0.5, np.full((2000, 2), [0.5, -0.5])])
    job = FeddpSettings(
        clusters=2, dimensions=2, budget=Budget(epsilon=1.0, delta=1e-6), parties=2, options=ExtraSteps(simplify=True)
    ).for_server(server)
    asking = simplify_server(
        job, server, Subspace(origin=np.zeros(2), axes=np.eye(2)), l2_squared=2**53, stream=Stream.from_seed(1, "half")
    )
    answered = answer(asking, [records], noise_std=job.noise_std)
    kept = answered.found
    assert 257 in kept
    assert 256 not in kept
    assert 1 <= (kept < 256).sum() < 40
    assert len(answered.queries) == count_simplify_rounds(258)
    assert answered.l2_squared <= 2**53


def test_part_2_counts_only_records_that_are_three_times_nearer():
    subspace = Subspace(origin=np.zeros(2), axes=np.eye(2))
    places = np.array([[0.0, 0.0], [0.8, 0.0]])
    points = np.array([[0.0, 0.0], [0.19, 0.0], [0.21, 0.0], [0.4, 0.0], [0.62, 0.0], [0.0, 0.9]])
    three = Guide(subspace=subspace, places=places, radius=1.0, clear=3.0)
    assert three.make_join(places, first=True)(points).labels.tolist() == [0, 0, -1, -1, 1, -1]
    assert three.make_join(places, first=False)(points).labels.tolist() == [0, 0, 0, 0, 1, 0]
