"""The process of one role: it reads its own table and nobody else's, and refuses what it cannot do before its seat."""

import io

import pytest
from tests.golden.tables import write_tables
from tests.owners import told_to_owner

from cloister.cli.role_process import RoleTask, open_role, read_report
from cloister.errors import ConfigError, DataError, RemoteProtocolError
from cloister.runtime.pipe_messages import Abandon, Directory, Failed, Frame, Hello, Refused, Seated, Task, encode
from cloister.runtime.piped_role import Pipe, serve
from cloister.wire import CoordinatorEndpoint, PartyEndpoint

JOB = """
name = "one"
[clusters]
k = 2
[protocol]
name = "vertical"
model = "server-aided"
computing = "bank"
key_holder = "helper"
[data]
DATA
[columns]
income = { low = 0, high = 100 }
savings = { low = 0, high = 100 }
gigabytes = { low = 0, high = 100 }
[[parties]]
name = "bank"
columns = ["income", "savings"]
[[parties]]
name = "telco"
columns = ["gigabytes"]
[[parties]]
name = "helper"
columns = []
"""
NAMES = ("bank", "telco", "helper")


@pytest.fixture
def tables(tmp_path):
    write_tables(tmp_path)
    return tmp_path


def make_task(party=None, table=None, *, data="aligned = true\nrecords = 80"):
    return RoleTask(
        job=JOB.replace("DATA", data),
        folder=".",
        session=bytes(16),
        party=party,
        data=None if table is None else str(table),
        seed=1,
    ).encode()


def list_identities(tables):
    own = {"bank": tables / "aligned-bank.csv", "telco": tables / "aligned-telco.csv"}
    return tuple(open_role(make_task(name, own.get(name))).identity for name in NAMES)


def test_each_role_takes_its_seat_with_its_own_table_alone(tables):
    directory = list_identities(tables)
    assert len(set(directory)) == 3
    (tables / "aligned-bank.csv").unlink()  # whoever is not the bank has no use for it
    for number, (party, table) in enumerate(
        [(None, None), ("telco", tables / "aligned-telco.csv"), ("helper", None)], start=0
    ):
        endpoint = open_role(make_task(party, table)).seat(directory).endpoint
        assert isinstance(endpoint, PartyEndpoint if party else CoordinatorEndpoint)
        if party:
            assert endpoint.number == 1 + NAMES.index(party) == number + 1


def test_a_party_that_has_not_finished_has_found_nothing(tables):
    role = open_role(make_task("helper")).seat(list_identities(tables))
    report = read_report(role.find({"rounds": 3}))
    assert report.centres is None
    assert report.charged == ()


def test_what_cannot_be_is_refused_before_a_seat_is_taken(tables):
    with pytest.raises(ConfigError, match=r"data\.records must be given where a role has no table"):
        open_role(make_task(data="aligned = true"))
    with pytest.raises(ConfigError, match="same order at all parties"):
        open_role(make_task("bank", tables / "bank.csv", data='id = "id"'))
    with pytest.raises(ConfigError, match="'bank' must have a table"):
        open_role(make_task("bank"))
    with pytest.raises(ConfigError, match="one of the job's parties; 'shop' is not"):
        open_role(make_task("shop"))
    with told_to_owner(DataError):
        open_role(make_task("bank", tables / "nowhere.csv"))
    with pytest.raises(RemoteProtocolError, match="that of one role"):
        open_role(b"\xc1")


# --- the loop around it -------------------------------------------------------------------------------------------


def serve_all(*messages):
    """What a process says to these messages, in this one."""
    sink = io.BytesIO()
    serve(open_role, Pipe(io.BytesIO(b"".join(map(encode, messages))), sink))
    pipe = Pipe(io.BytesIO(sink.getvalue()), io.BytesIO())
    said = []
    while (message := pipe.receive()) is not None:
        said.append(message)
    return said


def test_a_process_serves_until_nothing_comes_and_passes_over_what_belongs_to_no_session(tables):
    directory = Directory(list_identities(tables))
    task = Task(make_task("helper"))
    said = serve_all(Frame(3, b"left over"), task, directory, Frame(3, b"gibberish"), Abandon("given up"), Abandon("x"))
    assert [type(message) for message in said] == [Hello, Seated, Refused, Failed]
    assert (said[3].kind, said[3].reason) == ("TooFewPartiesError", "given up")


def test_a_new_task_ends_the_session_before_it(tables):
    directory, task = Directory(list_identities(tables)), Task(make_task("helper"))
    assert [type(message) for message in serve_all(task, task, directory, task)] == [Hello, Hello, Seated, Hello]


def test_an_error_is_told_and_the_next_task_is_served(tables):
    said = serve_all(Task(b"\xc1"), Task(make_task("helper")))
    assert [type(message) for message in said] == [Failed, Hello]
    assert said[0] == Failed()
