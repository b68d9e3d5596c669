"""The golden jobs: one small seeded job for every protocol, variant, placement, topology and vertical model."""

from __future__ import annotations

from typing import Any

from tests.golden.tables import CLIENTS, HELD, PARTY_ROWS


def _job(
    protocol: str,
    *,
    budget: str = "",
    clusters: str = "k = 3",
    data: str = "",
    columns: int | str = 2,
    parties: tuple[str, ...] = tuple(PARTY_ROWS),
    section: str = "",
) -> str:
    """A job whose parties hold records of all columns; ``protocol`` and so on are the lines of their sections."""
    if isinstance(columns, int):
        columns = "\n".join(f"x{column} = {{ low = 0, high = 100 }}" for column in range(columns))
    lines = ['name = "golden"', "[run]", "seed = 11", "[clusters]", clusters, "[protocol]", protocol]
    lines += ["[budget]", budget] if budget else []
    lines += ["[data]", data] if data else []
    lines += [section, "[columns]", columns]
    for party in parties:
        lines += ["[[parties]]", f'name = "{party}"', f'data = "{party}.csv"']
    return "\n".join(lines) + "\n"


def _vertical(
    protocol: str = "",
    *,
    holders: tuple[str, ...] = ("bank", "telco"),
    helper: bool = False,
    budget: str = "",
    data: str = "aligned = true",
    section: str = "",
) -> str:
    """A job whose parties hold other columns of the same records; ``helper`` is one more party without any."""
    stem = "aligned-" if data == "aligned = true" else ""
    lines = [
        'name = "golden"',
        "[run]",
        "seed = 11",
        "[clusters]",
        "k = 3",
        "[protocol]",
        'name = "vertical"',
        protocol,
    ]
    lines += ["[budget]", budget] if budget else []
    lines += ["[data]", data, section, "[columns]"]
    lines += [f"{column} = {{ low = 0, high = 100 }}" for party in holders for column in HELD[party]]
    for party in holders:
        lines += ["[[parties]]", f'name = "{party}"', f'data = "{stem}{party}.csv"']
        lines += ["columns = [" + ", ".join(f'"{column}"' for column in HELD[party]) + "]"]
    lines += ["[[parties]]", 'name = "helper"', "columns = []"] if helper else []
    return "\n".join(lines) + "\n"


def _synopsis(
    protocol: str = "",
    *,
    budget: str = "epsilon = 2.0",
    section: str = "[synopsis]\ncells_max = 100",
    data: str = "",
    scale: str = "bounds",
    **rest: Any,
) -> str:
    lines = f'scale = "{scale}"\n{data}'
    return _job(f'name = "synopsis"\n{protocol}', budget=budget, section=section, data=lines, **rest)


def _spread(**rest: Any) -> str:
    return _synopsis(budget=PAID, scale="spread", **rest)


def _feddp(
    protocol: str = "", *, budget: str = "epsilon = 4.0", data: str = 'server = "server.csv"', **rest: Any
) -> str:
    return _job(f'name = "feddp"\n{protocol}', budget=budget, data=data, **rest)


def _fastlloyd(protocol: str = "", *, budget: str = "epsilon = 4.0", **rest: Any) -> str:
    return _job(f'name = "fastlloyd"\niterations = 4\n{protocol}', budget=budget, **rest)


def _published(variant: str, protocol: str = "", **rest: Any) -> str:
    return _job(
        f'name = "fastlloyd"\nvariant = "{variant}"\n{protocol}',
        budget="epsilon = 8.0",
        data="records = 150",
        **rest,
    )


def _thesis(name: str, protocol: str = "", **rest: Any) -> str:
    return _job(f'name = "{name}"\niterations = 4\n{protocol}', **rest)


def _noisy(protocol: str = "", *, budget: str = "epsilon = 8.0\ndelta = 1e-6") -> str:
    return _thesis("mask-noise-average", protocol, budget=budget)


def _audited(name: str) -> str:
    return _job(f'name = "{name}"\niterations = 2', budget=PAID, clusters="k = 2", columns=1, parties=PAIR)


SHARED = 'placement = "shared"\ncolluding_max = 1'
LOCAL = 'placement = "local"'
AGGREGATOR = 'placement = "aggregator"'
RING = 'topology = "ring"\n'
JOINT = RING + 'noise = "laplace"\nplacement = "joint"'
SIZES = "alpha_min = 1.5\nalpha_max = 1.5"
MANY = tuple(f"client{client}" for client in range(CLIENTS))
PURE = "epsilon = 8.0\ndelta = 0"
PAID = "epsilon = 8.0\ndelta = 1e-6"
PAIR = ("north", "harbour")
MIXED = ("mixed0", "mixed1")
KINDS = 'x0 = { low = 0, high = 1000 }\nward = { levels = ["a", "b", "c"] }\nsmokes = { boolean = true }'
CELLS = "[synopsis]\ncells_max = 16"
LEDGER = '[ledger]\npath = "ledgers"'
THREE = ("bank", "telco", "shop")

JOBS: dict[str, str] = {
    "synopsis-aggregator": _synopsis(AGGREGATOR),
    "synopsis-shared": _synopsis(SHARED),
    "synopsis-local": _synopsis(LOCAL),
    "synopsis-records": _synopsis(data="records = 150\nmax_records = 60"),
    "synopsis-choose-k": _synopsis(clusters="choose_k = true\nk_max = 5"),
    "synopsis-client": _synopsis(budget='epsilon = 8.0\nunit = "client"', parties=MANY),
    "synopsis-person": _synopsis(
        budget='epsilon = 4.0\nunit = "person"', data='person = "id"\nperson_records = 2\nperson_parties = 1'
    ),
    "synopsis-projected": _synopsis(columns=7),
    "synopsis-projected-shared": _synopsis(SHARED, columns=7, data="records = 150"),
    "synopsis-defaults": _synopsis(section=""),
    "synopsis-network": _synopsis(section='[network]\nmodel = "regWAN100"'),
    "synopsis-ledger": _synopsis(section=f"{CELLS}\n{LEDGER}"),
    "synopsis-audited": _synopsis(
        budget="epsilon = 8.0",
        section=f"{CELLS}\nrestarts = 1\nrounds_min = 1\nrounds_max = 1",
        clusters="k = 1",
        columns=1,
        parties=PAIR,
    ),
    "synopsis-spread": _spread(columns="x0 = { low = 0, high = 900 }\nx1 = { low = -50, high = 100, weight = 2 }"),
    "synopsis-spread-projected": _spread(columns=7),
    "synopsis-spread-private": _spread(columns='x0 = { low = 0, high = 100 }\nx1 = { bounds = "private" }'),
    "synopsis-spread-impute": _spread(data='missing = "impute"', parties=MIXED),
    "synopsis-spread-categories": _spread(data='missing = "drop"', columns=KINDS, parties=MIXED),
    "synopsis-bounds-impute": _synopsis(data='missing = "impute"', parties=MIXED),
    "synopsis-spread-audited": _synopsis(
        budget="epsilon = 8.0",
        section=f"{CELLS}\nrestarts = 1\nrounds_min = 1\nrounds_max = 1",
        clusters="k = 1",
        columns=1,
        parties=PAIR,
        scale="spread",
    ),
    "feddp-record": _feddp(),
    "feddp-aggregator": _feddp(AGGREGATOR),
    "feddp-shared": _feddp(SHARED),
    "feddp-local": _feddp(LOCAL),
    "feddp-client": _feddp(budget='epsilon = 8.0\nunit = "client"', parties=MANY),
    "feddp-published": _feddp('variant = "published"'),
    "feddp-published-steps": _feddp('variant = "published"', section="[feddp]\nlloyd_steps = 2"),
    "feddp-published-client": _feddp(
        'variant = "published"',
        budget='epsilon = 8.0\nunit = "client"',
        data='server = "server.csv"\nrecords = 240',
        parties=MANY,
    ),
    "feddp-sample": _feddp(section="[feddp]\nsample = 20", parties=MANY),
    "feddp-options": _feddp(section="[feddp]\nsimplify = true\nclear_only = true"),
    "feddp-separation": _feddp(section="[feddp]\nweight_min = 0.2\nsigma_max = 0.2"),
    "feddp-records": _feddp(data='server = "server.csv"\nrecords = 150', columns=5),
    "feddp-no-server": _feddp(data=""),
    "feddp-ledger": _feddp('variant = "published"', section=LEDGER),
    "feddp-audited": _feddp(budget=PAID, section="[feddp]\nlloyd_steps = 1\nrestarts = 1", parties=PAIR),
    "naive": _thesis("naive"),
    "naive-tolerance": _thesis("naive", 'tolerance = 0.01\ninitialisation = "random"'),
    "masked-sum-count": _thesis("masked-sum-count"),
    "masked-sum-count-given": _thesis(
        "masked-sum-count", 'initialisation = "given"\nstart = [[10, 20], [50, 60], [90, 30]]'
    ),
    "masked-sum-count-ring32": _thesis("masked-sum-count", "ring = 32\nfractional_bits = 12", data="max_records = 100"),
    "masked-centroid": _thesis("masked-centroid", 'initialisation = "random"\nstart_by = "coordinator"'),
    "masked-centroid-non-exclusive": _thesis(
        "masked-centroid", 'assignment = "constrained-non-exclusive"\nsize_min = 12'
    ),
    "masked-centroid-exclusive": _thesis(
        "masked-centroid", 'assignment = "constrained-exclusive"\nsize_min = 10\nsize_max = 24'
    ),
    "masked-centroid-e-exclusive": _thesis(
        "masked-centroid", f'assignment = "constrained-e-exclusive"\nmemberships_max = 2\n{SIZES}'
    ),
    "masked-centroid-distance": _thesis(
        "masked-centroid", f'assignment = "distance-constrained"\nradius = 0.8\n{SIZES}'
    ),
    "mask-noise-average": _noisy(),
    "mask-noise-average-aggregator": _noisy(AGGREGATOR),
    "mask-noise-average-bound": _noisy("norm_bound = 1.0"),
    "mask-noise-average-shared": _noisy(SHARED),
    "mask-noise-average-local": _noisy(LOCAL),
    "mask-noise-average-laplace": _noisy('noise = "laplace"', budget=PURE),
    "mask-noise-average-laplace-shared": _noisy(f'noise = "laplace"\n{SHARED}', budget=PURE),
    "mask-noise-average-ring-local": _noisy(RING + LOCAL),
    "mask-noise-average-ring-shared": _noisy(RING + SHARED),
    "mask-noise-average-ring-joint": _noisy(JOINT),
    "mask-noise-average-audited": _audited("mask-noise-average"),
    "fastlloyd-gaussian": _fastlloyd(),
    "fastlloyd-aggregator": _fastlloyd(AGGREGATOR),
    "fastlloyd-defaults": _job('name = "fastlloyd"', budget="epsilon = 4.0"),
    "fastlloyd-records": _fastlloyd(data="records = 150"),
    "fastlloyd-radius": _fastlloyd("radius = 0.5"),
    "fastlloyd-shared": _fastlloyd('placement = "shared"\nhonest_fraction = 0.5'),
    "fastlloyd-local": _fastlloyd(LOCAL),
    "fastlloyd-laplace": _fastlloyd('noise = "laplace"'),
    "fastlloyd-laplace-local": _fastlloyd(f'noise = "laplace"\n{LOCAL}'),
    "fastlloyd-ring-local": _fastlloyd(RING + LOCAL),
    "fastlloyd-ring-shared": _fastlloyd(RING + SHARED),
    "fastlloyd-ring-laplace": _fastlloyd(f'{RING}noise = "laplace"\n{SHARED}'),
    "fastlloyd-ring-joint": _fastlloyd(JOINT),
    "fastlloyd-published": _published("published"),
    "fastlloyd-csulloyd": _published("csulloyd"),
    "fastlloyd-sulloyd": _published("sulloyd"),
    "fastlloyd-mna": _published("mna"),
    "fastlloyd-amn": _published("amn"),
    "fastlloyd-published-unconstrained": _published("published", 'assignment = "unconstrained"'),
    "fastlloyd-published-distance": _published("published", 'assignment = "distance-constrained"\nradius = 1.5'),
    "fastlloyd-csulloyd-non-exclusive": _published("csulloyd", 'assignment = "constrained-non-exclusive"\nrho = 0.3'),
    "fastlloyd-mna-e-exclusive": _published(
        "mna", f'assignment = "constrained-e-exclusive"\nmemberships_max = 2\n{SIZES}'
    ),
    "fastlloyd-sulloyd-postprocess": _published("sulloyd", 'postprocess = ["truncate", "fold", "truncate"]'),
    "fastlloyd-sulloyd-ring": _published("sulloyd", RING + SHARED),
    "fastlloyd-published-ring-local": _published("published", RING + LOCAL),
    "fastlloyd-infeasible": _published("published", parties=("north", "client1", "client2")),
    "fastlloyd-ledger": _fastlloyd('noise = "laplace"', section=LEDGER),
    "fastlloyd-audited": _audited("fastlloyd"),
    "fastlloyd-published-audited": _published("published", "iterations = 2", clusters="k = 6"),
    "secfc": _job('name = "secfc"\niterations = 8'),
    "secfc-options": _job(
        'name = "secfc"\niterations = 8\nprivacy = 1\nsegments = 2\ncoordinate_bits = 10\nseparate_after = 1',
        parties=MANY[:6],
        columns=4,
    ),
    "secfc-budget": _job('name = "secfc"\niterations = 4', budget="epsilon = 8.0", data="records = 150"),
    "secfc-id": _job('name = "secfc"\niterations = 6', data='id = "id"'),
    "vertical-two-party": _vertical(),
    "vertical-budget": _vertical(budget=PAID),
    "vertical-budget-records": _vertical(budget="epsilon = 8.0", data='records = 93\nid = "id"'),
    "vertical-random": _vertical('initialisation = "random"\niterations = 3'),
    "vertical-random-budget": _vertical('initialisation = "random"\niterations = 2', budget=PAID),
    "vertical-telco-computes": _vertical('computing = "telco"\ncells = 6\nresiduals = false\noffset_bits = 10'),
    "vertical-labels": _vertical('labels = ["bank", "telco"]', budget=PAID),
    "vertical-id": _vertical('labels = ["telco"]', data='id = "id"\nid_form = "text"\nid_trim = true', budget=PAID),
    "vertical-server-aided": _vertical(
        'computing = "bank"\nmodel = "server-aided"\nkey_holder = "helper"', helper=True
    ),
    "vertical-server-aided-labels": _vertical(
        'computing = "bank"\nmodel = "server-aided"\nkey_holder = "helper"\nlabels = ["bank"]', helper=True, budget=PAID
    ),
    "vertical-collective": _vertical("cells = 4\niterations = 2", helper=True, budget=PAID),
    "vertical-collective-exact": _vertical('computing = "bank"\ncells = 4\niterations = 2', helper=True),
    "vertical-threshold": _vertical(
        "threshold = 2\ncolluding_max = 1\ncells = 4", holders=THREE, helper=True, budget=PAID
    ),
    "vertical-joint": _vertical("cells = 4\niterations = 2", holders=THREE, budget=PAID),
    "vertical-joint-exact": _vertical("cells = 4\niterations = 2", holders=THREE, data='id = "id"'),
    "vertical-ledger": _vertical(budget=PAID, section=LEDGER),
    "vertical-audited": _vertical('initialisation = "random"\niterations = 1\ncells = 2', budget=PAID),
    "align-intersection": _vertical(holders=THREE, data='id = "id"'),
    "align-union": _vertical(holders=THREE, data='id = "id"'),
}
FAMILIES = {
    "guided": ("synopsis", "feddp"),
    "lloyd": ("naive", "mask", "fastlloyd"),
    "coded": ("secfc", "vertical", "align"),
}
PLANNED = (
    "synopsis-aggregator",
    "synopsis-client",
    "synopsis-choose-k",
    "synopsis-projected",
    "synopsis-spread",
    "synopsis-spread-projected",
    "feddp-record",
    "feddp-published",
    "naive",
    "masked-sum-count",
    "masked-centroid",
    "mask-noise-average",
    "mask-noise-average-ring-joint",
    "fastlloyd-gaussian",
    "fastlloyd-laplace-local",
    "fastlloyd-ring-shared",
    "fastlloyd-published",
    "fastlloyd-sulloyd",
    "secfc",
    "secfc-budget",
    "vertical-budget",
    "vertical-two-party",
    "vertical-server-aided",
    "vertical-threshold",
    "vertical-joint",
)
AUDITED = tuple(name for name in JOBS if name.endswith("-audited"))
LABELLED = ("synopsis-aggregator", "vertical-labels", "vertical-server-aided-labels")


def list_jobs(family: str) -> tuple[str, ...]:
    """The names of a family's jobs: a family is what one test file runs."""
    return tuple(name for name in JOBS if name.startswith(FAMILIES[family]))
