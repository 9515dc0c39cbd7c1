"""A proxy between clients and one real broker: passes everything on, and does to chosen requests what it is told.

The broker has a listener of its own for it, and tells clients that the proxy is where to go: nothing in what it
passes on has to be rewritten.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from connectors.kafka.dev_broker import BrokerProcess, free_ports, start_broker
from connectors.kafka.dev_server import HOST
from tests.contracts.kafka_wire import FRAME_BYTES_MAX, LENGTH, Api, Request, error_code, request_of
from tests.contracts.proxy_rules import Catch, Fate, Rule

STARTED_TIMEOUT_S: Final = 30.0
STOPPED_TIMEOUT_S: Final = 30.0
LOST: Final = (ConnectionError, asyncio.IncompleteReadError)


@dataclass(slots=True, kw_only=True)
class _Link:
    """One client's connection, and the broker's that belongs to it."""

    client_in: asyncio.StreamReader
    client_out: asyncio.StreamWriter
    broker_in: asyncio.StreamReader
    broker_out: asyncio.StreamWriter
    unanswered: deque[tuple[Request, Catch | None]] = field(default_factory=deque)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the broker owes no answer."""
    way_back_cut: bool = False


class KafkaProxy:
    """Runs in a thread of its own between ``start`` and ``stop``. Rules may be given at any time."""

    def __init__(self, port: int, broker_port: int) -> None:
        """Clients reach it at ``port``; the broker listens for it at ``broker_port``."""
        self._port, self._broker_port = port, broker_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="kafka-proxy", daemon=True)
        self._started = threading.Event()
        self._ended: asyncio.Event | None = None
        self._catches: list[Catch] = []
        self._passed: Counter[tuple[int, str | None]] = Counter()
        self._failures: list[BaseException] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self._port}"

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(STARTED_TIMEOUT_S), "the proxy did not start"

    def stop(self) -> None:
        """Closes every connection. Raises what the proxy met and could not handle."""
        ended = self._ended
        assert ended is not None, "never started"
        for catch in self._catches:
            catch.release()
        self._loop.call_soon_threadsafe(ended.set)
        self._thread.join(STOPPED_TIMEOUT_S)
        if self._failures:
            raise self._failures[0]

    def catch(self, rule: Rule) -> Catch:
        """From now on, look for this request."""
        catch = Catch(rule)
        self._catches.append(catch)
        return catch

    def passed(self, api: Api, transactional_id: str | None) -> int:
        """How many such requests of a producer have come in, so far."""
        return self._passed[api, transactional_id]

    # --- in the proxy's thread

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as failure:
            self._failures.append(failure)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        server = await asyncio.start_server(self._connected, HOST, self._port)
        self._started.set()
        await self._ended.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            failure = task.exception()
            if failure is not None:
                self._failures.append(failure)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._spawn(self._join(reader, writer))

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client. What it has sent is passed on to the last byte, even if it is gone by then."""
        try:
            broker_in, broker_out = await asyncio.open_connection(HOST, self._broker_port)
        except OSError:  # the broker is away
            writer.close()
            return
        link = _Link(client_in=reader, client_out=writer, broker_in=broker_in, broker_out=broker_out)
        link.idle.set()
        answers = self._spawn(self._answers(link))
        try:
            await self._requests(link)
            await link.idle.wait()  # closed earlier, the broker might leave the last ones undone
        finally:
            answers.cancel()
            writer.close()
            broker_out.close()

    async def _requests(self, link: _Link) -> None:
        while True:
            try:
                data = await _read_frame(link.client_in)
            except LOST:
                return
            request = request_of(data)
            self._passed[request.api, request.transactional_id] += 1
            catch = next((each for each in self._catches if each.takes(request)), None)
            if catch is not None and not await self._caught(catch, request, link):
                return
            link.unanswered.append((request, catch))
            link.idle.clear()
            try:
                _write_frame(link.broker_out, data)
                await link.broker_out.drain()
            except LOST:
                return

    async def _caught(self, catch: Catch, request: Request, link: _Link) -> bool:
        """Before it is passed on; whether it is."""
        match catch.rule.fate:
            case Fate.LATE:
                catch.tell_caught(request)
                await self._released(catch)
            case Fate.TWICE:
                catch.tell_caught(request)
                self._spawn(self._again(catch, request))
            case Fate.CUT_BEFORE:
                catch.tell_caught(request)
                link.client_out.close()
                return False
            case Fate.UNANSWERED | Fate.CUT_AFTER:
                pass  # told when the broker has answered
        return True

    async def _released(self, catch: Catch) -> None:
        await self._loop.run_in_executor(None, catch.released.wait, catch.rule.release_after_s)

    async def _again(self, catch: Catch, request: Request) -> None:
        """The second copy, on a connection of its own."""
        await self._released(catch)
        reader, writer = await asyncio.open_connection(HOST, self._broker_port)
        try:
            _write_frame(writer, request.data)
            catch.tell_delivered(error_code(request, await _read_frame(reader)))
        finally:
            writer.close()

    async def _answers(self, link: _Link) -> None:
        while True:
            try:
                data = await _read_frame(link.broker_in)
            except LOST:
                link.client_out.close()
                link.idle.set()
                return
            request, catch = link.unanswered.popleft()
            if not link.unanswered:
                link.idle.set()
            if catch is not None:
                self._answered(catch, request, data, link)
            if link.way_back_cut:
                continue
            with suppress(*LOST):  # the client may be gone
                _write_frame(link.client_out, data)
                await link.client_out.drain()

    def _answered(self, catch: Catch, request: Request, data: bytes, link: _Link) -> None:
        """The answer to a caught request."""
        match catch.rule.fate:
            case Fate.LATE:
                catch.tell_delivered(error_code(request, data))
            case Fate.UNANSWERED | Fate.CUT_AFTER:
                catch.tell_caught(request)
                catch.tell_delivered(error_code(request, data))
                if catch.rule.fate is Fate.CUT_AFTER:
                    link.client_out.close()
                link.way_back_cut = True
            case Fate.TWICE | Fate.CUT_BEFORE:
                pass


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if not 0 <= length <= FRAME_BYTES_MAX:
        raise ValueError(f"a frame of {length} bytes: this is not Kafka's protocol")
    return await reader.readexactly(length)


def _write_frame(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(LENGTH.pack(len(data)))
    writer.write(data)


@contextmanager
def proxied_broker(directory: Path) -> Iterator[tuple[BrokerProcess, KafkaProxy]]:
    """A broker with data in ``directory``, and a proxy in front of a second listener of it. Whoever asks the
    broker's own address is not disturbed."""
    plain, controller, behind, port = free_ports(4)
    broker = start_broker(
        directory,
        port=plain,
        properties={
            "listeners": f"CLIENT://{HOST}:{plain},CONTROLLER://{HOST}:{controller},PROXIED://{HOST}:{behind}",
            "advertised.listeners": f"CLIENT://{HOST}:{plain},PROXIED://{HOST}:{port}",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT",
        },
    )
    proxy = KafkaProxy(port, behind)
    try:
        proxy.start()
        yield broker, proxy
        proxy.stop()
    finally:
        broker.kill()
