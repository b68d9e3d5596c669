"""A party's own policy: nothing that a job says makes it wider, and each refusal names key, limit and got."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import Identity, Stream, write_fingerprint
from cloister.errors import ConfigError, PolicyError
from cloister.job import Job, Policy, check_policy, find_breaches
from cloister.job.options import known_options
from cloister.jobfile import load_own_side, load_policy, load_setup, parse_job
from tests.golden.jobs import JOBS

KEYS = [write_fingerprint(Identity(Stream(bytes([i]) * 32)).public_bytes) for i in range(5)]
NAMES = ("north", "harbour", "valley")


def make_job(
    protocol: str = "",
    *,
    budget: str = "[budget]\nepsilon = 1.0\ndelta = 1e-6",
    parties: int = 3,
    columns: str = "age = { low = 18, high = 95 }\nbmi = { low = 14, high = 60 }",
    data: str = "",
    identities: bool = True,
) -> Job:
    text = (
        f'name = "clinics"\n[protocol]\n{protocol}\n[data]\n{data}\n{budget}\n[clusters]\nk = 2\n[columns]\n{columns}\n'
    )
    if identities:
        text += f'[coordinator]\nidentity = "{KEYS[0]}"\n'
    for i, name in enumerate(NAMES[:parties]):
        text += f'[[parties]]\nname = "{name}"\n' + (f'identity = "{KEYS[1 + i]}"\n' if identities else "")
    return parse_job(text)


GOOD: dict[str, Any] = {
    "columns": ("age", "bmi", "hba1c"),
    "parties_min": 3,
    "epsilon_max": 1.0,
    "delta_max": 1e-6,
    "protocols": ("synopsis", "fastlloyd"),
    "variants": ("sound",),
    "placements": ("shared", "local"),
    "masks": ("double",),
    "coordinators": (KEYS[0],),
    "parties": (KEYS[1], KEYS[2], KEYS[3]),
    "revoked": (KEYS[4], "sha256:" + "0" * 64),
}


def test_a_job_within_every_limit_is_allowed() -> None:
    assert find_breaches(Policy(**GOOD), make_job(), "north") == ()
    check_policy(Policy(**GOOD), make_job('name = "fastlloyd"'), "valley", source="policy.toml")


def test_no_policy_limits_nothing() -> None:
    for text in JOBS.values():
        job = parse_job(text)
        assert find_breaches(Policy(), job, job.parties[0].name) == ()


@pytest.mark.parametrize(
    ("limit", "job", "got"),
    [
        (
            {"columns": ("age",)},
            make_job(),
            'columns = ["age"]: the job must use no other columns of this party; got ["bmi"]',
        ),
        (
            {"columns": ()},
            make_job(),
            'columns = []: the job must use no other columns of this party; got ["age", "bmi"]',
        ),
        ({"parties_min": 4}, make_job(), "parties_min = 4: the job's parties, and protocol.min_parties"),
        (
            {"parties_min": 3},
            make_job('placement = "local"\nmin_parties = 2'),
            "got 3 parties and sums over 2.",
        ),
        ({"epsilon_max": 0.999}, make_job(), "epsilon_max = 0.999: budget.epsilon must be at most that; got 1."),
        ({"delta_max": 1e-7}, make_job(), "delta_max = 1e-07: budget.delta must be at most that; got 1e-06."),
        ({"delta_max": 0}, make_job(), "delta_max = 0"),
        (
            {"epsilon_max": 1000},
            make_job('name = "masked-sum-count"', budget=""),
            "epsilon_max = 1000: budget.epsilon must be at most that; got no [budget]: exact results.",
        ),
        ({"protocols": ("fastlloyd",)}, make_job(), 'protocol.name must be one of those; got "synopsis"'),
        (
            {"variants": ("sound",)},
            make_job('name = "fastlloyd"\nvariant = "sulloyd"', data="records = 1000"),
            'protocol.variant must be one of those; got "sulloyd"',
        ),
        ({"placements": ("shared",)}, make_job(parties=2), 'protocol.placement must be one of those; got "local"'),
        ({"placements": ("local",)}, make_job(), 'got "shared"'),
        ({"placements": ("shared",)}, make_job('name = "naive"', budget=""), 'got "none"'),
        ({"masks": ("double",)}, make_job('placement = "local"'), 'protocol.masks must be one of those; got "common"'),
        ({"masks": ("double",)}, make_job('name = "masked-centroid"', budget=""), 'got "common"'),
        ({"masks": ("double", "common")}, make_job('name = "naive"', budget=""), 'got "none"'),
        ({"coordinators": (KEYS[4],)}, make_job(), f"the coordinator must be one of those; got {KEYS[0]}"),
        ({"coordinators": (KEYS[0],)}, make_job(identities=False), "got no identity"),
        ({"parties": (KEYS[3],)}, make_job(), 'all others who take part must be among those; got ["harbour"]'),
        ({"parties": (KEYS[2], KEYS[3])}, make_job(identities=False), 'got ["harbour", "valley"]'),
        ({"revoked": (KEYS[2],)}, make_job(), 'nobody of those may take part; got ["harbour"]'),
        ({"revoked": (KEYS[0],)}, make_job(), 'nobody of those may take part; got ["the coordinator"]'),
        ({"revoked": (KEYS[1],)}, make_job(), 'nobody of those may take part; got ["north"]'),
    ],
)
def test_every_limit_is_kept_and_named(limit: dict[str, Any], job: Job, got: str) -> None:
    (breach,) = find_breaches(Policy(**limit), job, "north")
    (key,) = limit
    assert breach.key == key
    with pytest.raises(PolicyError) as error:
        check_policy(Policy(**limit), job, "north", source="policy.toml")
    assert got in str(error.value)
    assert str(error.value).startswith("policy.toml: ")


def test_all_breaches_are_named_at_once() -> None:
    policy = Policy(epsilon_max=0.1, protocols=("naive",), parties_min=9)
    assert [breach.key for breach in find_breaches(policy, make_job(), "north")] == [
        "epsilon_max",
        "parties_min",
        "protocols",
    ]


def test_the_column_of_ids_is_shared_too() -> None:
    text = JOBS["vertical-id"]
    job = parse_job(text)
    holder = next(party for party in job.parties if job.find_columns(party))
    own = tuple(column.name for column in job.find_columns(holder))
    assert job.data.id is not None
    assert find_breaches(Policy(columns=(*own, job.data.id)), job, holder.name) == ()
    (breach,) = find_breaches(Policy(columns=own), job, holder.name)
    assert job.data.id in breach.got


# --- nobody can widen it ----------------------------------------------------------------------------------------------


def keeps(policy: Policy, job: Job) -> bool:
    """Say what a policy means, in other words than the code under test."""
    protocol, parties = job.protocol, len(job.parties)
    least = protocol.resolve_min_parties(parties)
    epsilon = float("inf") if job.budget is None else job.budget.epsilon
    delta = 1.0 if job.budget is None else job.budget.delta
    noise = protocol.name_placement(parties) if job.budget is not None else "none"
    identities = [party.identity for party in job.parties]
    held = [column.name for column in job.find_columns(job.parties[0])]
    held += [job.data.id] if held and job.data.id else []
    return (
        (policy.columns is None or set(held) <= set(policy.columns))
        and (policy.parties_min is None or min(parties, least) >= policy.parties_min)
        and (policy.epsilon_max is None or epsilon <= policy.epsilon_max)
        and (policy.delta_max is None or delta <= policy.delta_max)
        and (policy.protocols is None or protocol.name in policy.protocols)
        and (policy.variants is None or getattr(protocol, "variant", None) in (None, *policy.variants))
        and (policy.placements is None or noise in policy.placements)
        and (policy.masks is None or protocol.name_masks(parties) in policy.masks)
        and (policy.coordinators is None or job.coordinator.identity in policy.coordinators)
        and (policy.parties is None or set(identities[1:]) <= set(policy.parties))
        and not {job.coordinator.identity, *identities} & set(policy.revoked)
    )


def some(*words: str) -> st.SearchStrategy[tuple[str, ...] | None]:
    return st.none() | st.lists(st.sampled_from(words), unique=True).map(tuple)


POLICIES = st.builds(
    Policy,
    columns=some("age", "bmi", "x0", "x1", "x2", "x3", "x", "y", "z", "w"),
    parties_min=st.none() | st.integers(2, 8),
    epsilon_max=st.none() | st.sampled_from([0.1, 0.5, 1.0, 2.0, 5.0, 100.0]),
    delta_max=st.none() | st.sampled_from([0.0, 1e-9, 1e-6, 1e-5, 0.1]),
    protocols=some(*known_options()),
    variants=some("sound", "tight", "published", "sulloyd"),
    placements=some("aggregator", "shared", "local", "joint", "none"),
    masks=some("common", "double", "none"),
    coordinators=some(*KEYS),
    parties=some(*KEYS),
    revoked=st.lists(st.sampled_from(KEYS), max_size=1).map(tuple),
)
GOLDEN = [parse_job(text) for text in JOBS.values()]
OTHERS = [
    make_job(protocol, budget=budget, parties=parties, identities=identities)
    for protocol, budget in (
        ("", "[budget]\nepsilon = 1.0"),
        ('name = "fastlloyd"', "[budget]\nepsilon = 0.5\ndelta = 1e-9"),
        ('name = "naive"', ""),
        ('name = "masked-sum-count"\nmasks = "double"', ""),
    )
    for parties in (2, 3)
    for identities in (False, True)
    if parties > 2 or "double" not in protocol
]


@given(POLICIES, st.sampled_from(GOLDEN + OTHERS))
def test_a_job_is_allowed_exactly_if_it_keeps_every_limit(policy: Policy, job: Job) -> None:
    assert (not find_breaches(policy, job, job.parties[0].name)) == keeps(policy, job)


@given(POLICIES, POLICIES, st.sampled_from(GOLDEN + OTHERS))
def test_a_limit_more_never_allows_more(first: Policy, second: Policy, job: Job) -> None:
    free = [
        key
        for key in Policy.__struct_fields__
        if getattr(first, key) is None or (key, getattr(first, key)) == ("revoked", ())
    ]
    both = {key: getattr(second, key) for key in free}
    narrower = Policy(**{key: getattr(first, key) for key in Policy.__struct_fields__} | both)
    me = job.parties[0].name
    if not find_breaches(narrower, job, me):
        assert not find_breaches(first, job, me)


# --- files ------------------------------------------------------------------------------------------------------------

TEXT = f"""\
# What this hospital takes part in.
columns = ["age", "bmi"]
parties_min = 3
epsilon_max = 1
protocols = ["synopsis"]
placements = ["shared"]
masks = ["double"]
coordinators = ["{KEYS[0]}"]
revoked = ["sha256:{"ab" * 32}", "{KEYS[4]}"]
"""


def test_a_policy_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(TEXT)
    policy = load_policy(tmp_path / "policy.toml")
    assert policy.columns == ("age", "bmi")
    assert policy.epsilon_max == 1
    assert policy.revoked == ("sha256:" + "ab" * 32, KEYS[4])
    assert find_breaches(policy, make_job(), "north") == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon_max", "max_epsilon", ":4: max_epsilon must be a known key"),
        ("epsilon_max = 1", "epsilon_max = 0", ":4: epsilon_max must be greater than 0"),
        ("epsilon_max = 1", "epsilon_max = nan", ":4: epsilon_max must be a finite number"),
        ("epsilon_max = 1", "epsilon_max = inf", ":4: epsilon_max must be a finite number"),
        ("epsilon_max = 1", 'epsilon_max = "1"', ":4: epsilon_max"),
        ("parties_min = 3", "parties_min = true", ":3: parties_min must be an integer"),
        ('["synopsis"]', '"synopsis"', ":5: protocols must be a list"),
        ('["synopsis"]', '["synopsys"]', ":5: protocols[0] must be one of synopsis, "),
        ('["shared"]', '["share"]', ":6: placements[0] must be one of"),
        ('["double"]', '["triple"]', ":7: masks[0] must be one of"),
        (KEYS[0], KEYS[0][:-1], ":8: coordinators[0]: an identity must be ed25519: and 56"),
        (KEYS[4], KEYS[4][:-1] + "9", ":9: revoked[1]: an identity must"),
        ("sha256:", "sha1:", ":9: revoked[0] must be ed25519: or sha256: with a fingerprint"),
        ("sha256:ab", "sha256:AB", ":9: revoked[0] must be ed25519: or sha256:"),
        ("columns", "columns = 1 #", ":2: columns must be a list"),
    ],
)
def test_a_policy_that_limits_nothing_by_mistake_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(ConfigError) as error:
        load_policy(path)
    assert f"{path}{message}" in str(error.value)


def test_a_missing_policy_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a policy must be a readable file"):
        load_policy(tmp_path / "policy.toml")


def test_a_policy_of_an_own_side_holds_in_simulations_too(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("epsilon_max = 0.5")
    (tmp_path / "north.toml").write_text('data = "north.csv"\npolicy = "policy.toml"')
    (tmp_path / "harbour.toml").write_text('data = "harbour.csv"')
    assert load_own_side(tmp_path / "north.toml").policy == tmp_path / "policy.toml"
    (tmp_path / "job.toml").write_text(
        'name = "a"\n[clusters]\nk = 2\n[budget]\nepsilon = 1\n[columns]\nx = { low = 0, high = 1 }\n'
        '[[parties]]\nname = "north"\n[[parties]]\nname = "harbour"\n'
    )
    own = {"north": tmp_path / "north.toml", "harbour": tmp_path / "harbour.toml"}
    with pytest.raises(PolicyError, match=r"epsilon_max = 0.5: .* got 1"):
        load_setup(tmp_path / "job.toml", own=own)
    (tmp_path / "policy.toml").write_text("epsilon_max = 1")
    assert load_setup(tmp_path / "job.toml", own=own).job.name == "a"
