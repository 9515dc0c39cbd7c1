"""All mutants, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tests.simulation.mutants.checkpoints import CHECKPOINTS
from tests.simulation.mutants.draining import DRAINING
from tests.simulation.mutants.kinds import KINDS
from tests.simulation.mutants.mutant import Mutant
from tests.simulation.mutants.overlapping import OVERLAPPING
from tests.simulation.mutants.overtaking import OVERTAKING
from tests.simulation.mutants.own_files import OWN_FILES
from tests.simulation.mutants.publishing import PUBLISHING
from tests.simulation.mutants.recovering import RECOVERING
from tests.simulation.mutants.state import STATE

MUTANTS: Final[Mapping[str, Mutant]] = MappingProxyType(
    {
        mutant.name: mutant
        for mutant in sorted(
            (
                *RECOVERING,
                *PUBLISHING,
                *CHECKPOINTS,
                *DRAINING,
                *OVERLAPPING,
                *OVERTAKING,
                *STATE,
                *KINDS,
                *OWN_FILES,
            ),
            key=lambda mutant: mutant.name,
        )
    }
)
