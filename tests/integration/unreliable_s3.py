"""An S3 server of this process whose answers do not always arrive, and the settings of a job that keeps its
checkpoints there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.s3_server import (
    SECRET_KEY,
    Environ,
    Fault,
    S3Server,
    lose_the_answer,
    lose_the_request,
    serve_twice,
)

ENTRY = ".entry"
_OF_ENTRIES = (lose_the_answer, serve_twice, None)
"""What happens to the first request to take a place of the log, in turn."""
_SHARE = 0.02
"""Of all other requests that something happens to."""


class UnreliableS3:
    """Every third place of a log is taken by a request whose answer is lost, every third by one that is served twice;
    now and then something happens to any other request."""

    def __init__(self, server: S3Server, chance: Random) -> None:
        self.server = server
        self.happened: Counter[str] = Counter()
        """To requests that take a place of a log, by the name of the fault."""
        self._chance = chance
        self._seen: set[str] = set()
        self._bucket = server.bucket()  # made while nothing happens to requests yet
        server.always(self._choose)

    def settings(self, folder: Path) -> Mapping[str, str]:
        """For a job whose checkpoints are in a bucket of their own, and nothing else of which leaves the folder."""
        secret = folder / "secret"
        secret.write_text(SECRET_KEY)
        section = {**self.server.section(), "secret_access_key": f"file:{secret}"}
        return {
            "checkpoint.directory": str(self.server.location(self._bucket)),
            "runtime.control_directory": str(folder / "control"),
            **{f"stores.s3.{name}": value for name, value in section.items()},
        }

    def told(self) -> str:
        """What happened to requests that take a place of a log."""
        return ", ".join(f"{fault} {count}" for fault, count in sorted(self.happened.items()))

    def _choose(self, environ: Environ) -> Fault | None:
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] == "PUT" and path.endswith(ENTRY) and path not in self._seen:
            fault = _OF_ENTRIES[len(self._seen) % len(_OF_ENTRIES)]
            self._seen.add(path)
            if fault is not None:
                self.happened[fault.__name__] += 1
            return fault
        if self._chance.random() < _SHARE:
            return self._chance.choice([lose_the_answer, lose_the_request, serve_twice])
        return None


@contextmanager
def unreliable_s3(chance: Random) -> Iterator[UnreliableS3]:
    """For the time of a with-block."""
    server = S3Server()
    try:
        yield UnreliableS3(server, chance)
    finally:
        server.close()
