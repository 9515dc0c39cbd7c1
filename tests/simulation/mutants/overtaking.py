"""Faults in barriers that overtake, and in what they overtook."""

from __future__ import annotations

from typing import Final

from processor.simulation.faults import Faults
from tests.simulation.mutants.mutant import Edit, Mutant

_ALIGNMENT: Final = "processor.protocol.alignment:BarrierAlignment"
_KILLS: Final = Faults(kills=40, until_ms=20_000)

OVERTAKING: Final = (
    Mutant(
        name="R27_what_was_overtaken_is_left_out",
        job="overtaken",
        faults=_KILLS,
        breaks="Records in front of the barrier are in no checkpoint.",
        edits=(
            Edit(
                function="processor.task.in_flight:in_front",
                find="for element in elements",
                put="for element in elements[:0]",
            ),
        ),
    ),
    Mutant(
        name="R27_edges_that_are_not_keyed_are_overtaken",
        job="overtaken",
        faults=_KILLS,
        breaks="Barriers overtake on pointwise edges too, and what they overtake there is nowhere.",
        edits=(
            Edit(
                function=f"{_ALIGNMENT}.overtake",
                find="if not (barrier.next or self._overtakable[channel]):",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="overtaken_without_a_barrier_on_every_channel",
        job="overtaken",
        faults=_KILLS,
        breaks="The cut does not wait until the barrier is on its way on every channel.",
        edits=(
            Edit(
                function=f"{_ALIGNMENT}.overtake",
                find="                return None\n            if not (barrier.next",
                put="                continue\n            if not (barrier.next",
            ),
        ),
    ),
    Mutant(
        name="channel_state_in_reverse",
        job="overtaken",
        faults=_KILLS,
        breaks="Records in flight come back in the wrong order.",
        edits=(
            Edit(
                function="processor.runtime.channel_ends:ChannelEnds.of",
                find="for element in begins:",
                put="for element in reversed(begins):",
            ),
        ),
    ),
    Mutant(
        name="channel_state_after_new_data",
        job="overtaken-rescaled",
        faults=_KILLS,
        breaks="At another parallelism, records in flight do not go before what is new on other channels.",
        edits=(
            Edit(
                function="processor.runtime.restored_channels:_spread",
                find="RestoredChannel(adopted=True)",
                put="RestoredChannel(adopted=False)",
            ),
        ),
    ),
)
