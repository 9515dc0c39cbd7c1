"""Every kind of store behind one handle, with a way to what lies in it: for the contract suites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest
from obstore.store import LocalStore, MemoryStore, ObjectStore

from processor.contracts.file_store import FileStore, LogStore
from processor.storage.buckets import open_bucket
from processor.storage.directory_files import DirectoryFiles
from processor.storage.directory_log import DirectoryLog
from processor.storage.layout import FILES_FOLDER
from processor.storage.object_files import ObjectFiles
from processor.storage.object_log import ObjectLog
from processor.storage.object_store import BucketObjects
from processor.storage.objects import Objects
from tests.hdfs_stand_in import HdfsStandIn
from tests.s3_server import S3Server
from tests.store_servers import AzureServer, HdfsServer
from tests.unit.storage.disks import Tokens

KINDS = [
    "directory",
    "s3",
    "objects-in-memory",
    "objects-on-disk",
    "azure",
    "hdfs",
    "hdfs-with-kerberos",
    "hdfs-stand-in",
]


@dataclass(kw_only=True)
class StoreRig:
    """``files`` and ``log`` make another handle each time. ``put`` and ``remove`` go behind their backs, by names
    relative to the job."""

    files: Callable[[], FileStore]
    log: Callable[[], LogStore]
    put: Callable[[str, bytes], None]
    remove: Callable[[str], None]

    def damage(self, file: str, content: bytes) -> None:
        self.put(f"{FILES_FOLDER}/{file}", content)


def open_rig(kind: str, request: pytest.FixtureRequest, folder: Path) -> StoreRig:
    match kind:
        case "directory":
            return _directory(folder)
        case "s3":
            return _s3(request.getfixturevalue("s3"))
        case "azure":
            return _azure(request.getfixturevalue("azure"))
        case "hdfs":
            return _hdfs(request.getfixturevalue("hdfs"))
        case "hdfs-with-kerberos":
            return _hdfs(request.getfixturevalue("kerberised_hdfs"))
        case "hdfs-stand-in":
            server = HdfsStandIn()
            request.addfinalizer(server.close)
            return _hdfs(server)
        case "objects-in-memory":
            return _objects(MemoryStore())
        case _:
            return _objects(LocalStore(folder))


def _directory(root: Path) -> StoreRig:
    (root / FILES_FOLDER).mkdir()
    handles = iter(range(1, 1_000))

    def put(name: str, content: bytes) -> None:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(content)

    return StoreRig(
        files=lambda: DirectoryFiles(root / FILES_FOLDER),
        log=lambda: DirectoryLog(root, token=Tokens(next(handles) * 1_000)),
        put=put,
        remove=lambda name: (root / name).unlink(),
    )


def _s3(server: S3Server) -> StoreRig:
    location = server.location(server.bucket())
    path = f"{location.bucket}/{location.path}/job"

    def root() -> Objects:
        return open_bucket(location, server.settings()).below("job")

    return StoreRig(
        files=lambda: ObjectFiles(root().below(FILES_FOLDER)),
        log=lambda: ObjectLog(root()),
        put=lambda name, content: _ignore(server.request("PUT", f"{path}/{name}", content)),
        remove=lambda name: _ignore(server.request("DELETE", f"{path}/{name}")),
    )


def _azure(server: AzureServer) -> StoreRig:
    location = server.location()
    path = f"{location.bucket}/{location.path}/job"
    block = {"x-ms-blob-type": "BlockBlob"}

    def root() -> Objects:
        return open_bucket(location, server.settings()).below("job")

    return StoreRig(
        files=lambda: ObjectFiles(root().below(FILES_FOLDER)),
        log=lambda: ObjectLog(root()),
        put=lambda name, content: _ignore(server.request("PUT", f"{path}/{name}", content, block)),
        remove=lambda name: _ignore(server.request("DELETE", f"{path}/{name}")),
    )


def _hdfs(server: HdfsServer | HdfsStandIn) -> StoreRig:
    location = server.location()

    def root() -> Objects:
        return open_bucket(location, server.settings()).below("job")

    return StoreRig(
        files=lambda: ObjectFiles(root().below(FILES_FOLDER)),
        log=lambda: ObjectLog(root()),
        put=lambda name, content: root().replace(name, content),
        remove=lambda name: root().delete(name),
    )


def _objects(store: ObjectStore) -> StoreRig:
    root = BucketObjects(store, "memory").below("job")
    return StoreRig(
        files=lambda: ObjectFiles(root.below(FILES_FOLDER)),
        log=lambda: ObjectLog(root),
        put=lambda name, content: _ignore(obstore.put(store, f"job/{name}", content)),
        remove=lambda name: obstore.delete(store, f"job/{name}"),
    )


def _ignore(_answer: object) -> None:
    """What was asked for is the effect."""
