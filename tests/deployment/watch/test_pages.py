"""The port for metrics and health: what it says, and that nobody can harm a run through it."""

import asyncio
import json
import re

import pytest

from cloister.deployment.watch import Board
from cloister.deployment.watch import http as http_module
from cloister.deployment.watch.http import Pages, read_place
from cloister.deployment.watch.metrics import CONTENT_TYPE, METRICS, write_health, write_metrics
from cloister.errors import ConfigError
from cloister.runtime import Progress
from cloister.runtime.remote import hub as hub_module
from cloister.runtime.remote.events import Connected, Disconnected, Left, Listening, Opened, Passed, Refused
from tests.runtime.remote.people import NAMES, make_hub, run_toy
from tests.runtime.remote.test_hub import join

SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)+)\})? ([\d.e+-]+)')


def make_board(names=NAMES, clock=lambda: 0.0):
    return Board(job="clinics", role="coordinator", version="0.1.0", peers=names, parties=names, clock=clock)


def read_metrics(board):
    """Parse them strictly: each line is a sample, or the help or type of the samples that follow."""
    samples, typed = {}, None
    for line in write_metrics(board).decode().splitlines():
        if line.startswith("# TYPE "):
            typed = line.split()[2]
        elif not line.startswith("# HELP "):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name == typed
            assert (name, labels) not in samples
            samples[name, labels] = float(value)
    return samples


def test_metrics_add_up_what_happened():
    board = make_board()
    for event in (
        Listening(7400),
        Connected("north", "0.1.0"),
        Passed("north", "Hello", 300, is_sent=False),
        Passed("north", "Welcome", 200, is_sent=True),
        Disconnected("north"),
        Connected("north", "0.1.0"),
        Refused("", "CERTIFICATE"),
        Refused("harbour", "JOB"),
        Refused("harbour", "JOB"),
        Refused("harbour", "REVOKED", by_peer=True),
        Opened("clustering"),
        Progress(step=0, steps=9, label="a", waiting_for=NAMES),
        Progress(step=0, steps=9, label="a", waiting_for=("valley",)),
        Progress(step=1, steps=9, label="b", waiting_for=("harbour", "valley")),
        Left("valley"),
    ):
        board.observe(event)
    samples = read_metrics(board)
    assert {name for name, _ in samples} == set(METRICS)
    assert samples["cloister_connected", 'peer="north"'] == 1
    assert samples["cloister_reconnects_total", 'peer="north"'] == 1
    assert samples["cloister_reconnects_total", 'peer="harbour"'] == 0
    assert samples["cloister_bytes_total", 'peer="north",direction="received"'] == 300
    assert samples["cloister_messages_total", 'peer="north",direction="sent"'] == 1
    assert samples["cloister_refusals_total", 'reason="JOB",by="us"'] == 2
    assert samples["cloister_refusals_total", 'reason="REVOKED",by="peer"'] == 1
    assert samples["cloister_steps_total", 'session="clustering"'] == 2
    assert samples["cloister_step", None] == 1
    assert [samples["cloister_waiting", f'party="{name}"'] for name in NAMES] == [0, 1, 1]
    assert samples["cloister_left", 'peer="valley"'] == 1
    assert json.loads(write_health(board))["waiting"] == ["harbour", "valley"]


def test_names_are_escaped():
    board = make_board(names=('a"b\\c\nd',))
    assert 'peer="a\\"b\\\\c\\nd"' in write_metrics(board).decode()
    read_metrics(board)


@pytest.mark.parametrize("text", ["", "x", "-1", "65536", ":80", "host:", "1.2", "²"])
def test_a_place_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match=r"\[HOST:\]PORT"):
        read_place(text)


def test_places():
    assert read_place("9464") == ("127.0.0.1", 9464)
    assert read_place("0.0.0.0:80") == ("0.0.0.0", 80)
    assert read_place("[::1]:80") == ("::1", 80)


# --- the port ---------------------------------------------------------------------------------------------------------


async def ask(port, request, *, wait=True):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read() if wait else b""
    except ConnectionError:
        return b""
    finally:
        if wait:
            writer.close()


def serve(main):
    """Run a test against pages of a board."""

    async def run():
        board = make_board()
        pages = Pages(
            {
                "/metrics": lambda: (CONTENT_TYPE, write_metrics(board)),
                "/health": lambda: ("application/json", write_health(board)),
            }
        )
        port = await pages.start("127.0.0.1", 0)
        try:
            async with asyncio.timeout(20):
                return await main(port)
        finally:
            await pages.stop()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /metrics HTTP/1.1", 200),
        (b"GET /health?full=1 HTTP/1.0", 200),
        (b"GET / HTTP/1.1", 404),
        (b"GET /../etc/passwd HTTP/1.1", 404),
        (b"POST /metrics HTTP/1.1", 405),
        (b"DELETE /health HTTP/1.1", 405),
        (b"HEAD /metrics HTTP/1.1", 405),
        (b"CONNECT hub:7400 HTTP/1.1", 405),
        (b"GET /metrics", 400),
        (b"PRI * HTTP/2.0", 400),
        (b"\x16\x03\x01\x02\x00", 400),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1", 400),
    ],
)
def test_it_answers_get_and_nothing_else(request_line, status):
    answer = serve(lambda port: ask(port, request_line + b"\r\nHost: x\r\n\r\n"))
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"Content-Length: %d\r\n" % len(content) in head
    assert b"Connection: close" in head


def test_who_says_nothing_is_hung_up_on(monkeypatch):
    monkeypatch.setattr(http_module, "_PATIENCE_S", 0.2)

    async def main(port):
        slow = [asyncio.ensure_future(ask(port, b"GET /met")) for _ in range(8)]
        await asyncio.sleep(0.05)
        assert await ask(port, b"GET /health HTTP/1.1\r\n\r\n") == b""  # eight at once, and no more
        assert await asyncio.gather(*slow) == [b""] * 8
        return await ask(port, b"GET /health HTTP/1.1\r\n\r\n")

    assert b'"alive":true' in serve(main)


def test_a_flood_does_not_stop_a_run(monkeypatch):
    """Hundreds knock all the while; the run goes on, and afterwards the port answers again."""
    monkeypatch.setattr(hub_module, "_FAREWELL_S", 0.2)

    async def main(port):
        is_over, knocked = False, [0, 0]

        async def flood():
            while not is_over:
                knocked[0] += 1
                knocked[1] += b"200 OK" in await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")

        floods = [asyncio.ensure_future(flood()) for _ in range(20)]
        hub = make_hub()
        parties = [join(hub, name) for name in NAMES]
        outcome = await run_toy(hub, rounds=30)
        await asyncio.gather(*parties)
        is_over = True
        await asyncio.gather(*floods)
        await asyncio.sleep(1.1)
        assert b"200 OK" in await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")
        return outcome.result.total, knocked

    total, (knocked, answered) = serve(main)
    assert total == 30 * (1 + 2 + 3)
    assert knocked >= 20
    assert answered < knocked


def test_it_answers_so_often_and_no_more(monkeypatch):
    monkeypatch.setattr(http_module, "_ANSWERS_IN_S", 1000.0)

    async def main(port):
        return [bool(await ask(port, b"GET /health HTTP/1.1\r\n\r\n")) for _ in range(23)]

    assert serve(main) == [True] * 20 + [False] * 3


def test_a_port_that_is_taken_is_said_so():
    async def main(port):
        with pytest.raises(ConfigError, match="Choose another with --metrics"):
            await Pages({}).start("127.0.0.1", port)

    serve(main)
