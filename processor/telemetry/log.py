"""Logging: configured once, by the command line or a runtime; everybody else is handed a ``Log``.

Messages are sentences; what varies goes into fields: ``log.info("checkpoint published", checkpoint=7)``.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TextIO

from processor.settings.model import LogFormat, LogLevel, LogSettings
from processor.telemetry.error_text import error_block, printable

ROOT_LOGGER: Final = "processor"
"""Ours only: a job's own logging is not reconfigured."""

_FIELDS: Final = "processor_fields"
_LEVELS: Final[Mapping[LogLevel, int]] = MappingProxyType(
    {
        LogLevel.DEBUG: logging.DEBUG,
        LogLevel.INFO: logging.INFO,
        LogLevel.WARNING: logging.WARNING,
        LogLevel.ERROR: logging.ERROR,
    }
)


class Log:
    """A logger with fields bound to it (job, attempt). Calls come from any thread."""

    def __init__(self, logger: logging.Logger, bound: Mapping[str, object] = MappingProxyType({})) -> None:
        self._logger = logger
        self._bound = bound

    def bind(self, **fields: object) -> Log:
        """A log whose every line carries these fields too."""
        return Log(self._logger, {**self._bound, **fields})

    def debug(self, message: str, /, **fields: object) -> None:
        self._write(logging.DEBUG, message, fields, None)

    def info(self, message: str, /, **fields: object) -> None:
        self._write(logging.INFO, message, fields, None)

    def warning(self, message: str, /, *, error: BaseException | None = None, **fields: object) -> None:
        """``error`` is told as a block below the line."""
        self._write(logging.WARNING, message, fields, error)

    def error(self, message: str, /, *, error: BaseException | None = None, **fields: object) -> None:
        """``error`` is told as a block below the line."""
        self._write(logging.ERROR, message, fields, error)

    def _write(
        self, level: int, message: str, fields: Mapping[str, object], error: BaseException | None
    ) -> None:
        if not self._logger.isEnabledFor(level):
            return
        told = None if error is None else (type(error), error, error.__traceback__)
        self._logger.log(level, "%s", message, exc_info=told, extra={_FIELDS: {**self._bound, **fields}})


def get_log(room: str) -> Log:
    """The log of a room such as ``runtime``."""
    return Log(logging.getLogger(f"{ROOT_LOGGER}.{room}"))


def configure_logging(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Send all below ``processor`` to ``stream`` (standard error); a second call replaces the first."""
    root = logging.getLogger(ROOT_LOGGER)
    for old in list(root.handlers):
        root.removeHandler(old)
    handler = logging.StreamHandler(stream or sys.stderr)
    debug = settings.level is LogLevel.DEBUG
    handler.setFormatter(
        JsonFormatter(debug=debug) if settings.format is LogFormat.JSON else TextFormatter(debug=debug)
    )
    root.addHandler(handler)
    root.setLevel(_LEVELS[settings.level])
    root.propagate = False


class TextFormatter(logging.Formatter):
    """``2030-01-02 03:04:05.678 INFO    [job counts attempt 3] checkpoint published checkpoint=7``"""

    def __init__(self, *, debug: bool) -> None:
        super().__init__()
        self._debug = debug

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields_of(record)
        place = " ".join(
            f"{name} {_shown(fields.pop(name))}" for name in ("job", "attempt") if name in fields
        )
        parts = [_time_text(record), f"{record.levelname:<7}"]
        if place:
            parts.append(f"[{place}]")
        parts.append(printable(record.getMessage()))
        parts.extend(f"{name}={_shown(value)}" for name, value in fields.items())
        line = " ".join(parts)
        error = _error_of(record)
        if error is None:
            return line
        block = error_block(error, debug=self._debug)
        return line + "\n" + "\n".join(f"    {part}" for part in block.splitlines())


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, message, the fields, and error where there is one."""

    def __init__(self, *, debug: bool) -> None:
        super().__init__()
        self._debug = debug

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time_text(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in _fields_of(record).items():
            # The four above are the line's own: a field of the same name stands beside, not instead.
            line[f"{name}_" if name in line or name == "error" else name] = value
        error = _error_of(record)
        if error is not None:
            line["error"] = error_block(error, debug=self._debug)
        return json.dumps(line, default=str, ensure_ascii=False)


def _fields_of(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, _FIELDS, None)
    return dict(fields) if isinstance(fields, Mapping) else {}


def _error_of(record: logging.LogRecord) -> BaseException | None:
    return record.exc_info[1] if record.exc_info else None


def _time_text(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}"


def _shown(value: object) -> str:
    text = str(value)
    if text and text.isprintable() and " " not in text and '"' not in text and "=" not in text:
        return printable(text)
    return json.dumps(printable(text), ensure_ascii=False)
