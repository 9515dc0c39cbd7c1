"""A process that takes places of a log in an object store, and prints those it was given.

Arguments: the location, how many places, what to write. Its input: a line of settings, and a line to begin.
"""

from __future__ import annotations

import sys

from processor.settings.location import parse_location
from processor.settings.stores import StoreSettings
from processor.storage.buckets import open_bucket
from processor.storage.object_log import ObjectLog


def main(location: str, count: str, content: str) -> None:
    settings = StoreSettings.model_validate_json(sys.stdin.readline())
    log = ObjectLog(open_bucket(parse_location(location), settings))
    log.listed()
    print("ready", flush=True)
    sys.stdin.readline()
    print(*(place for place in range(1, int(count) + 1) if log.take(place, content.encode())))


if __name__ == "__main__":
    main(*sys.argv[1:])
