"""Every order of events of publishing, recovery, going back, rewinding and rescaling, within bounds.

Attempts start one after another, and whose turn it is next is left open, so each may be overtaken, sleep,
wake or die at every step. Answers to commits get lost, commit requests arrive late or twice, files are
unreadable to some attempt, markers are read from an earlier time. Looked at in every state:

* what is out of each identity is a beginning of the rows of the chain of checkpoints that ends in the newest
  decided one: nothing twice, nothing out of order, nothing of a checkpoint that was gone back from;
* the newest attempt, once it runs, has every row up to its restored checkpoint out: nothing lost;
* nobody stops loudly but where R8 says so, and no request to rewind is carried out twice.

    python -m tests.protocol.publishing_model [--full]
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from tests.protocol.publishing_steps import Model
from tests.protocol.publishing_world import ROOT, Bounds, Entry, Rules, State, WrongStep

STATES_MAX = 20_000_000
"""An exploration that grows beyond this has bounds that are too wide: it fails instead of filling memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One exploration, and the rules that it shows to be needed."""

    name: str
    bounds: Bounds
    ablations: tuple[str, ...]
    """Fields of Rules; without any one of them a bad state is within the bounds."""


CI_VARIANTS = (
    Variant(
        name="one identity",
        bounds=Bounds(parallelism=(1, 1, 1)),
        ablations=(
            "seal",
            "seal_before_reading",
            "stop_if_unreadable_is_out",
            "one_identity",
            "compare",
            "read_after_taking_over",
            "opening",
        ),
    ),
    Variant(
        name="two identities",
        bounds=Bounds(parallelism=(2, 2), parallelism_before=2, checkpoints=2),
        ablations=("one_after_another",),
    ),
    Variant(
        name="chunks",
        bounds=Bounds(parallelism=(1, 1, 1), rows=2),
        ablations=("rows_in_marker", "all_rows_before_done"),
    ),
    Variant(
        name="torn transactions",
        bounds=Bounds(parallelism=(1, 1), rows=2, torn=True),
        ablations=("new_producer",),
    ),
    Variant(
        name="rescaling",
        bounds=Bounds(parallelism=(2, 1, 1)),
        ablations=("identities_of_entry", "open_all_since_restored"),
    ),
    Variant(
        name="rewinds",
        bounds=Bounds(parallelism=(1, 1, 1), requests=("", "again", "again"), unreadable=False),
        ablations=("token", "publish_before_rewind"),
    ),
    Variant(
        name="stale reads",
        bounds=Bounds(parallelism=(1, 1, 1), stale_reads=True),
        ablations=("nonce", "nonce_after_taking_over"),
    ),
)
"""Small enough for every test run: about a minute together, ablations included."""

FULL_VARIANTS = (
    Variant(name="four attempts", bounds=Bounds(parallelism=(1, 1, 1, 1)), ablations=()),
    Variant(
        name="two checkpoints each",
        bounds=Bounds(parallelism=(1, 1, 1), checkpoints=2),
        ablations=(),
    ),
    Variant(
        name="two identities, three attempts",
        bounds=Bounds(parallelism=(2, 2, 2), parallelism_before=2),
        ablations=(),
    ),
    Variant(name="chunks of three rows", bounds=Bounds(parallelism=(1, 1, 1), rows=3), ablations=()),
    Variant(
        name="torn, three attempts",
        bounds=Bounds(parallelism=(1, 1, 1), rows=2, torn=True),
        ablations=(),
    ),
    Variant(name="shrinking and growing", bounds=Bounds(parallelism=(2, 1, 2)), ablations=()),
    Variant(
        name="rewinds, unreadable, rescaled",
        bounds=Bounds(parallelism=(1, 2, 1), requests=("", "again", "again")),
        ablations=(),
    ),
    Variant(
        name="stale reads and chunks",
        bounds=Bounds(parallelism=(1, 1, 1), rows=2, stale_reads=True),
        ablations=(),
    ),
)
"""For `make soak`, beside the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    states: int
    bad: str
    """What is wrong in the first bad state met, "" when there is none."""
    path: tuple[str, ...]
    """A shortest way there."""
    running_with_all_out: int
    """States in which the newest attempt runs and everything decided is out: the model gets somewhere."""


class Check:
    """Whether a state is bad."""

    def __init__(self, model: Model) -> None:
        self._rows_per_checkpoint = model.bounds.rows
        self._width = model.width
        self._expected: dict[tuple[tuple[Entry, ...], int], tuple[tuple[tuple[int, int], ...], ...]] = {}

    def wrong(self, state: State) -> str:
        log, identities, processes = state
        newest = next(entry.checkpoint for entry in reversed(log) if entry.kind != "seal")
        expected = self._rows_to(log, newest)
        for i, identity in enumerate(identities):
            if identity.out != expected[i][: len(identity.out)]:
                if len(set(identity.out)) < len(identity.out):
                    return f"identity {i} has rows twice: {identity.out}"
                return f"identity {i} has {identity.out}, decided is {expected[i]}"
        last = processes[-1] if processes else None
        if last is not None and last.phase == "run":
            restored = self._rows_to(log, last.target)
            for i, identity in enumerate(identities):
                if len(identity.out) < len(restored[i]):
                    return (
                        f"the newest attempt runs, and identity {i} lacks {restored[i][len(identity.out) :]}"
                    )
        tokens = [entry.token for entry in log if entry.kind == "rewind"]
        if len(set(tokens)) < len(tokens):
            return f"rewound twice for one request: {tokens}"
        return ""

    def all_out(self, state: State) -> bool:
        """The newest attempt runs and every decided row is out."""
        log, identities, processes = state
        last = processes[-1] if processes else None
        newest = next(entry.checkpoint for entry in reversed(log) if entry.kind != "seal")
        expected = self._rows_to(log, newest)
        return (
            newest != ROOT
            and last is not None
            and last.phase == "run"
            and all(identity.out == expected[i] for i, identity in enumerate(identities))
        )

    def _rows_to(self, log: tuple[Entry, ...], checkpoint: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Rows of each identity on the chain that ends in a checkpoint, over rewinds to what they left."""
        known = self._expected.get((log, checkpoint))
        if known is None:
            entries = {entry.checkpoint: entry for entry in log if entry.kind != "seal"}
            chain: list[Entry] = []
            at = checkpoint
            while at != -1:
                chain.append(entries[at])
                at = entries[at].parent
            known = tuple(
                tuple(
                    (entry.checkpoint, row)
                    for entry in reversed(chain)
                    if entry.kind == "checkpoint" and entry.checkpoint != ROOT and entry.identities >> i & 1
                    for row in range(self._rows_per_checkpoint)
                )
                for i in range(self._width)
            )
            self._expected[log, checkpoint] = known
        return known


def explore(bounds: Bounds, rules: Rules) -> Result:
    """Look at every state within the bounds, nearest first, until one is bad."""
    model = Model(bounds, rules)
    check = Check(model)
    start = model.start()
    came_from: dict[State, tuple[State, str] | None] = {start: None}
    queue = deque([start])
    all_out = 0
    alike = {*bounds.parallelism, bounds.parallelism_before} == {2}
    while queue:
        state = queue.popleft()
        try:
            for what, after in model.steps(state):
                if alike:
                    after = _one_of_two(after)
                if after in came_from:
                    continue
                came_from[after] = (state, what)
                bad = check.wrong(after)
                if bad:
                    return _bad(came_from, after, bad, all_out)
                all_out += check.all_out(after)
                queue.append(after)
        except WrongStep as wrong:
            return _bad(came_from, state, str(wrong), all_out)
        if len(came_from) > STATES_MAX:
            raise AssertionError(f"more than {STATES_MAX:,} states: the bounds are too wide")
    return Result(states=len(came_from), bad="", path=(), running_with_all_out=all_out)


def _bad(came_from: dict[State, tuple[State, str] | None], state: State, bad: str, all_out: int) -> Result:
    path: list[str] = []
    step = came_from[state]
    while step is not None:
        path.append(step[1])
        step = came_from[step[0]]
    return Result(states=len(came_from), bad=bad, path=tuple(reversed(path)), running_with_all_out=all_out)


def _one_of_two(state: State) -> State:
    """Two identities that all attempts have are alike: of two states that differ by their names, one."""
    log, (first, second), processes = state
    swapped = tuple(
        p and p._replace(todo=(p.todo & 1) << 1 | p.todo >> 1, at=p.at if p.at < 0 else 1 - p.at)
        for p in processes
    )
    mirrored: State = (log, (second, first), swapped)
    return min(state, mirrored, key=hash)


def without(rule: str) -> Rules:
    """All rules but one."""
    return replace(Rules(), **{rule: False})


def all_rules() -> tuple[str, ...]:
    return tuple(field.name for field in fields(Rules))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--full", action="store_true", help="wider bounds too: minutes and gigabytes")
    full = parser.parse_args(arguments).full
    failed = 0
    for variant in (*CI_VARIANTS, *(FULL_VARIANTS if full else ())):
        for rule in ("", *variant.ablations):
            began = time.perf_counter()
            result = explore(variant.bounds, without(rule) if rule else Rules())
            as_it_should_be = bool(result.bad) == bool(rule)
            failed += not as_it_should_be
            said = f"bad: {result.bad} in {len(result.path)} steps" if result.bad else "no bad state"
            print(
                f"{variant.name:30} {'without ' + rule if rule else 'as ruled':34} {result.states:>10,} "
                f"states {time.perf_counter() - began:6.1f} s  {said}"
                f"{'' if as_it_should_be else '  <- WRONG'}",
                flush=True,
            )
            if not as_it_should_be:
                print("".join(f"    {step}\n" for step in result.path), end="")
    print(f"{failed} of the explorations came out otherwise than they must")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
