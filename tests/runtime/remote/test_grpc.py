"""gRPC over mutual TLS on loopback: who gets in, cut and stalled links, garbage on the port, proxies, long messages."""

import asyncio
import os
import resource
import socket
from contextlib import suppress

import pytest

from cloister.crypto import SystemEntropy
from cloister.errors import ConfigError
from cloister.runtime.remote import admission, grpc_client, messages, tls
from cloister.runtime.remote.channel import Channel, LostError
from cloister.runtime.remote.chunks import CHUNK_BYTES
from cloister.runtime.remote.greeting import OwnEnd
from cloister.runtime.remote.grpc_client import SharedConnection, connect
from cloister.runtime.remote.grpc_server import GrpcServer
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.participant import Participant, UnreachableError
from cloister.runtime.remote.tls import TlsFiles, read_certificate
from tests.deployment.organisations import TLS_NAME, make_certificate
from tests.runtime.remote import people
from tests.runtime.remote.people import NAMES, ToyScript, agree, make_hub, run_toy
from tests.runtime.remote.wires import ConnectProxy, Relay


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch):
    for name in ("https_proxy", "http_proxy", "grpc_proxy", "HTTPS_PROXY", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _true_certificates(monkeypatch):
    """The toy's ends with certificates that TLS shows."""
    for name in (*NAMES, "coordinator"):
        own = people.OWN[name]
        changed = OwnEnd(
            identity=own.identity, certificate=read_certificate(make_certificate(name)[1]), program="0.1.0"
        )
        monkeypatch.setitem(people.OWN, name, changed)


def run(main, limit_s=60):
    async def limited():
        async with asyncio.timeout(limit_s):
            return await main

    return asyncio.run(limited())


def make_tls(name, trusted=None):
    key, certificate = make_certificate(name)
    if trusted is None:
        trusted = NAMES if name == "coordinator" else ("coordinator",)
    return TlsFiles(
        key_pem=key,
        certificates_pem=certificate,
        trusted_pem=b"".join(make_certificate(other)[1] for other in trusted),
        server_name=TLS_NAME,
    )


async def open_port(hub):
    server = GrpcServer(make_tls("coordinator"), hub.serve, calls_most=6)
    return server, await server.start("127.0.0.1:0")


async def call_and_read(address, ends):
    stream = await connect(address, ends)
    try:
        return await stream.read()
    finally:
        await stream.close()


def join(name, address, script=None):
    participant = Participant(
        lambda: connect(address, make_tls(name)),
        people.OWN[name],
        agree(),
        party=name,
        script=script or ToyScript(name),
        entropy=SystemEntropy(),
        deadlines=Deadlines(step_s=20.0),
    )
    return asyncio.ensure_future(participant.take_part())


# --- who gets in ------------------------------------------------------------------------------------------------------


def test_a_run_over_tls():
    async def main():
        hub = make_hub()
        server, port = await open_port(hub)
        parties = [join(name, f"127.0.0.1:{port}") for name in NAMES]
        outcome = await run_toy(hub, rounds=5)
        await asyncio.gather(*parties)
        await server.stop()
        return outcome.result.total

    assert run(main()) == 5 * 6


def test_a_stream_that_has_ended_is_lost_whoever_writes_to_it():
    """gRPC has an error of its own for that, which is none of ours: a party took it for its own, and left the run."""

    async def main():
        async def serve(stream):
            await stream.read()

        server = GrpcServer(make_tls("coordinator"), serve, calls_most=3)
        port = await server.start("127.0.0.1:0")
        stream = await connect(f"127.0.0.1:{port}", make_tls("north"))
        await stream.write(b"\0")
        with pytest.raises(LostError):
            await stream.read()
        for _ in range(3):
            with pytest.raises(LostError):
                await stream.write(b"\0")
        await stream.close()
        await server.stop()

    run(main())


def test_who_has_no_certificate_that_is_trusted_does_not_get_as_far_as_a_greeting():
    async def main():
        hub, served = make_hub(), []

        async def serve(stream):
            served.append(stream)
            await hub.serve(stream)

        server = GrpcServer(make_tls("coordinator"), serve, calls_most=6)
        port = await server.start("127.0.0.1:0")
        for ends in (make_tls("stranger", ("coordinator",)), make_tls("north", ("harbour",))):
            with pytest.raises(LostError):
                await call_and_read(f"127.0.0.1:{port}", ends)
        assert served == []
        await server.stop()

    run(main())


def test_the_certificate_counts_that_tls_shows_and_not_what_a_party_writes():
    """Harbour holds a trusted certificate, and says that it is north, with north's greeting."""

    async def main():
        hub = make_hub()
        server, port = await open_port(hub)
        stream = await connect(f"127.0.0.1:{port}", make_tls("harbour"))
        channel = Channel(stream, is_coordinator=False)
        challenge = await channel.receive()
        from cloister.runtime.remote.greeting import make_hello

        peer = people.OWN["coordinator"].certificate
        hello = make_hello(people.OWN["north"], agree(), challenge, party="north", nonce=bytes(32), run=b"", peer=peer)
        await channel.send(hello)
        answer = await channel.receive()
        await channel.close()
        await server.stop()
        return answer

    assert run(main()) == messages.Refused(messages.Refusal.IDENTITY)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        (("north", ("harbour",)), "without the coordinator's certificate"),
        (("stranger", ("coordinator",)), "may not have our public key file"),
    ],
)
def test_a_party_that_gives_up_says_what_may_be_wrong_with_the_keys(ends, words):
    async def main():
        hub = make_hub()
        server, port = await open_port(hub)
        participant = Participant(
            lambda: connect(f"127.0.0.1:{port}", make_tls(*ends)),
            people.OWN["north"],
            agree(),
            party="north",
            script=ToyScript("north"),
            entropy=SystemEntropy(),
            deadlines=Deadlines(step_s=0.5),
        )
        with pytest.raises(UnreachableError, match=words):
            await participant.take_part()
        await server.stop()

    run(main())


def test_a_port_that_is_taken_is_an_error_that_says_so():
    async def main():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with pytest.raises(ConfigError, match="--listen HOST:PORT"):
                await GrpcServer(make_tls("coordinator"), make_hub().serve, calls_most=1).start(
                    f"127.0.0.1:{taken.getsockname()[1]}"
                )

    run(main())


# --- bad links --------------------------------------------------------------------------------------------------------


class SlowScript(ToyScript):
    """Takes its time for an answer, so that a test can do something meanwhile."""

    def answer(self, frame):
        import time

        time.sleep(0.01)
        return super().answer(frame)


def test_cut_links_are_taken_up_again_and_nothing_is_asked_twice(monkeypatch):
    monkeypatch.setattr(admission, "_CONNECTIONS_MOST", 1000)

    async def main():
        hub, script = make_hub(deadlines=Deadlines(start_s=20.0, step_s=20.0)), SlowScript("north")
        server, port = await open_port(hub)
        relay = await Relay(port).start()
        parties = [join("north", f"127.0.0.1:{relay.port}", script)]
        parties += [join(name, f"127.0.0.1:{port}") for name in NAMES[1:]]

        async def cut():
            while True:
                await asyncio.sleep(0.15)
                relay.cut()

        cutting = asyncio.ensure_future(cut())
        outcome = await run_toy(hub, rounds=60)
        cutting.cancel()
        await asyncio.gather(*parties)
        await relay.stop()
        await server.stop()
        return outcome.result, script.party.answered, relay.connections

    result, answered, connections = run(main())
    assert (result.complete, result.total) == (True, 60 * 6)
    assert answered == list(range(60))
    assert connections >= 3


@pytest.fixture
def quick_pings(monkeypatch):
    monkeypatch.setattr(tls, "_KEEPALIVE_MS", 500)
    monkeypatch.setattr(tls, "_KEEPALIVE_TIMEOUT_MS", 500)


@pytest.mark.usefixtures("quick_pings")
def test_a_stalled_link_is_noticed_and_taken_up_again():
    """Whatever stands between acknowledges at the level of TCP, and passes nothing on."""

    async def main():
        hub, script = make_hub(deadlines=Deadlines(start_s=30.0, step_s=30.0)), SlowScript("north")
        server, port = await open_port(hub)
        relay = await Relay(port).start()
        parties = [join("north", f"127.0.0.1:{relay.port}", script)]
        parties += [join(name, f"127.0.0.1:{port}") for name in NAMES[1:]]
        serving = asyncio.ensure_future(run_toy(hub, rounds=40))
        while len(script.party.answered) < 5:
            await asyncio.sleep(0.01)
        relay.stall()
        started_s = asyncio.get_running_loop().time()
        while hub.members["north"].channel is not None:
            await asyncio.sleep(0.02)
        noticed_s = asyncio.get_running_loop().time() - started_s
        relay.go_on()
        outcome = await serving
        await asyncio.gather(*parties)
        await relay.stop()
        await server.stop()
        return outcome.result, noticed_s

    result, noticed_s = run(main())
    assert (result.complete, result.total) == (True, 40 * 6)
    assert noticed_s < 10


def test_a_slow_link_is_waited_for():
    async def main():
        hub = make_hub()
        server, port = await open_port(hub)
        relay = await Relay(port).start()
        relay.delay_s = 0.03
        parties = [join("north", f"127.0.0.1:{relay.port}")] + [join(name, f"127.0.0.1:{port}") for name in NAMES[1:]]
        outcome = await run_toy(hub, rounds=3)
        await asyncio.gather(*parties)
        await relay.stop()
        await server.stop()
        return outcome.result.complete

    assert run(main())


# --- garbage ----------------------------------------------------------------------------------------------------------


def test_garbage_on_the_port_does_not_stop_a_run():
    """Connections that say nothing, nonsense, plain HTTP, or half a handshake, by the hundred."""

    async def spray(port, sent):
        held = []
        try:
            while True:
                for start in (b"", os.urandom(200), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"):
                    with suppress(OSError):
                        held.append(await asyncio.open_connection("127.0.0.1", port))
                        held[-1][1].write(start)
                        sent.append(1)
                if len(held) > 120:
                    for _, writer in held[:60]:
                        writer.transport.abort()
                    del held[:60]
                await asyncio.sleep(0)
        finally:
            for _, writer in held:
                writer.transport.abort()
            await asyncio.sleep(0.05)

    async def main():
        hub, sent = make_hub(), []
        server, port = await open_port(hub)
        spraying = asyncio.ensure_future(spray(port, sent))
        await asyncio.sleep(0.2)
        parties = [join(name, f"127.0.0.1:{port}") for name in NAMES]
        outcome = await run_toy(hub, rounds=30)
        await asyncio.gather(*parties)
        spraying.cancel()
        await asyncio.gather(spraying, return_exceptions=True)
        await server.stop()
        return outcome.result, len(sent)

    result, sent = run(main())
    assert (result.complete, result.total) == (True, 30 * 6)
    assert sent > 100


# --- proxies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["https_proxy", "grpc_proxy"])
@pytest.mark.parametrize("password", ["", "s3cret"])
def test_a_party_calls_through_the_proxy_of_its_environment(variable, password, monkeypatch):
    async def main():
        user = "branch" if password else ""
        hub, proxy = make_hub(), await ConnectProxy(user, password).start()
        server, port = await open_port(hub)
        login = f"{user}:{password}@" if user else ""
        monkeypatch.setenv(variable, f"http://{login}127.0.0.1:{proxy.port}")
        parties = [join(name, f"127.0.0.1:{port}") for name in NAMES]
        outcome = await run_toy(hub, rounds=2)
        await asyncio.gather(*parties)
        await proxy.stop()
        await server.stop()
        return outcome.result.complete, proxy.asked, port, proxy.refused

    complete, asked, port, refused = run(main())
    assert (complete, refused) == (True, 0)
    assert asked == [f"127.0.0.1:{port}"] * 3


def test_without_the_password_a_proxy_lets_nobody_through(monkeypatch):
    async def main():
        proxy = await ConnectProxy("branch", "s3cret").start()
        server, port = await open_port(make_hub())
        monkeypatch.setenv("https_proxy", f"http://branch:wrong@127.0.0.1:{proxy.port}")
        with pytest.raises(LostError):
            await connect(f"127.0.0.1:{port}", make_tls("north"))
        await proxy.stop()
        await server.stop()
        return proxy.asked

    assert run(main()) == []


# --- long messages ----------------------------------------------------------------------------------------------------


def test_a_long_upload_waits_for_who_reads_slowly_and_fills_no_memory():
    """96 MiB through a reader that takes its time: neither side holds more than some chunks of what is on its way."""
    chunks = 96

    async def main():
        gone = 0

        async def serve(stream):
            while True:
                await asyncio.sleep(0.01)
                arrived.append(len(await stream.read()))

        server = GrpcServer(make_tls("coordinator"), serve, calls_most=3)
        port = await server.start("127.0.0.1:0")
        stream = await connect(f"127.0.0.1:{port}", make_tls("north"))
        chunk, ahead = b"\1" + os.urandom(CHUNK_BYTES), []
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for gone in range(1, chunks + 1):
            await stream.write(chunk)
            ahead.append(gone - len(arrived))
        while len(arrived) < chunks:
            await asyncio.sleep(0.01)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        await stream.close()
        await server.stop()
        return max(ahead), grown

    arrived = []
    ahead, grown = run(main())
    assert arrived == [CHUNK_BYTES + 1] * chunks
    assert ahead < 64
    assert grown < 64 * CHUNK_BYTES


def test_a_chunk_that_is_too_long_ends_the_connection_and_nothing_else(monkeypatch):
    async def main():
        hub = make_hub()
        server, port = await open_port(hub)
        with monkeypatch.context() as patch:  # a client that does not keep to the limit
            patch.setattr(grpc_client, "common_options", lambda: [("grpc.max_send_message_length", -1)])
            stream = await connect(f"127.0.0.1:{port}", make_tls("north"))
        await stream.write(bytes(4 * CHUNK_BYTES))
        await stream.read()  # the challenge
        with pytest.raises(LostError):
            await stream.read()
        await stream.close()
        parties = [join(name, f"127.0.0.1:{port}") for name in NAMES]
        outcome = await run_toy(hub, rounds=2)
        await asyncio.gather(*parties)
        await server.stop()
        return outcome.result.complete

    assert run(main())


# --- several streams on one connection --------------------------------------------------------------------------------


def test_streams_of_one_connection_end_apart_and_one_that_is_not_read_does_not_hold_up_the_others():
    """More than four, and each with its own flow control: what nobody reads waits, and fills no memory."""
    count, callers, ended = 20, set(), []

    async def serve(stream):
        number = (await stream.read())[0]
        callers.add(stream._context.peer())
        with suppress(LostError):
            while True:
                chunk = await stream.read()
                if number == 0:
                    for _ in range(1000):
                        await stream.write(bytes(CHUNK_BYTES))
                await stream.write(chunk)
        ended.append(number)

    async def main():
        server = GrpcServer(make_tls("coordinator"), serve, calls_most=count)
        port = await server.start("127.0.0.1:0")
        line = SharedConnection(f"127.0.0.1:{port}", make_tls("north"))
        streams = [await line.open() for _ in range(count)]
        for number, stream in enumerate(streams):
            await stream.write(bytes([number]))
        await streams[0].write(b"now send what I do not read")
        await streams[1].close()
        for _ in range(3):
            for number, stream in enumerate(streams[2:], start=2):
                await stream.write(bytes([number]) * 50_000)
                assert await stream.read() == bytes([number]) * 50_000
        assert ended == [1]
        await line.close()
        await server.stop()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(main())
    assert len(callers) == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_clients_that_share_a_certificate_need_few_files(monkeypatch):
    """A job of 10,000 hosted clients must start where a process may open 20,000 files."""
    asked = []
    monkeypatch.setattr("cloister.runtime.remote.grpc_server.raise_file_limit", asked.append)

    async def serve(stream):
        """Nobody calls."""

    async def main():
        GrpcServer(make_tls("coordinator"), serve, calls_most=20_000)
        GrpcServer(make_tls("coordinator"), serve, calls_most=6)

    run(main())
    certificates = make_tls("coordinator").trusted_pem.count(b"BEGIN CERTIFICATE")
    assert asked == [64 * certificates + 64, 6 + 64]
