"""Objects in HDFS. A file there is seen while it is written; so it is written under a name of its own, and then
renamed, which the NameNode does whole or not at all, and not onto a name that is taken.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from processor.errors import ExternalRefusal, ProcessorError, Unavailable
from processor.storage.folder_tree import FOLDER_DEPTH_MAX
from processor.storage.webhdfs import Answer, WebHdfs

_TEMPORARY: Final = ".tmp"
_FILE_MODE: Final = "600"


class HadoopObjects:
    """Objects below one folder."""

    def __init__(
        self,
        hdfs: WebHdfs,
        where: str,
        folder: str,
        token: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        """``where`` is the location for people, ``folder`` the same within HDFS, absolute, "" for its root.
        ``token`` gives names nobody else has."""
        self._hdfs = hdfs
        self._folder = folder
        self._token = token
        self._swept = False
        self.where = where

    def below(self, folder: str) -> HadoopObjects:
        return HadoopObjects(self._hdfs, f"{self.where}/{folder}", f"{self._folder}/{folder}", self._token)

    def path(self, name: str) -> str:
        return f"{self.where}/{name}" if name else self.where

    def create(self, name: str, content: bytes) -> bool:
        temporary = self._written(name, content)
        if not self._renamed(temporary, name):
            # Taken; or our own first try, whose answer was lost.
            self._forget(temporary)
            return False
        if not self._swept:
            self._swept = True
            self._sweep(name.rpartition("/")[0])
        return True

    def replace(self, name: str, content: bytes) -> None:
        temporary = self._written(name, content)
        with self._given_up_on_error(temporary):
            done = self._ask(
                "write",
                "PUT",
                "RENAME",
                temporary,
                missing=True,
                destination=self._at(name),
                renameoptions="OVERWRITE",
            )
        if done is None and self.whole(name, len(content)) != (content, len(content)):
            raise Unavailable(f"it is not known whether '{self.path(name)}' was written.")

    def upload(self, name: str, parts: Iterator[bytes]) -> None:
        temporary = self._written(name, parts)
        if self._renamed(temporary, name):
            return
        # Taken; or renamed by the first try, whose answer was lost. What is there the hash will tell.
        taken = self.size(temporary) is not None
        if taken or self.size(name) is None:
            self._forget(temporary)
            raise Unavailable(f"it is not known whether '{self.path(name)}' was written.")

    def whole(self, name: str, bytes_max: int) -> tuple[bytes, int] | None:
        answer = self._ask("read", "GET", "OPEN", name, missing=True, answer_bytes_max=max(bytes_max, 1))
        if answer is None:
            return None
        return (answer.body if answer.bytes <= bytes_max else b""), answer.bytes

    def part(self, name: str, start: int, end: int) -> bytes | None:
        length = end - start
        answer = self._ask(
            "read",
            "GET",
            "OPEN",
            name,
            missing=True,
            answer_bytes_max=length,
            offset=str(start),
            length=str(length),
        )
        return None if answer is None else answer.body

    def size(self, name: str) -> int | None:
        answer = self._ask("look at", "GET", "GETFILESTATUS", name, missing=True)
        return None if answer is None else int(self._said(answer, name, "FileStatus", "length"))

    def delete(self, name: str) -> None:
        """With the folders that are empty then."""
        self._ask("delete", "DELETE", "DELETE", name, recursive="false")
        folder = name.rpartition("/")[0]
        while folder:
            try:
                self._ask("delete", "DELETE", "DELETE", folder, recursive="false")
            except ExternalRefusal:  # not empty: the usual case
                return
            folder = folder.rpartition("/")[0]

    def names(self, folder: str) -> list[str]:
        found: list[str] = []
        pending = [folder.rstrip("/")]
        while pending:
            at = pending.pop()
            for name, is_folder in self._listing(at):
                inner = f"{at}/{name}" if at else name
                if not is_folder:
                    found.append(inner)
                elif inner.count("/") < FOLDER_DEPTH_MAX:
                    pending.append(inner)
        return sorted(found)

    def folders(self) -> list[str]:
        return sorted(name for name, is_folder in self._listing("") if is_folder)

    def _listing(self, folder: str) -> list[tuple[str, bool]]:
        """Names in one folder, and whether each is a folder itself."""
        answer = self._ask("list", "GET", "LISTSTATUS", folder, missing=True)
        if answer is None:
            return []
        statuses = self._said(answer, folder, "FileStatuses", "FileStatus")
        return [(str(each["pathSuffix"]), each["type"] == "DIRECTORY") for each in statuses]

    def _written(self, name: str, content: bytes | Iterator[bytes]) -> str:
        """The name of a new file beside ``name`` with this content. It is nobody else's, so a repeated request may
        overwrite it."""
        temporary = f"{name}.{self._token()}{_TEMPORARY}"
        with self._given_up_on_error(temporary):
            self._ask(
                "write",
                "PUT",
                "CREATE",
                temporary,
                body=content,
                overwrite="true",
                permission=_FILE_MODE,
            )
        return temporary

    def _renamed(self, temporary: str, name: str) -> bool:
        with self._given_up_on_error(temporary):
            answer = self._ask("create", "PUT", "RENAME", temporary, destination=self._at(name))
        assert answer is not None
        return self._said(answer, name, "boolean") is True

    @contextmanager
    def _given_up_on_error(self, temporary: str) -> Iterator[None]:
        """A request to rename that arrives after all finds nothing then, and does nothing."""
        try:
            yield
        except ProcessorError:
            self._forget(temporary)
            raise

    def _forget(self, temporary: str) -> None:
        with suppress(ProcessorError):  # garbage at worst, for the next sweep
            self._ask("delete", "DELETE", "DELETE", temporary, recursive="false")

    def _sweep(self, folder: str) -> None:
        """Remove what dead writers left of names that are taken: whoever still wanted to give one would be told so
        anyway. Once an instance."""
        names = {name for name, _ in self._listing(folder)}
        for name in sorted(names):
            if name.endswith(_TEMPORARY) and name.rsplit(".", 2)[0] in names:
                self._forget(f"{folder}/{name}" if folder else name)

    def _at(self, name: str) -> str:
        return f"{self._folder}/{name}" if name else self._folder or "/"

    def _ask(self, act: str, method: str, operation: str, name: str, **more: Any) -> Answer | None:
        return self._hdfs.ask(act, method, operation, self._at(name), **more)

    def _said(self, answer: Answer, name: str, *keys: str) -> Any:
        try:
            found = answer.json()
            for key in keys:
                found = found[key]
        except (ValueError, TypeError, KeyError) as error:
            raise ExternalRefusal(
                f"what answers for '{self.path(name)}' is no WebHDFS: it leaves out '{keys[-1]}'.",
                remedy="Check stores.hdfs.endpoints.",
            ) from error
        return found
