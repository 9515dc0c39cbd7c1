"""Plain values as JSON: bytes are in base64, and a dict whose keys are no names in JSON is a list of pairs."""

from __future__ import annotations

from typing import Any

import msgspec


def as_json(value: Any) -> Any:
    """The value with what JSON has no form for in another one."""
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: as_json(each) for key, each in value.items()}
        return [[as_json(key), as_json(each)] for key, each in value.items()]
    if isinstance(value, list):
        return list(map(as_json, value))
    return value


def json_text(value: Any) -> str:
    """In JSON."""
    return msgspec.json.encode(as_json(value), enc_hook=str).decode()
