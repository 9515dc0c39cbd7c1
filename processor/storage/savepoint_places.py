"""Savepoints where people name them: a directory of this machine, or a place in an object store or HDFS (R23).

All are laid out like what is kept for one job, at the very place.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from processor.errors import ExternalRefusal, JobError, SettingsError
from processor.ids import JobName
from processor.settings.location import Location, parse_location
from processor.settings.stores import StoreSettings
from processor.storage.directory import JobStore, look_into_directory, make_savepoint_directory
from processor.storage.disk import Disk
from processor.storage.objects import Objects


def place_named(written: str) -> str:
    """As one process tells another of it: an absolute path, or a URI. Raises SettingsError."""
    location = _location(written)
    directory = location.directory
    return str(location) if directory is None else os.path.abspath(directory)


def make_savepoint(
    where: str,
    job: JobName,
    *,
    token: Callable[[], str],
    disk: Disk | None = None,
    stores: StoreSettings | None = None,
    begun: bool = False,
) -> JobStore:
    """A new place at the very path or URI for a savepoint to be written into. With ``begun`` it may be one that was
    made for the same job before.

    Raises SettingsError when there is something in it already, or when it cannot be used; Unavailable.
    """
    location = _location(where)
    if location.directory is not None:
        return make_savepoint_directory(location.directory, job, token=token, disk=disk, begun=begun)
    from processor.storage.job_objects import make_savepoint_objects

    try:
        return make_savepoint_objects(_objects(location, stores), job, begun=begun)
    except ExternalRefusal as refused:
        raise SettingsError(refused.message, remedy=refused.remedy) from refused


def look_into(
    where: str,
    *,
    token: Callable[[], str],
    disk: Disk | None = None,
    stores: StoreSettings | None = None,
) -> JobStore | None:
    """What is kept of any job, or a savepoint, at the very path or URI; None when it is neither. Writes nothing.

    Raises SettingsError, Unavailable.
    """
    location = _location(where)
    if location.directory is not None:
        return look_into_directory(location.directory, token=token, disk=disk)
    from processor.storage.job_objects import look_into_objects

    try:
        return look_into_objects(_objects(location, stores))
    except ExternalRefusal as refused:
        raise SettingsError(refused.message, remedy=refused.remedy) from refused


def beside_each_other(where: str, *, stores: StoreSettings | None = None) -> list[tuple[str, str]]:
    """Everything right below a path or URI that may be a savepoint, by name: its name, and its own path or URI.

    Raises JobError when that is no directory; SettingsError, Unavailable.
    """
    location = _location(where)
    directory = location.directory
    if directory is None:
        try:
            names = _objects(location, stores).folders()
        except ExternalRefusal as refused:
            raise SettingsError(refused.message, remedy=refused.remedy) from refused
        return [(name, f"{location}/{name}") for name in names]
    try:
        with os.scandir(directory) as found:
            return sorted((each.name, each.path) for each in found if each.is_dir())
    except (NotADirectoryError, FileNotFoundError) as missing:
        raise JobError(
            f"'{directory}' is no directory.", remedy="Give the one that savepoints lie in."
        ) from missing


def _objects(location: Location, stores: StoreSettings | None) -> Objects:
    # Only who keeps something there pays for loading the library.
    from processor.storage.buckets import open_bucket

    return open_bucket(location, stores or StoreSettings())


def _location(written: str) -> Location:
    try:
        return parse_location(written)
    except ValueError as wrong:
        raise SettingsError(f"this names no place for a savepoint: {wrong}.") from wrong
