"""The bank and the phone company: the same files every time, and kinds of customers that only both together see."""

import io
import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from cloister.data.samples.customers import generate_customers, write_customers


@pytest.fixture(scope="module")
def frames():
    files = generate_customers()
    return {name: pd.read_csv(io.StringIO(files[f"{name}.csv"])) for name in ("bank", "telco")}


def test_every_call_writes_the_same_files(tmp_path):
    assert write_customers(tmp_path) == tmp_path / "job.toml"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == generate_customers()


def test_some_customers_are_common_and_nobody_has_them_in_order(frames):
    bank, telco = frames["bank"], frames["telco"]
    assert (len(bank), len(telco), len(bank.merge(telco, on="customer"))) == (1600, 1500, 1200)
    assert bank.customer.is_unique
    assert telco.customer.is_unique
    common = [
        frame.customer[frame.customer.isin(other.customer)].tolist() for frame, other in ((bank, telco), (telco, bank))
    ]
    assert sorted(common[0]) == sorted(common[1])
    assert sum(a == b for a, b in zip(*common, strict=True)) < 20


def test_each_sees_two_kinds_and_both_together_four(frames):
    joint = frames["bank"].merge(frames["telco"], on="customer")
    scale = np.array([150, 80, 50, 24])
    points = joint[["income", "savings", "data_gb", "call_hours"]].to_numpy() / scale
    centres = KMeans(4, n_init=5, random_state=0).fit(points).cluster_centers_ * scale
    expected = sorted((*own, *other) for own, other in itertools.product([(31, 6), (78, 42)], [(4, 11), (26, 3)]))
    np.testing.assert_allclose(np.array(sorted(centres.tolist(), key=lambda c: (c[0] > 50, c[2]))), expected, atol=1.5)
    for columns in (slice(0, 2), slice(2, 4)):
        loss = [KMeans(k, n_init=5, random_state=0).fit(points[:, columns]).inertia_ for k in (1, 2, 3)]
        assert loss[1] < 0.25 * loss[0]
        assert loss[2] > 0.6 * loss[1]  # a third kind explains little
