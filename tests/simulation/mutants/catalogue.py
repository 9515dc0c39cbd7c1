"""All mutants, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tests.simulation.mutants.channels import CHANNELS
from tests.simulation.mutants.checkpoints import CHECKPOINTS
from tests.simulation.mutants.converting import CONVERTING
from tests.simulation.mutants.draining import DRAINING
from tests.simulation.mutants.kinds import KINDS
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.mutants.overlapping import OVERLAPPING
from tests.simulation.mutants.overtaking import OVERTAKING
from tests.simulation.mutants.own_files import OWN_FILES
from tests.simulation.mutants.publishing import PUBLISHING
from tests.simulation.mutants.recovering import RECOVERING
from tests.simulation.mutants.rescaling import RESCALING
from tests.simulation.mutants.restarting import RESTARTING
from tests.simulation.mutants.state import STATE
from tests.simulation.mutants.workers import WORKERS, WORKERS_SHOWN_BY_TESTS


def _by_name(*mutants: Mutant) -> Mapping[str, Mutant]:
    return MappingProxyType({mutant.name: mutant for mutant in sorted(mutants, key=lambda each: each.name)})


MUTANTS: Final = _by_name(
    *RECOVERING,
    *PUBLISHING,
    *CHECKPOINTS,
    *DRAINING,
    *OVERLAPPING,
    *OVERTAKING,
    *STATE,
    *KINDS,
    *OWN_FILES,
    *RESCALING,
    *WORKERS,
)
"""Those that the simulation shows."""

SHOWN_BY_TESTS: Final = _by_name(*RESTARTING, *CONVERTING, *CHANNELS, *WORKERS_SHOWN_BY_TESTS)
