"""tests/RULES.md: which tests show which rule of exactly-once, which part and which case. Written and read here.

    python -m tests.style.rules_table        writes the table anew from the names of the tests

A test names what it shows: `test_r09_...`, `test_r08_r11_...`, `test_r10_to_r18_...`; `test_a05_...` or `test_b2_...`
for a part; `test_case_16_...`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.style.sources import ROOT, python_files

TABLE = ROOT / "tests" / "RULES.md"

RULES: Mapping[str, str] = {
    "R1": "Seal first: an attempt's first act is to take the next place of the decision log",
    "R2": "Incarnation: markers of another one stop the job; before anything is taken over it only looks",
    "R3": "Origin, parent, rewind: two entries, a token against rewinding twice, no silent duplicates",
    "R4": "A first checkpoint of resolved positions; empty outboxes count as published",
    "R5": "The entry is the manifest: one object, complete in one step, taken by one writer",
    "R6": "Unknown outcome: neither made nor failed, until it was read back",
    "R7": "What is kept, and what is forgotten",
    "R8": "Hashes, and going back to the parent when nothing was published",
    "R9": "Undecided output goes along; its bound never waits for a barrier",
    "R10": "One identity a publisher, without attempt or incarnation",
    "R11": "Take over, compare, send",
    "R12": "A new producer for every transaction",
    "R13": "One after another: decided only when the one before is published",
    "R14": "Opening every identity; markers of idle ones are refreshed",
    "R15": "The marker on Kafka, and a read that is proved fresh",
    "R16": "Rows: numbered, checked, in chunks of any size",
    "R17": "Published means visible; losing the note costs one look",
    "R18": "Rescale, rename, removal: no old identity stays unopened",
    "R19": "Every delivery is checked",
    "R20": "Other systems: the same two calls, as a contract",
    "R21": "Replies name their request, attempt included",
    "R22": "Names are never reused; only what is condemned is deleted",
    "R23": "A savepoint is a checkpoint and a self-contained copy",
    "R24": "Stop with savepoint, with drain and without",
    "R25": "Every coordinator state has a deadline",
    "R26": "Late barriers are dropped",
    "R27": "Watermarks per key group; splits keep their generator's state; barriers overtake on keyed edges only",
    "R28": "Processing time never goes back",
    "R29": "Ray",
    "R30": "Bad rows are found before the decision, and never block the innocent",
    "R31": "Assumptions are checked at start",
    "R32": "Before rows are sent, nothing that the identity sent before is open",
}

PARTS: Mapping[str, str] = {
    "A1": "Checkpoint coordinator: owns ids, checkpoints under way, failures, statistics",
    "A2": "Activation: checkpoints start only while every subtask runs",
    "A3": "Periodic scheduling: interval, first delay, least pause, how many at once, backlog; no drift",
    "A4": "Trigger entry: one queue of requests, refusals by name",
    "A5": "Checkpoint plan: also with sources that have ended",
    "A6": "Pending checkpoint: ends exactly once",
    "A7": "Participants on the coordinator's side, before barriers go out",
    "A8": "Barrier injection between two records, with the place of the next",
    "A9": "Barrier propagation and alignment",
    "A10": "Alignment timer and unaligned checkpoints",
    "A11": "Task snapshot: barrier on, short cut, the rest in the background",
    "A12": "Acknowledgement: handles and metrics",
    "A13": "Decline, expiry, abort: everyone is told, and frees what it held",
    "A14": "Completion: decision, publishing, record, news, clean-up, statistics",
    "A15": "Late, doubled, unknown messages are results",
    "A16": "Failure manager: failures in a row, reasons kept apart",
    "A17": "Shared files of checkpoints: counted, and deleted only when no kept checkpoint uses them",
    "A18": "Statistics: counts, history, percentiles",
    "B1": "State in memory: a cut that does not stop processing for long",
    "B2": "State in RocksDB: larger than memory, checkpoints of its own files",
    "B3": "Two phases: a short cut, the rest in the background; nothing stays open whatever happens",
    "B4": "Kinds of state",
    "B5": "Key groups: state moves by whole ranges",
    "B6": "Timers, part of the snapshot",
    "B7": "Schema evolution",
    "C1": "Savepoints taken by hand, never deleted",
    "C2": "Canonical savepoints",
    "C3": "Native savepoints",
    "C4": "Stop with savepoint",
    "C5": "Restore of a changed job",
    "C6": "Ownership of what is restored from",
    "C7": "Replay",
    "C8": "Look inside, change, begin with state",
    "D1": "Detection: an exception, a dead process, a lost heartbeat, a step that hangs",
    "D2": "Restart strategies",
    "D3": "States of jobs, subtasks and checkpoints are tables: what is not in them can't happen",
    "D4": "Restore: the newest checkpoint or a savepoint, dealt out anew; its parent when it can't be read",
    "D5": "Every restart is a new attempt, and nothing of an old one is accepted",
}

CASES: Mapping[str, str] = {
    "case 1": "crash between the decision and the publish",
    "case 2": "a keyed count after kills is exact",
    "case 3": "a pass-through after kills has every record once",
    "case 4": "output by timers and side outputs waits for its checkpoint too",
    "case 5": "a second worker joins under load and leaves again",
    "case 6": "two jobs never fence each other",
    "case 7": "empty transactions are harmless",
    "case 8": "the broker is away for longer than every time-out",
    "case 10": "a job that never comes back: its outboxes can be listed, published, skipped",
    "case 11": "a commit without an answer",
    "case 13": "transaction time-outs that do not fit are refused",
    "case 16": "trailing bad records move the position",
    "case 17": "reading to the end ends behind control records and compacted ones",
    "case 19": "workers that restore a large state one by one",
    "case 20": "a position out of retention",
    "case 23": "a stop in the middle of a restore",
    "case 24": "a hand-over of state on disk is one, and has a bound",
    "case 27": "get after delete in one batch",
    "case 28": "restored timers fire once and leave nothing",
    "case 31": "a crash before the first checkpoint",
    "case 33": "a partition added at run time is read from its first record",
    "case 34": "more partitions of the input: counts go on per key",
    "case 44": "a split without records does not block event time",
    "case 46": "what a timer emits goes before the watermark",
    "case 49": "tombstones stay tombstones",
    "case 50": "decoders never see a null value",
    "case 51": "falsy keys are keys",
    "case 52": "headers are kept byte for byte",
    "case 54": "a poison record inside a batch",
    "case 55": "a function that raises stops at the record",
    "case 56": "a value that cannot be encoded",
    "case 60": "SIGTERM takes a last checkpoint",
}

UNREACHABLE: Mapping[str, str] = {}
"""Rules and parts that nothing reaches yet, and why."""

ALSO: Mapping[str, tuple[str, ...]] = {
    "case 10": ("tests/unit/cli/test_engine_commands.py::test_outboxes_are_listed",),
    "case 50": (
        "tests/unit/kafka/test_reader.py::test_case_49_with_tombstones_the_decoder_does_not_see_them",
    ),
}
"""Tests whose names say something else, and that show a case all the same."""

_PART = re.compile(r"_([abcd])(\d\d?)(?=_|$)")
_RULE = re.compile(r"_r(\d\d)(?:_to_r(\d\d))?(?=_|$)")
_CASE = re.compile(r"_case_(\d\d)(?=_|$)")
_LINE = re.compile(r"^- \[`(?P<file>[^`]+)`\]\([^)]*\): (?P<tests>.*)$")


@dataclass(frozen=True, slots=True, order=True)
class TestName:
    """A test function: its file from the checkout's root, and its name."""

    __test__ = False

    file: str
    name: str

    def shows(self) -> Iterator[str]:
        """The rules, parts and cases that its name names, such as "R9", "A5" and "case 16"."""
        for first, last in _RULE.findall(self.name):
            for number in range(int(first), int(last or first) + 1):
                yield f"R{number}"
        for letter, number in _PART.findall(self.name):
            yield f"{letter.upper()}{int(number)}"
        for number in _CASE.findall(self.name):
            yield f"case {int(number)}"


def all_tests() -> frozenset[TestName]:
    """Every test function of the project, also those in classes."""
    return frozenset(
        TestName(source.name, node.name)
        for source in python_files("tests")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def by_rule() -> dict[str, set[TestName]]:
    """What shows each rule, part and case, by the names of the tests and by ALSO."""
    found: dict[str, set[TestName]] = {}
    for test in all_tests():
        for what in test.shows():
            found.setdefault(what, set()).add(test)
    for what, names in ALSO.items():
        found.setdefault(what, set()).update(TestName(*name.split("::")) for name in names)
    return found


def table() -> str:
    """The text of tests/RULES.md."""
    found = by_rule()
    parts = [
        "# Rules, parts and cases, and the tests that show them",
        "",
        (
            "Written by `python -m tests.style.rules_table` from the names of the tests; "
            "`tests/style/test_rules_have_tests.py` keeps it true."
        ),
        "A name like `test_r08_r11_...` counts for both rules.",
        "",
        "## Rules of exactly-once",
        *_section(RULES, found),
        "",
        "## Parts: barriers and the checkpoint coordinator (A), state (B), savepoints (C), recovery (D)",
        *_section(PARTS, found),
        "",
        "## Cases: faults that users of other stream processors reported",
        *_section(CASES, found),
    ]
    return "\n".join(parts) + "\n"


def _section(named: Mapping[str, str], found: Mapping[str, set[TestName]]) -> Iterator[str]:
    for what, about in named.items():
        yield ""
        yield f"### {what}. {about}"
        yield ""
        if what in UNREACHABLE:
            yield f"Not reachable yet: {UNREACHABLE[what]}."
        by_file: dict[str, list[str]] = {}
        for test in sorted(found.get(what, ())):
            by_file.setdefault(test.file, []).append(test.name)
        for file, names in by_file.items():
            link = file.removeprefix("tests/")
            yield f"- [`{file}`]({link}): " + ", ".join(f"`{name}`" for name in names)


def listed() -> dict[str, set[TestName]]:
    """What the table says now: rule, part or case -> the tests it lists."""
    found: dict[str, set[TestName]] = {}
    now: set[TestName] = set()
    for line in TABLE.read_text().splitlines():
        if line.startswith("### "):
            now = found.setdefault(line.removeprefix("### ").split(".")[0], set())
        elif match := _LINE.match(line):
            now.update(TestName(match["file"], name.strip("`")) for name in match["tests"].split(", "))
    return found


if __name__ == "__main__":
    TABLE.write_text(table())
