"""What is kept for one job, wherever it lies: files and decision log, each in a directory or an object store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from processor.errors import ExternalRefusal, SettingsError
from processor.fault_points import FaultHook, no_faults
from processor.ids import JobName
from processor.settings.location import Location
from processor.storage.directory import JobStore, open_job_directory
from processor.storage.places import Places


def open_job_store(
    places: Places,
    job: JobName,
    *,
    token: Callable[[], str],
    faults: FaultHook = no_faults,
    make: bool = True,
) -> JobStore:
    """Files and log of ``job``, made when they are missing.

    With ``make=False`` nothing is written: for commands that only look. Raises SettingsError when a location cannot
    be used, belongs to another job, or, with ``make=False``, has nothing of this one; Unavailable.
    """
    files = _open(places.files, places, job, token, faults, make)
    if places.log == places.files:
        return replace(files, stores=places.stores)
    log = _open(places.log, places, job, token, faults, make)
    return replace(files, log=log.log, stores=places.stores)


def _open(
    location: Location,
    places: Places,
    job: JobName,
    token: Callable[[], str],
    faults: FaultHook,
    make: bool,
) -> JobStore:
    root = location.directory
    if root is not None:
        return open_job_directory(root, job, token=token, faults=faults, make=make)
    # Only who keeps checkpoints there pays for loading the library.
    from processor.storage.buckets import open_bucket
    from processor.storage.job_objects import open_job_objects

    bucket = open_bucket(location, places.stores)
    try:
        return open_job_objects(bucket, job, faults=faults, make=make)
    except ExternalRefusal as refused:
        raise SettingsError(refused.message, remedy=refused.remedy) from refused
