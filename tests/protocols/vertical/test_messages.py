"""The stages of a session: who has a turn, in which order, and that every turn has a name."""

import pytest

from cloister.protocols.vertical.messages import list_stages
from tests.protocols.vertical.sessions import CASES, make_case


def stages(**options):
    settings = {
        "parties": 2,
        "computing": 1,
        "key_holders": (2,),
        "encrypted": (2,),
        "uploads": 1,
        "queries": ("joint histogram", "Lloyd round 1"),
        "collective": False,
        "threshold": False,
        "joint": False,
    }
    return [(stage.kind, stage.members) for stage in list_stages(**{**settings, **options})]


def test_two_parties():
    assert stages() == [
        ("prepare", (1, 2)),
        ("keys", (2,)),
        ("upload", (1, 2)),
        *[("compute", (1,)), ("decrypt", (2,))] * 2,
        ("finish", (1,)),
        ("close", (2,)),
    ]


def test_a_collective_key_with_a_threshold_and_joint_cells():
    several = stages(
        parties=4,
        computing=2,
        key_holders=(1, 3, 4),
        encrypted=(1, 4),
        uploads=2,
        collective=True,
        threshold=True,
        joint=True,
    )
    holders = (1, 3, 4)
    assert several == [
        ("prepare", (1, 2, 3, 4)),
        *((kind, holders) for kind in ("reveal", "keys", "relinearise", "combine")),
        *[("upload", (1, 2, 4))] * 2,
        *[("compute", (2,)), ("attend", holders), ("decrypt", holders)] * 2,
        ("finish", (2,)),
        ("close", holders),
    ]


def test_joint_cells_under_one_key_need_no_more_steps():
    assert stages(joint=True, parties=3, encrypted=(2, 3)) == stages(parties=3, encrypted=(2, 3))


@pytest.mark.parametrize("name", CASES)
def test_every_stage_is_named_once_and_every_pass_is_there(name):
    agreement = make_case(name).agreement
    labels = [stage.label for stage in agreement.schedule]
    assert len(set(labels)) == len(labels)
    computed = [label.partition(":")[0] for label in labels if label.endswith("computing on ciphertexts")]
    assert tuple(computed) == agreement.queries
    assert agreement.steps == 4 + len(labels)
    for kind in ("compute", "attend", "decrypt", "upload"):
        indices = [stage.index for stage in agreement.schedule if stage.kind == kind]
        assert indices == list(range(len(indices)))
