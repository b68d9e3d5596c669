"""Many processes, threads, forks and kills: the cap holds and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import signal
import threading
import warnings

import pytest

from cloister.errors import BudgetError
from cloister.privacy.costs import rho_of_epsilon
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Budget
from tests.privacy.ledger.helpers import BUDGET, PATIENTS, gaussian, open_session, start_process, start_together

CAP = Budget(epsilon=1.0, delta=1e-6)
FITTING = 40  # charges of one fortieth of the cap, and a little less


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def small_charge():
    return gaussian(0.9999 * rho_of_epsilon(CAP.epsilon, CAP.delta) / FITTING)


def count_charges(path):
    with Ledger(path, create=False) as ledger:
        ledger.verify()
        return sum(summary.charges for summary in ledger.summarise())


def test_processes_that_charge_at_once_fill_the_cap_exactly(path):
    with Ledger(path) as ledger:
        ledger.set_cap(PATIENTS, CAP, reason="test")
    code = """
        from cloister.errors import BudgetError
        from tests.privacy.ledger.test_processes import small_charge
        path, name = sys.argv[1:]
        session = open_session(Ledger(path), session=name.encode())
        wait_for_start()
        taken = 0
        try:
            for _ in range(30):
                session.charge(small_charge())
                taken += 1
        except BudgetError:
            pass
        print(taken)
        session.ledger.close()
    """
    workers = [start_process(code, path, name) for name in "abcd"]
    start_together(workers)
    outputs = [worker.communicate(timeout=60) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, outputs
    taken = sum(int(output) for output, _ in outputs)
    assert taken == count_charges(path) == FITTING


def test_processes_that_create_at_once_share_one_ledger(path):
    code = """
        wait_for_start()
        with Ledger(sys.argv[1]) as ledger:
            open_session(ledger).charge(gaussian(1e-6))
            print(ledger.salt.hex())
    """
    workers = [start_process(code, path) for _ in range(4)]
    start_together(workers)
    outputs = [worker.communicate(timeout=60) for worker in workers]
    assert len({output for output, _ in outputs}) == 1, outputs
    assert count_charges(path) == 4


def test_threads_share_a_ledger(path):
    with Ledger(path) as ledger:
        ledger.set_cap(PATIENTS, CAP, reason="test")
        taken = []

        def work(name):
            session = open_session(ledger, session=name)
            for _ in range(20):
                try:
                    session.charge(small_charge())
                    taken.append(name)
                except BudgetError:
                    return

        threads = [threading.Thread(target=work, args=(bytes([n]),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(taken) == count_charges(path) == FITTING


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_pays_for_itself_and_leaves_the_parents_connection_alone(path):
    with Ledger(path) as ledger:
        session = open_session(ledger)
        session.charge_all([gaussian(1e-3)])
        parents_connection = ledger._store._connection
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads elsewhere in the test run
            child = os.fork()
        if child == 0:
            try:
                session.charge(gaussian(1e-3))  # not covered by what the parent has paid
                own = ledger._store._connection is not parents_connection
                ledger.close()
                os._exit(0 if own else 2)
            except BaseException:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        session.charge(gaussian(1e-3))  # paid
        session.charge(gaussian(1e-3))
        assert count_charges(path) == 3


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kill_between_charge_and_release_counts_as_spent(path):
    code = """
        session = open_session(Ledger(sys.argv[1]))
        session.charge(gaussian(0.01, "round 1"))
        print("charged", flush=True)
        time.sleep(60)
    """
    worker = start_process(code, path)
    assert worker.stdout.readline() == "charged\n"
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=10)
    assert worker.returncode == -signal.SIGKILL
    assert count_charges(path) == 1
    with Ledger(path) as ledger:
        assert ledger.summarise()[0].rho == pytest.approx(0.01)
        open_session(ledger).charge(gaussian(0.01, "round 1, again"))
    assert count_charges(path) == 2


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("acknowledged", [1, 20, 150])
def test_a_kill_among_many_charges_loses_none_that_was_acknowledged(path, acknowledged):
    code = """
        session = open_session(Ledger(sys.argv[1]))
        for n in range(100_000):
            session.charge(gaussian(1e-6, f"round {n}"))
            print(n, flush=True)
    """
    worker = start_process(code, path)
    for _ in range(acknowledged):
        worker.stdout.readline()
    worker.send_signal(signal.SIGKILL)
    told = acknowledged + worker.stdout.read().count("\n")  # not communicate: it skips what readline has read ahead
    worker.communicate(timeout=10)
    assert told <= count_charges(path) <= told + 1
    with Ledger(path) as ledger:
        open_session(ledger, budget=BUDGET).charge(gaussian(1e-6))


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_plan_is_there_whole_or_not_at_all(path):
    code = """
        session = open_session(Ledger(sys.argv[1]))
        for n in range(100_000):
            session.charge_all([gaussian(1e-7, f"plan {n}, round {m}") for m in range(50)])
            print(n, flush=True)
    """
    worker = start_process(code, path)
    for _ in range(5):
        worker.stdout.readline()
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=10)
    assert count_charges(path) % 50 == 0
