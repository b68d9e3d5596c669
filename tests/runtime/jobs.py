"""Three small jobs of every family of protocols, for processes on different processors and for kills.

The first of each family is what tests run by default; ``CLOISTER_LONG=1`` runs all.
"""

import os

from tests.golden.jobs import JOBS as GOLDEN
from tests.golden.tables import COLUMNS, HELD, PARTY_ROWS

LONG = os.environ.get("CLOISTER_LONG") == "1"


def make_job(protocol, *, budget="", data="", section="", columns=2):
    lines = ['name = "mixed"', "[clusters]", "k = 3", "[protocol]", protocol]
    lines += ["[budget]", budget] if budget else []
    lines += ["[data]", data, section, "[columns]"]
    lines += [f"x{column} = {{ low = 0, high = 100 }}" for column in range(columns)]
    for party in PARTY_ROWS:
        lines += ["[[parties]]", f'name = "{party}"', f'data = "{party}.csv"']
    return "\n".join(lines) + "\n"


def make_vertical(protocol="", *, budget=""):
    parties = ("bank", "telco", "shop")
    lines = ['name = "mixed"', "[clusters]", "k = 3", "[protocol]", 'name = "vertical"', protocol]
    lines += ["[budget]", budget] if budget else []
    lines += ["[data]", "aligned = true", "records = 80", "[columns]"]
    lines += [f"{column} = {{ low = 0, high = 100 }}" for party in parties for column in HELD[party]]
    for party in parties:
        lines += ["[[parties]]", f'name = "{party}"', f'data = "aligned-{party}.csv"']
        lines += ["columns = [" + ", ".join(f'"{column}"' for column in HELD[party]) + "]"]
    return "\n".join(lines) + "\n"


BUDGET = "epsilon = 8.0\ndelta = 1e-6"
SHARED = 'placement = "shared"\ncolluding_max = 1\n'
RING = 'topology = "ring"\n'
JOINT = 'name = "{}"\niterations = 2\nnoise = "laplace"\nplacement = "joint"\n' + RING
CELLS = "[synopsis]\ncells_max = 30"
SERVER = 'server = "server.csv"'
SERVER_AIDED = 'model = "server-aided"\ncells = 3\niterations = 1\ncomputing = "bank"\nkey_holder = "shop"'
GIVEN = 'initialisation = "given"\nstart = [[10, 20], [50, 60], [90, 30]]\n'
FAMILIES = {
    "naive": {
        "": make_job('name = "naive"\niterations = 3'),
        "until it settles": GOLDEN["naive-tolerance"],
        "given start": make_job('name = "naive"\niterations = 3\n' + GIVEN),
    },
    "masked sums": {
        "": make_job('name = "masked-sum-count"\niterations = 3'),
        "double masks": make_job('name = "masked-sum-count"\niterations = 3\nmasks = "double"'),
        "given start": GOLDEN["masked-sum-count-given"],
    },
    "masked centroids": {
        "": make_job('name = "masked-centroid"\niterations = 3'),
        "the coordinator's start": GOLDEN["masked-centroid"],
        "sizes": GOLDEN["masked-centroid-exclusive"],
    },
    "mask-noise-average": {
        "": make_job('name = "mask-noise-average"\niterations = 3\n' + SHARED, budget=BUDGET),
        "Laplace": GOLDEN["mask-noise-average-laplace-shared"],
        "bounded": GOLDEN["mask-noise-average-bound"],
    },
    "FastLloyd": {
        "": make_job('name = "fastlloyd"\niterations = 3\n' + SHARED, budget=BUDGET, columns=COLUMNS),
        "defaults": GOLDEN["fastlloyd-defaults"],
        "noise of its own at each": GOLDEN["fastlloyd-laplace-local"],
    },
    "published FastLloyd": {
        "": GOLDEN["fastlloyd-published"],
        "mask, noise then average": GOLDEN["fastlloyd-mna"],
        "average, mask then noise": GOLDEN["fastlloyd-amn"],
    },
    "FastLloyd, ring": {
        "": make_job('name = "fastlloyd"\niterations = 3\n' + RING + SHARED, budget=BUDGET),
        "Laplace": GOLDEN["fastlloyd-ring-laplace"],
        "mask-noise-average": GOLDEN["mask-noise-average-ring-local"],
    },
    "FastLloyd, joint noise": {
        "": make_job(JOINT.format("fastlloyd"), budget=BUDGET),
        "mask-noise-average": make_job(JOINT.format("mask-noise-average"), budget=BUDGET),
        "epsilon 2": make_job(JOINT.format("fastlloyd"), budget="epsilon = 2.0\ndelta = 1e-5"),
    },
    "SecFC": {
        "": make_job('name = "secfc"\niterations = 4'),
        "noisy centres": GOLDEN["secfc-budget"],
        "fewer bits": make_job('name = "secfc"\niterations = 4\ncoordinate_bits = 10\nseparate_after = 1', columns=4),
    },
    "vertical": {
        "": make_vertical("cells = 3\niterations = 1"),
        "random start": make_vertical('cells = 3\niterations = 2\ninitialisation = "random"'),
        "joint cells": make_vertical(SERVER_AIDED),
    },
    "vertical with a budget": {
        "": make_vertical("cells = 3\niterations = 1", budget=BUDGET),
        "joint cells": make_vertical(SERVER_AIDED, budget=BUDGET),
        "random start": make_vertical('cells = 3\niterations = 2\ninitialisation = "random"', budget=BUDGET),
    },
    "synopsis": {
        "": make_job('name = "synopsis"', budget=BUDGET, section=CELLS),
        "noise of its own at each": make_job('name = "synopsis"\nplacement = "local"', budget=BUDGET, section=CELLS),
        "projected": GOLDEN["synopsis-projected"],
    },
    "FedDP": {
        "": make_job('name = "feddp"', budget=BUDGET, data=SERVER),
        "as published": make_job('name = "feddp"\nvariant = "published"', budget=BUDGET, data=SERVER),
        "simplified": GOLDEN["feddp-options"],
    },
}
JOBS = {
    f"{family}, {what}" if what else family: text for family, jobs in FAMILIES.items() for what, text in jobs.items()
}
RUN = tuple(JOBS) if LONG else tuple(FAMILIES)
"""The names of the jobs that are run."""
