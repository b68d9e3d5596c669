"""deploy/ and docs/deploy.md stay true: every command is run or accepted by the command line, every name exists.

No container engine and no systemd runs here; what is checked is what can be without them.
"""

import ast
import fnmatch
import json
import re
import shlex
import shutil
import socket
import subprocess
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from cloister.cli import app
from cloister.cli.failures import EXIT_CODES_HELP
from cloister.credentials import default_folder
from cloister.deployment.watch.metrics import METRICS
from cloister.report.folder import read_result
from cloister.runtime.remote import events
from cloister.runtime.remote.messages import Refusal
from tests.deployment import doomed
from tests.deployment.processes import CONTEXT

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "deploy.md").read_text()
UNITS = sorted(DEPLOY.glob("*.service"))


def accept(words):
    """Parse a command line as ``cloister`` does, and run nothing; returns its options."""
    command, rest = typer.main.get_command(app), list(words)
    while hasattr(command, "commands"):
        name = rest.pop(0)
        assert name in command.commands, name
        command = command.commands[name]
    return command.make_context(name, rest).params


@pytest.mark.parametrize("line", ["serve job.toml --keys hub --nonsense 1", "party job.toml", "sabotage"])
def test_the_parser_refuses_what_cloister_refuses(line):
    with pytest.raises(Exception, match=r"nonsense|keys|sabotage"):
        accept(line.split())


# --- the container file -----------------------------------------------------------------------------------------------


def read_containerfile():
    lines = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    return [tuple(line.split(None, 1)) for line in lines if line.strip() and not line.startswith("#")]


def is_sent(path):
    """Whether .dockerignore lets a builder see a path: the last line that matches decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().split():
        if fnmatch.fnmatch(path, line.removeprefix("!")) or path.startswith(line.removeprefix("!") + "/"):
            sent = line.startswith("!")
    return sent


def test_what_the_container_file_copies_is_there():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    copied = []
    for instruction, rest in read_containerfile():
        words = rest.split()
        if instruction == "COPY" and not words[0].startswith("--from"):
            copied += words[:-1]
    for source in copied:
        files = [name for name in tracked if name == source or name.startswith(f"{source}/")] if tracked else [source]
        assert (ROOT / source).exists()
        assert files, source
        assert all(is_sent(name) for name in files), source
    assert not is_sent("tests/test_deploy.py")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {project["readme"], *project["license-files"], "pyproject.toml", "src"} <= set(copied)
    assert "net" in project["optional-dependencies"]


def test_the_container_file_is_one():
    instructions = read_containerfile()
    names = [name for name, _ in instructions]
    known = {"FROM", "COPY", "RUN", "ENV", "USER", "VOLUME", "WORKDIR", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    assert names[0] == "FROM"
    assert set(names) <= known
    assert json.loads(dict(instructions)["ENTRYPOINT"]) == ["cloister"]
    assert accept_or_help(json.loads(dict(instructions)["CMD"]))
    assert names.index("USER") < names.index("ENTRYPOINT")  # not as root
    images = {rest.split()[0] for name, rest in instructions if name == "FROM"}
    assert len(images) == 1  # what was built for one Python runs on the same
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = re.fullmatch(r"python:(\d+\.\d+)-slim", images.pop())[1]
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def accept_or_help(words):
    return words == ["--help"] or accept(words)


# --- compose ----------------------------------------------------------------------------------------------------------


def read_yaml(text):
    """Read the part of YAML that compose.yaml keeps to: mappings by indentation, lists and strings as in JSON."""
    anchors, lines = {}, []
    for line in text.splitlines():
        bare = line.split(" #")[0].rstrip() if '"' not in line else line.rstrip()
        if bare.strip() and not bare.lstrip().startswith("#"):
            assert "\t" not in bare
            lines.append((len(bare) - len(bare.lstrip()), bare.strip()))

    def read_value(word):
        return json.loads(word) if word[:1] in '["{' else int(word) if word.isdigit() else word

    def read_block(depth):
        values = {}
        while lines and lines[0][0] == depth:
            key, _, rest = lines.pop(0)[1].partition(":")
            anchor, rest = None, rest.strip()
            if rest.startswith("&"):
                anchor, _, rest = rest[1:].partition(" ")
            if key == "<<":
                values |= anchors[rest.removeprefix("*")]
            elif rest:
                assert key not in values or rest
                values[key] = read_value(rest)
            else:
                assert lines, key
                assert lines[0][0] > depth, key
                values[key] = read_block(lines[0][0])
            if anchor is not None:
                anchors[anchor] = values[key]
        assert not lines or lines[0][0] < depth, lines[0]
        return values

    return read_block(0)


COMPOSE = read_yaml((DEPLOY / "compose.yaml").read_text())


def test_the_example_has_a_coordinator_and_three_parties():
    assert list(COMPOSE["services"]) == ["coordinator", "north", "harbour", "valley"]
    assert COMPOSE["services"]["coordinator"]["command"][0] == "serve"
    assert (DEPLOY / COMPOSE["x-service"]["build"]["context"]).resolve() == ROOT
    assert (ROOT / COMPOSE["x-service"]["build"]["dockerfile"]).exists()


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_service_of_the_example(name):
    service = COMPOSE["services"][name]
    options = accept(service["command"])
    assert options["log"] == "-"
    assert not options.get("yes")
    assert service["volumes"] == [f"./{name}:/job", f"{name}-data:/data"]
    assert f"{name}-data" in COMPOSE["volumes"]
    assert service["read_only"] == "true"
    assert service["stop_signal"] == "SIGKILL"
    (code,) = [word for word in service["healthcheck"]["test"] if "urlopen" in word]
    ast.parse(code)
    assert f"127.0.0.1:{options['metrics']}/health" in code
    if name == "coordinator":
        port = options["listen"].rpartition(":")[2]
        assert service["ports"] == [f"{port}:{port}"]
    else:
        assert options["address"] == f"coordinator:{COMPOSE['services']['coordinator']['ports'][0].partition(':')[0]}"
        assert options["overwrite"]  # who is killed when its result is written goes on, too
        assert options["consent"] == Path(f"{name}.consent")
        assert "ports" not in service


# --- systemd ----------------------------------------------------------------------------------------------------------


def read_unit(path):
    lines = [line for line in path.read_text().splitlines() if line and line[0] not in "#["]
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_restarts_what_can_go_on_and_nothing_that_spends_again(path):
    unit = read_unit(path)
    words = shlex.split(unit["ExecStart"])
    assert words[0] == "/opt/cloister/bin/cloister"
    options = accept(words[1:])
    assert options["log"] == "-"
    assert not options.get("yes")
    assert options.get("overwrite", True)
    assert unit["KillSignal"] == "SIGKILL"
    assert unit["Restart"] == "on-failure"
    known = {int(code) for code in re.findall(r"^ +(\d+) ", EXIT_CODES_HELP, re.MULTILINE)}
    left = {int(code) for code in unit["RestartPreventExitStatus"].split()}
    assert left <= known
    assert {2, 14, 15, 16, 17, 130} <= left
    assert not left & {8, 70}
    state = f"/var/lib/{unit['StateDirectory'].split()[-1]}"
    written = [options[key] for key in ("record", "out", "consent") if options.get(key)]
    assert all(str(place).startswith(f"{state}/") for place in written)  # all else is read-only
    assert unit["Environment"].startswith("XDG_DATA_HOME=/var/lib ")
    if "serve" in path.stem:
        assert unit["ConditionPathExists"] == f"!{options['record']}"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_reads_a_unit(path, tmp_path):
    copy = tmp_path / path.name
    copy.write_text(path.read_text().replace("/opt/cloister/bin/cloister", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# --- the guide --------------------------------------------------------------------------------------------------------


def read_steps():
    """Yield the commands of the guide, and who runs each, in order."""
    for block in re.findall(r"```\n(.*?)```", GUIDE, re.DOTALL):
        for who, line in re.findall(r"^(\w+)\$ (.*)$", block, re.MULTILINE):
            yield who, shlex.split(line)


STEPS = list(read_steps())


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`(cloister [a-z][^`]*)`", GUIDE))))
def test_a_command_in_the_text_exists(command):
    assert CliRunner().invoke(app, [*re.findall(r"^[a-z ]+", command)[0].split()[1:][:1], "--help"]).exit_code == 0


class Walk:
    """The guide, followed by three newcomers on one machine; letters go round after each command."""

    def __init__(self, folder):
        self.folder, self.running = folder, {}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        rng = np.random.default_rng(5)
        for who in ("hub", "north", "south"):
            (folder / who).mkdir()
            if who != "hub":
                rows = rng.normal((50, 25), (10, 4), (300, 2))
                (folder / who / f"{who}.csv").write_text("age,bmi\n" + "".join(f"{a:.1f},{b:.1f}\n" for a, b in rows))
                (folder / who / "own.toml").write_text(f'data = "{who}.csv"\ndataset = "patients"\n')

    def environment(self, who):
        return {"XDG_DATA_HOME": str(self.folder / who / "data")}

    def translate(self, words):
        """The same command, with this machine and its free ports."""
        places = {"hub.example.org:7400": f"127.0.0.1:{self.port}", "0.0.0.0:7400": f"127.0.0.1:{self.port}"}
        words = [places.get(word, word) for word in words]
        return [re.sub(r"^946[45]$", "0", word) for word in words]

    def run(self, who, words):
        """Run a command to its end; `serve` and `party` go on meanwhile."""
        words = self.translate(words)[1:]
        if words[0] in ("serve", "party"):
            out = self.folder / f"{who}-{words[0]}"
            more = ["--quiet", "--deadline", "60"]
            process = CONTEXT.Process(
                target=doomed.run,
                args=(str(self.folder / who), [*words, *more], self.environment(who), None, str(out)),
            )
            process.start()
            self.running[who] = process
            if words[0] == "serve":
                self.wait_for(lambda: "Listening" in out.with_suffix(".out").read_text(), out.with_suffix(".out"))
            return None
        return CliRunner().invoke(app, words, input="y\n" if words[0] == "join" else None, env=self.environment(who))

    def wait_for(self, holds, path):
        until_s = time.monotonic() + 60
        while not (path.exists() and holds()):
            assert time.monotonic() < until_s
            time.sleep(0.05)

    def send_letters(self):
        """Public files and the job go to everyone."""
        for path in [*self.folder.rglob("*.pub"), *self.folder.glob("north/job.toml")]:
            for who in ("hub", "north", "south"):
                for place in (self.folder / who, self.folder / who / "data" / "cloister" / "keys"):
                    if place.exists() and not (place / path.name).exists():
                        shutil.copy(path, place)

    def fill_in(self):
        path = self.folder / "north" / "job.toml"
        text = re.sub(r"= \{\} .*", "= { low = 0, high = 120 }", path.read_text())
        path.write_text(text.replace('name = "north"', 'name = "clinics"', 1))

    def end(self):
        for process in self.running.values():
            process.join(90)
        codes = {who: process.exitcode for who, process in self.running.items()}
        self.running = {}
        return codes


def test_the_guide_works_as_it_is_written(tmp_path, monkeypatch):
    walk, done = Walk(tmp_path), []
    try:
        for who, words in STEPS:
            if walk.running and words[1] not in ("serve", "party"):
                assert walk.end() == {"hub": 0, "north": 0, "south": 0}
            monkeypatch.chdir(tmp_path / who)
            result = walk.run(who, words)
            done.append(words[1])
            if result is not None:
                expected = 8 if words[1] == "check" else 0  # as the guide says: the hub does not run yet
                assert result.exit_code == expected, (who, words, result.output)
                assert words[1] != "check" or result.output.count("FAILED") == 1
                assert words[1] != "verify" or "refuted" not in result.output
            if words[1] == "init":
                walk.fill_in()
            walk.send_letters()
    finally:
        for process in walk.running.values():
            process.kill()
    assert done.count("party") == 2
    assert {"keys", "init", "check", "join", "serve", "verify", "ledger"} <= set(done)
    for who in ("north", "south"):
        result = read_result(tmp_path / who / "result-clinics")
        assert result.ran == "between organisations"
        assert [one.name for one in result.between.parties] == ["north", "south"]
        assert result.between.transport == "gRPC over TLS"
        assert {one.cloister_version for one in result.between.parties} == {result.cloister_version}
        assert [one.name for one in result.parties] == [who]  # its own traffic, and nobody else's
    logs = (tmp_path / "hub" / "hub.log").read_text() + (tmp_path / "north" / "north.log").read_text()
    cells = set(re.findall(r"\d+\.\d", (tmp_path / "north" / "north.csv").read_text()))
    assert not cells & set(re.findall(r"\d+\.\d", logs.replace('"0.1.0"', "")))
    lines = [json.loads(line) for line in (tmp_path / "hub" / "hub.log").read_text().splitlines()]
    assert {line["event"] for line in lines} <= set(list_events())
    assert lines[-1]["outcome"] == "done"


def test_the_guide_names_every_metric():
    rows = " ".join(re.findall(r"^\| (`cloister_.*?) \|", GUIDE, re.MULTILINE))
    assert set(re.findall(r"cloister_\w+", rows)) == set(METRICS)


def list_events():
    rows = " ".join(re.findall(r"^\| ((?:`[a-z ]+`(?:, )?)+) \|", GUIDE.partition("| event |")[2], re.MULTILINE))
    return re.findall(r"`([a-z ]+)`", rows)


def test_the_guide_names_every_event_of_the_log():
    folder = ROOT / "src/cloister/deployment/watch"
    source = (folder / "watch.py").read_text() + (folder / "log.py").read_text()
    written = set(re.findall(r'\.write\(\s*"([a-z ]+)"', source))
    written |= set(re.findall(r': "([a-z]+)"[,}]', source.partition("_TOLD")[2].partition("class")[0]))
    assert set(list_events()) == written


def test_the_guide_names_every_reason():
    reasons = {*(one.name for one in Refusal), *(getattr(events, name) for name in dir(events) if name.isupper())}
    text = GUIDE[GUIDE.index("Reasons: ") :].partition("\n\n")[0]
    assert set(re.findall(r"`([A-Z_]+)`", text)) == reasons - {events.COORDINATOR}


def test_the_guide_says_what_to_do_for_every_exit_code():
    rows = re.findall(r"^\| ([\d, ]+) \|", GUIDE[GUIDE.index("## Exit codes") :], re.MULTILINE)
    named = {int(code) for row in rows for code in row.split(",")}
    assert named == {int(code) for code in re.findall(r"^ +(\d+) ", EXIT_CODES_HELP, re.MULTILINE)}


def test_keys_are_where_the_guide_says(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "")
    assert default_folder() == Path.home() / ".local/share/cloister/keys"
