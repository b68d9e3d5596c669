"""A run between machines: network namespaces with delay, loss, and partitions that heal or do not."""

import time

import pytest

from tests.deployment import doomed
from tests.deployment.namespaces import Network, find_missing
from tests.deployment.processes import COORDINATOR, JOB, NAMES, Processes
from tests.deployment.test_processes import check_end

MISSING = find_missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"network namespaces: {MISSING}")
PORT = 7400
EVERYBODY = (COORDINATOR, *NAMES)


def start_all(network, processes):
    """Everybody in a namespace of its own."""
    for name in EVERYBODY:
        more = ("--listen", f"0.0.0.0:{PORT}") if name == COORDINATOR else ()
        address = f"{network.find_address(COORDINATOR)}:{PORT}"
        processes.start(name, address=address, more=more, env={doomed.NAMESPACE: network.find_place(name)})


def test_a_run_over_a_slow_line_that_loses_packets_ends_with_one_result(tmp_path):
    with (
        Network(EVERYBODY, delay_s=0.05, loss=0.01) as network,
        Processes(tmp_path, JOB.format(protocol="")) as processes,
    ):
        start_all(network, processes)
        processes.wait_all()
        check_end(processes)
        assert network.lost > 0


@pytest.mark.parametrize("who", [COORDINATOR, "harbour"])
def test_a_partition_in_the_middle_heals_and_the_run_goes_on(who, tmp_path):
    """For longer than keep-alives wait, so that the link is given up and made anew."""
    with Network(EVERYBODY, delay_s=0.02) as network, Processes(tmp_path, JOB.format(protocol="")) as processes:
        start_all(network, processes)
        wait_for(lambda: list((tmp_path / "data-harbour").rglob("journals/*/clustering")))
        network.cut = {who}
        time.sleep(18)
        assert all(processes.running[name].exitcode is None for name in EVERYBODY)
        network.cut = set()
        processes.wait_all()
        check_end(processes)


def test_a_partition_that_does_not_heal_ends_in_typed_errors_on_both_sides(tmp_path):
    with Network(EVERYBODY) as network, Processes(tmp_path, JOB.format(protocol=""), deadline=8) as processes:
        start_all(network, processes)
        wait_for(lambda: list((tmp_path / "data-harbour").rglob("journals/*/clustering")))
        network.cut = {"harbour"}
        for name in EVERYBODY:
            code, text = processes.wait(name, 60)
            assert code == 8, (name, code, text)
            assert name != "harbour" or "nothing was heard of it for" in text


def wait_for(holds, timeout_s=60):
    until_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.002)
