"""Runs of real processes in which anything fails: machines, disks, links, people. All is drawn by a number.

Each role has a folder of its own and calls through a relay of its own. Whoever is killed is started again, as systemd
would, until it has its result; whoever ends with an error is left alone. `check` then judges what is left on the disks
and what processes saw pass, and believes nothing that they say of themselves.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from cloister.agreement import give_consent, write_consent
from cloister.credentials import load_keys
from cloister.jobfile import load_job
from cloister.privacy.ledger import Ledger
from cloister.report import read_result
from tests.deployment import cases, doomed
from tests.deployment.cases import CASES, Case
from tests.deployment.processes import COORDINATOR, Processes
from tests.privacy.ledger.faults import KILLED
from tests.runtime.remote.wires import Relay

DISK = ("disk kill", "disk half", "disk cut", "disk full")
INSTANTS = ("before", "inside", "after", "paid", "found")
LINKS = ("cut", "refuse", "mute", "slow", "reorder")
SIGNALS = ("kill", "stop", "leave")
OTHERS = ("late", "never", "twin", "strangers")
KINDS = (*DISK, "record", "message", *LINKS, *SIGNALS, *OTHERS)
FATAL = {"disk full", "leave", "never"}
"""After these a run need not end with a result at all; after all others it must."""
DONE, STOPPED, REFUSED, MISSING, JOURNAL, CONFIG, LEDGER, CONSENT = 0, 130, 17, 8, 14, 2, 11, 16
DEADLINE_S, SHORT_S = 40, 6
_PATIENCE_S = 150.0
_HALF_HELLO = b"\x16\x03\x01\x02\x00\x01\x00"
_AGAIN_MOST = 8


@dataclass
class Plan:
    """What fails in one run.

    Attributes
    ----------
    dooms
        For each role, what kills its first process, its second, and so on.
    strikes
        Faults from outside: a kind, a role, and after how much of its link's bytes.
    late, lost
        Who starts late; who does not come back once it was killed.
    is_fatal
        Whether the run need not end with a result.
    deadline_s
        How long everybody waits.
    """

    dooms: dict = field(default_factory=lambda: defaultdict(list))
    strikes: list = field(default_factory=list)
    late: dict = field(default_factory=dict)
    lost: set = field(default_factory=set)
    is_fatal: bool = False
    deadline_s: int = DEADLINE_S


def draw_plan(rng: Random, case: Case, steps: dict) -> Plan:
    """Draw one to three faults."""
    plan, roles = Plan(), (COORDINATOR, *case.names)
    for _ in range(rng.randrange(1, 4)):
        kind, role = rng.choice(KINDS), rng.choice(roles)
        if kind in FATAL:  # then nobody need wait longer than it takes
            plan.is_fatal, plan.deadline_s = True, SHORT_S
        if kind in DISK:
            step, seed = rng.randrange(1, steps[role]["disk"] + 1), rng.choice((0, rng.randrange(1, 2**32)))
            plan.dooms[role].append((kind, step, seed))
        elif kind == "record":
            plan.dooms[role].append((rng.choice(INSTANTS), rng.randrange(1, 9)))
        elif kind in ("message", "never"):
            plan.dooms[role].append(("message", rng.randrange(1, steps[role]["message"] + 1)))
            if kind == "never":
                plan.lost.add(role)
        elif kind == "late":
            plan.late[role] = rng.uniform(0.3, 3.0)
        else:
            plan.strikes.append((kind, role, rng.random()))
    return plan


class FaultedRun:
    """One run of one case, with what fails in it."""

    def __init__(self, folder: Path, case: Case, plan: Plan, rng: Random, sizes: dict, *, counts=False, mutant=""):
        self.case, self.plan, self.rng, self.sizes, self.counts = case, plan, rng, sizes, counts
        self.mutant = mutant
        self.processes = Processes(folder, case.contract, case.names, plan.deadline_s, case.held)
        self.folder, self.names = folder, case.names
        self.relays: dict[str, Relay] = {}
        self.codes: dict[str, list[int]] = defaultdict(list)
        self.struck: list[str] = []
        self._doom: dict[str, tuple | None] = {}
        self.is_over = asyncio.Event()
        self._prepare()

    def _prepare(self):
        job = load_job(self.folder / "job.toml")
        for name in (COORDINATOR, *self.names):
            own = self.own(name)
            (own / "data").mkdir(parents=True)
            if name != COORDINATOR:
                side = f'data = "{name}.csv"\n' + (f'ledger = "{name}/ledger"\n' if self.case.is_private else "")
                (self.folder / f"{name}.toml").write_text(side)
                identity = load_keys(self.folder / f"{name}.key").identity
                write_consent(give_consent(identity, job, name), own / "consent")

    def own(self, name: str) -> Path:
        """What only this role writes to."""
        return self.folder / name

    async def run(self) -> None:
        """Run everybody to the end; everything is stopped on the way out."""
        tasks = []
        try:
            for name in self.names:
                self.relays[name] = await Relay().start()
            roles = [self._operate(name) for name in (COORDINATOR, *self.names)]
            tasks = [asyncio.ensure_future(one) for one in (*roles, *map(self._strike, self.plan.strikes))]
            operating = tasks[: len(roles)]
            done, running = await asyncio.wait(operating, timeout=_PATIENCE_S, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
            assert not running, self._describe_hang()
            self.is_over.set()
            for task in tasks[len(roles) :]:
                task.cancel()
            for ended in await asyncio.gather(*tasks[len(roles) :], return_exceptions=True):
                assert ended is None or isinstance(ended, asyncio.CancelledError), repr(ended)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for process in self.processes.started:
                process.kill()
                process.join()
            for relay in self.relays.values():
                await relay.stop()

    # --- the people who run it ----------------------------------------------------------------------------------------

    async def _operate(self, name: str) -> None:
        """Start a role, and again whenever it was killed and has no result."""
        await asyncio.sleep(self.plan.late.get(name, 0))
        for _ in range(_AGAIN_MOST):
            code = await self._run_process(name)
            self.codes[name].append(code)
            if code not in (-signal.SIGKILL, KILLED):
                return
            self._note_death(name, code)
            if name in self.plan.lost:
                return
            if self.is_complete(name):
                return
            await asyncio.sleep(self.rng.uniform(0, 1))
        raise AssertionError(f"{name} was killed {_AGAIN_MOST} times")

    def is_complete(self, name: str) -> bool:
        """Whether a role has what it came for, and no run to go on with."""
        result = self.own(name) / ("run.json" if name == COORDINATOR else "result/result.json")
        return result.exists() and not self.list_journals(name, "run")

    def list_journals(self, name: str, kind: str = "*") -> list[Path]:
        """Journals that are not wiped: a power cut may leave the zeros of one that is."""
        files = (self.own(name) / "data").rglob(f"journals/*/{kind}")
        return [one for one in files if any(one.read_bytes()[:40])]

    def _note_death(self, name: str, code: int) -> None:
        doom = self._doom[name]
        if doom is not None:
            self.struck.append("record" if doom[0] in INSTANTS else doom[0])
        if name in self.plan.lost:
            self.struck.append("never")
        left = self.own(name).with_name(name + doomed.COPY)
        if left.exists():
            shutil.rmtree(self.own(name))
            left.rename(self.own(name))

    async def _run_process(self, name: str) -> int:
        dooms = self.plan.dooms[name]
        doom = dooms.pop(0) if dooms else (("disk none", None, 0) if self.counts else None)
        self._doom[name] = doom
        process = self._start(name, doom)
        if name == COORDINATOR:
            await self._learn_port(name, process)
        while process.exitcode is None:
            await asyncio.sleep(0.02)
        if doom is not None and doom[0] == "disk full" and process.exitcode not in (0, -signal.SIGKILL):
            self.struck.append(doom[0])
        return process.exitcode

    def _start(self, name: str, doom):
        own, processes = self.own(name), self.processes
        if name == COORDINATOR:
            more = ("--record", f"{name}/run.json", "--start-deadline", str(self.plan.deadline_s))
            address = None
        else:
            more = ("--out", f"{name}/result", "--consent", f"{name}/consent")
            address = f"127.0.0.1:{self.relays[name].port}"
        told = self.folder / f"{name}.told"
        env = {"XDG_DATA_HOME": str(own / "data"), doomed.MUTANT: self.mutant}
        processes.start_process(name, doom=doom, env=env, address=address, more=more, yes=False, told=told)
        return processes.running[name]

    async def _learn_port(self, name: str, process) -> None:
        while process.exitcode is None and not self.processes.read_port(name):
            await asyncio.sleep(0.01)
        for relay in self.relays.values():
            relay.to = self.processes.port or None

    def _describe_hang(self) -> str:
        for process in self.processes.started:
            if process.exitcode is None:
                os.kill(process.pid, signal.SIGUSR1)
        alive = [name for name, process in self.processes.running.items() if process.exitcode is None]
        return f"these hang: {alive}"

    # --- what comes from outside --------------------------------------------------------------------------------------

    async def _strike(self, strike) -> None:
        """Wait until a share of its link's bytes has passed, then let something happen to a role or its link."""
        kind, role, share = strike
        link = self.rng.choice(self.names) if role == COORDINATOR else role
        rng = Random(f"{share}")
        if kind == "slow":
            self.relays[link].delay_s = rng.choice((0.01, 0.05, 0.2))
            self.struck.append(kind)
            return
        while self.relays[link].bytes_passed < share * self.sizes[link]:
            await asyncio.sleep(0.005)
        await getattr(self, f"_{kind}")(role, link, rng)

    def _signal(self, role: str, number: int, kind: str) -> None:
        process = self.processes.running.get(role)
        if process is not None and process.exitcode is None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)
                self.struck.append(kind)

    async def _kill(self, role, link, rng):
        self._signal(role, signal.SIGKILL, "kill")

    async def _leave(self, role, link, rng):
        self._signal(role, rng.choice((signal.SIGINT, signal.SIGTERM)), "leave")

    async def _stop(self, role, link, rng):
        self._signal(role, signal.SIGSTOP, "stop")
        process = self.processes.running.get(role)
        await asyncio.sleep(rng.choice((0.3, 1.0, 3.0, 18.0)))
        if process is not None and process.exitcode is None:
            os.kill(process.pid, signal.SIGCONT)

    async def _cut(self, role, link, rng):
        for _ in range(rng.randrange(1, 4)):
            self.relays[link].cut()
            self.struck.append("cut")
            await asyncio.sleep(rng.uniform(0, 0.7))

    async def _refuse(self, role, link, rng):
        self.relays[link].is_refusing = True
        self.relays[link].cut()
        self.struck.append("refuse")
        await asyncio.sleep(rng.uniform(0.2, 3))
        self.relays[link].is_refusing = False

    async def _mute(self, role, link, rng):
        self.relays[link].mute()
        self.struck.append("mute")

    async def _reorder(self, role, link, rng):
        """Cut everybody off, let them wait for each other, and let them in one by one."""
        relays = list(self.relays.values())
        for relay in relays:
            relay.hold()
            relay.cut()
        self.struck.append("reorder")
        rng.shuffle(relays)
        for relay in relays:
            await asyncio.sleep(rng.uniform(0.1, 0.8))
            relay.release()

    async def _twin(self, role, link, rng):
        """Somebody starts the same role a second time: it must find its journals in use, and harm nobody."""
        first, out = self.processes.running.get(role), self.processes.out.get(role)
        if first is None or first.exitcode is not None or not self.list_journals(role):
            return
        port = self.processes.port
        self.processes.port = 0 if role == COORDINATOR else port
        second = self._start(role, None)
        self.processes.port = port
        self.processes.running[role], self.processes.out[role] = first, out
        self.struck.append("twin")
        while second.exitcode is None:
            await asyncio.sleep(0.02)
        allowed = {JOURNAL} if first.exitcode is None else {DONE, JOURNAL, CONSENT, MISSING, CONFIG}
        assert second.exitcode in allowed, f"a second {role} ended with {second.exitcode}"

    async def _strangers(self, role, link, rng):
        """Garbage, half a greeting and many silent connections at the port, for as long as the run lasts."""
        self.struck.append("strangers")
        held = []
        try:
            while not self.is_over.is_set():
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.processes.port)
                    writer.write(rng.choice((b"", rng.randbytes(200), _HALF_HELLO, b"GET / HTTP/1.1\r\n\r\n")))
                    held.append(writer)
                if len(held) > 40:
                    held.pop(0).transport.abort()
                await asyncio.sleep(0.05)
        finally:
            for writer in held:
                writer.transport.abort()


# --- the judge --------------------------------------------------------------------------------------------------------


def check(run: FaultedRun, due) -> None:
    """Judge a run by its exit codes, its files and what passed; ``due`` is what a ledger holds once it is charged."""
    last = {name: codes[-1] for name, codes in run.codes.items()}
    fatal, said = run.plan.is_fatal, {name: run.processes.read_errors(name)[-1500:] for name in last}
    allowed = {DONE, -signal.SIGKILL, KILLED}
    if fatal:
        allowed |= {MISSING, REFUSED, STOPPED}
    if "twin" in run.struck:  # the second one may be at work when the first, which was killed, is started again
        allowed |= {JOURNAL, CONSENT}
    if "disk full" in run.struck:
        allowed |= {JOURNAL, LEDGER, CONFIG, CONSENT, 15}
    assert set(last.values()) <= allowed, (run.struck, last, said)
    results = {name: read_result(run.own(name) / "result") for name in run.names if (run.own(name) / "result").exists()}
    if not fatal:
        assert set(results) == set(run.names), (run.struck, last, said)
        assert (run.own(COORDINATOR) / "run.json").exists(), (run.struck, last)
    for result in results.values():
        assert np.array_equal(result.centres, next(iter(results.values())).centres), "all end with one result"
    if results and run.case.start is not None:
        found = next(iter(results.values())).centres
        off = min(np.abs(found - end).max() for end in cases.cluster_plainly(run.case))
        assert off <= run.case.tolerance, f"the sums are the sums; they are off by {off}"
    for name in run.names:
        check_ledger(run, name, due, name in results)
    for name, code in last.items():
        if code == DONE or (code == STOPPED and run.processes.has_begun(name)):
            assert not run.list_journals(name), (name, code, run.struck)


def check_ledger(run: FaultedRun, name: str, due, has_result: bool) -> None:
    """Charged once if anything was answered, not at all if nothing was asked; one answer to each request."""
    asked, answered = defaultdict(set), defaultdict(set)
    told = run.folder / f"{name}.told"
    for line in told.read_text().splitlines() if told.exists() else ():
        kind, number, what, digest = json.loads(line)
        (asked if what == "Request" else answered)[kind, number].add(digest)
    assert all(len(digests) == 1 for digests in (*asked.values(), *answered.values())), f"{name}: one answer to each"
    if not run.case.is_private:
        return
    path = run.own(name) / "ledger"
    charged = None
    if path.exists():
        with Ledger(path) as ledger:
            ledger.verify()
            charged = describe_ledger(ledger)
    assert charged in (None, (), due), f"{name}: charged {charged}, due {due}"
    if has_result or any(kind == "clustering" for kind, _ in answered):
        assert charged == due, f"{name} has released, and was charged {charged}"
    if not any(kind == "clustering" for kind, _ in asked):
        assert not charged, f"{name} was asked nothing, and was charged {charged}"


def describe_ledger(ledger: Ledger):
    """What was charged: how often, and what it costs."""
    return tuple((one.charges, one.rho, one.epsilon) for one in ledger.summarise() if one.charges)


class FaultedRuns:
    """Runs of all cases; what a run without faults takes is measured once for each.

    Attributes
    ----------
    mutant
        What is wrong with every process, to see that it is noticed (`tests.deployment.doomed.MUTANTS`).
    """

    mutant = ""

    def __enter__(self) -> FaultedRuns:
        self._measured: dict[str, tuple[dict, dict, object]] = {}
        return self

    def __exit__(self, *details: object) -> None:
        self._measured.clear()

    async def measure(self, name: str) -> tuple[dict, dict, object]:
        """Return steps of each role, the bytes of each link and what ledgers are charged, of a run without faults."""
        if name not in self._measured:
            with _make_folder() as folder:
                run = FaultedRun(Path(folder), CASES[name], Plan(), Random(0), {}, counts=True)
                await run.run()
                codes = {role: (codes, run.processes.read_errors(role)) for role, codes in run.codes.items()}
                assert all(one == [DONE] for one, _ in codes.values()), codes
                outs = run.processes.out.items()
                steps = {role: json.loads(out.with_suffix(".steps").read_text()) for role, out in outs}
                sizes = {role: relay.bytes_passed for role, relay in run.relays.items()}
                due = _read_due(run) if CASES[name].is_private else None
                check(run, due)
            self._measured[name] = steps, sizes, due
        return self._measured[name]

    async def run(self, seed: int) -> list[str]:
        """Run one case with faults, all drawn by the seed; returns the kinds that struck."""
        rng = Random(f"network {seed}")
        name = list(CASES)[seed % len(CASES)]
        steps, _, _ = await self.measure(name)
        return await self.run_plan(name, draw_plan(rng, CASES[name], steps), rng)

    async def run_step(self, number: int) -> list[str]:
        """Kill one role of one case at one of its steps: of all these, the one with this number."""
        name = EVERY_STEP_OF
        steps, _, _ = await self.measure(name)
        dooms = list_steps(steps)
        role, doom = dooms[number % len(dooms)]
        plan = Plan()
        plan.dooms[role].append(doom)
        return await self.run_plan(name, plan, Random(f"step {number}"))

    async def run_plan(self, name: str, plan: Plan, rng: Random) -> list[str]:
        """Run one case with these faults."""
        _, sizes, due = await self.measure(name)
        with _make_folder() as folder:
            run = FaultedRun(Path(folder), CASES[name], plan, rng, sizes, mutant=self.mutant)
            await run.run()
            check(run, due)
            return run.struck


EVERY_STEP_OF = "mask-noise-average, shared"


def list_steps(steps: dict) -> list[tuple[str, tuple]]:
    """Return every place at which a role can be killed: before and after each message, and at each step of its disk."""
    return [
        (role, (kind, number, 0) if kind != "message" else (kind, number))
        for role, counts in steps.items()
        for kind, count in (("message", counts["message"]), ("disk kill", counts["disk"]))
        for number in range(1, count + 1)
    ]


def _read_due(run: FaultedRun):
    name = run.names[0]
    card = read_result(run.own(name) / "result").card
    with Ledger(run.own(name) / "ledger") as ledger:
        due = describe_ledger(ledger)
    stated = card.budget_epsilon if run.case.held else card.epsilon
    assert 0 < due[0][2] <= stated * 1.001, (due, stated)
    return due


def _make_folder():
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)
