"""What a hostile coordinator, a lost journal or a restored ledger can do to ONE party: nothing but end its part."""

import hashlib

import msgspec
import pytest

from cloister.crypto import SystemEntropy
from cloister.deployment.course import add_facts, make_session_id
from cloister.deployment.own_roles import PartyPlace
from cloister.deployment.party_run import PartyRun
from cloister.deployment.run_files import RunFiles
from cloister.errors import DataError, LedgerError, RemoteProtocolError
from cloister.jobfile import parse_setup
from cloister.privacy.ledger import UNDECLARED, Ledger
from cloister.privacy.samplers import ExactSampler
from cloister.privacy.units import Unit
from cloister.protocol import PublicInput
from cloister.runtime.remote import greeting, messages
from cloister.runtime.remote.messages import Facts
from cloister.sessions.assembly import open_session, seat_coordinator
from cloister.wire import CoordinatorEndpoint
from tests.deployment.organisations import Organisations
from tests.golden.jobs import JOBS
from tests.golden.tables import write_tables
from tests.owners import told_to_owner

RUN = bytes(range(16))


class Case:
    """One party of a golden job without its seed; the test is the coordinator."""

    def __init__(self, folder, job="mask-noise-average-local", name="north", ledger=True):
        if not (folder / "north.csv").exists():
            write_tables(folder)
        section = f'\n[ledger]\npath = "{folder}/ledgers"\n' if ledger else ""
        text = JOBS[job].replace("seed = 11", "secure = true").replace("[columns]", f"{section}[columns]", 1)
        self.setup = parse_setup(text, folder=folder)
        self.organisations = Organisations(self.setup)
        self.folder, self.name, self.results = folder, name, []
        self.files = self.party = None
        self.open()

    def open(self):
        """Start its process, anew or for the first time."""
        agreed = self.organisations.agreed
        self.files = RunFiles(self.folder / "journals", key=bytes(32), job=agreed.job, role=self.name)
        place = PartyPlace(
            setup=self.organisations.own_setup(self.name),
            name=self.name,
            identity=self.organisations.identities[self.name],
            agreed=agreed,
            files=self.files,
        )
        self.party = PartyRun(place, lambda result, *_: self.results.append(result))
        self.party.resume()

    def kill(self):
        self.party.close(wipe=False)

    def make_start(self, kind="clustering", run=RUN, facts=Facts(), **changes):  # noqa: B008
        statement = greeting.consent_statement(self.organisations.agreed, run)
        consents = tuple(
            messages.Consented(name, "0.1.0", self.organisations.identities[name].sign(*statement))
            for name in self.organisations.names
        )
        start = messages.Start(kind, make_session_id(kind, run=run, seed=None), facts, consents, self.agreed(facts))
        return msgspec.structs.replace(start, **changes)

    def agreed(self, facts):
        """What a true coordinator computes from the job and the facts."""
        directory = tuple(self.organisations.agreed.parties.values())
        session = open_session(self.setup.job, directory, add_facts(PublicInput(), facts), session=bytes(16))
        return session.protocol.digest(session.agreed)

    def begin(self):
        self.party.consent(RUN)
        self.party.start(self.make_start())

    def first_request(self):
        """The first request of a true coordinator."""
        job, directory = self.setup.job, tuple(self.organisations.agreed.parties.values())
        session = open_session(job, directory, PublicInput(), session=self.make_start().session)
        role, _ = seat_coordinator(session, SystemEntropy(), sampler=ExactSampler())
        endpoint = CoordinatorEndpoint(role, codec=session.protocol.codec(session.agreed), session=session.id)
        return endpoint.frames()[1]

    def spent(self):
        if not self.setup.own_side(self.name).ledger.exists():  # it is made when the party takes its seat
            return 0
        with Ledger(self.setup.own_side(self.name).ledger) as ledger:
            return ledger.total(UNDECLARED, Unit.RECORD).epsilon(1e-6)


def test_nothing_is_charged_before_the_first_request_and_once_whatever_happens(tmp_path):
    case = Case(tmp_path)
    case.begin()
    assert case.spent() == 0
    frame = case.first_request()
    reply = case.party.answer(frame)
    charged = case.spent()
    assert charged == pytest.approx(8, rel=1e-3)
    for _ in range(3):
        case.kill()
        case.open()
        assert case.party.run == RUN
        assert case.party.answer(frame) == reply
        assert case.spent() == charged


def test_a_first_request_that_is_refused_charges_nothing_and_the_true_one_is_answered(tmp_path):
    """Otherwise garbage would spend a party's whole prepayment, and a refused message would change something."""
    case = Case(tmp_path)
    case.begin()
    frame = case.first_request()
    for damaged in (b"", b"garbage", frame[:-1], frame + b"\0", bytes([frame[0] ^ 1]) + frame[1:]):
        with pytest.raises(RemoteProtocolError):
            case.party.answer(damaged)
        assert case.spent() == 0
    case.party.answer(frame)
    assert case.spent() > 0


@pytest.mark.parametrize("agreed", [b"", bytes(32)])
def test_other_public_parameters_are_refused_before_anything_is_charged(agreed, tmp_path):
    """The same job, and another scale of noise in its last bit, say: another processor, or another version."""
    case = Case(tmp_path)
    case.party.consent(RUN)
    with pytest.raises(RemoteProtocolError, match=r"although the job is the same\. Nothing was charged"):
        case.party.start(case.make_start(agreed=agreed))
    assert case.spent() == 0


def test_a_journal_that_is_gone_is_noticed_by_what_was_charged(tmp_path):
    """Otherwise noise would be drawn again under one payment."""
    case = Case(tmp_path)
    case.begin()
    case.party.answer(case.first_request())
    charged = case.spent()
    case.kill()
    for file in case.files.folder.iterdir():
        file.unlink()
    case.open()
    case.party.consent(RUN)
    with pytest.raises(LedgerError, match="its journal is gone"):
        case.party.start(case.make_start())
    assert case.spent() == charged


def test_the_journal_of_a_role_that_is_gone_alone_is_noticed_too(tmp_path):
    case = Case(tmp_path)
    case.begin()
    case.party.answer(case.first_request())
    case.kill()
    (case.files.folder / "clustering").unlink()
    with pytest.raises(LedgerError, match="its journal is gone"):
        case.open()


def test_a_ledger_that_was_set_back_is_noticed(tmp_path):
    case = Case(tmp_path)
    case.begin()
    path = case.setup.own_side("north").ledger
    case.party.close(wipe=False)
    backup = path.read_bytes()
    case.open()
    case.party.answer(case.first_request())
    case.kill()
    path.write_bytes(backup)
    for more in path.parent.glob(f"{path.name}-*"):
        more.unlink()
    with pytest.raises(LedgerError, match="set back to an earlier copy"):
        case.open()


def test_a_table_that_was_changed_in_between_ends_the_part(tmp_path):
    case = Case(tmp_path, job="masked-sum-count", ledger=False)
    case.begin()
    case.party.answer(case.first_request())
    case.kill()
    table = tmp_path / "north.csv"
    table.write_text("id,x0\n1,2\n")
    with told_to_owner(DataError):
        case.open()


@pytest.mark.parametrize(
    "change",
    [
        {"session": b"s" * 16},
        {"session": make_session_id("labels", run=RUN, seed=None)},
        {"kind": "alignment"},
        {"kind": "confession"},
        {"consents": ()},
    ],
)
def test_a_session_that_is_not_the_runs_is_refused(change, tmp_path):
    case = Case(tmp_path)
    case.party.consent(RUN)
    with pytest.raises(RemoteProtocolError):
        case.party.start(case.make_start(**change))
    assert not case.setup.own_side("north").ledger.exists()


def test_a_run_that_others_have_not_consented_to_is_refused(tmp_path):
    """Neither with consents to another run, nor with one party's twice."""
    case = Case(tmp_path)
    case.party.consent(RUN)
    other, true = case.make_start(run=b"r" * 16), case.make_start()
    for consents in (other.consents, (true.consents[0], true.consents[0], true.consents[2]), true.consents[:2]):
        with pytest.raises(RemoteProtocolError, match="consent of every party"):
            case.party.start(msgspec.structs.replace(true, consents=consents))


def test_records_that_have_ids_are_not_clustered_unaligned(tmp_path):
    case = Case(tmp_path, job="vertical-id", name="bank")
    case.party.consent(RUN)
    with pytest.raises(RemoteProtocolError, match="must be aligned before"):
        case.party.start(case.make_start(facts=Facts(records=93)))


def test_other_facts_than_ours_are_refused(tmp_path):
    case = Case(tmp_path, job="vertical-budget", name="bank")
    assert case.party.consent(RUN).facts == Facts(records=80)
    with pytest.raises(RemoteProtocolError, match="over others"):
        case.party.start(case.make_start(facts=Facts(records=79)))


def test_the_end_that_a_party_confirms_says_nothing_of_what_it_found(tmp_path):
    """Two parties with other tables and results would sign the same statement."""
    agreed = Case(tmp_path).organisations.agreed
    outcome = b"outcome"
    statement = greeting.done_statement(agreed, RUN, bytes(16), hashlib.sha256(outcome).digest())
    assert statement == ("cloister done", messages.MAJOR, agreed.job, RUN, bytes(16), hashlib.sha256(outcome).digest())
