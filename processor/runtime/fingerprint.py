"""Whether two processes have the same job, settings and product."""

from __future__ import annotations

from hashlib import sha256

import msgspec
from pydantic import BaseModel

import processor
from processor.plan.execution import ExecutionPlan
from processor.settings.model import CORE_SECTIONS, Settings


def fingerprint(plan: ExecutionPlan, settings: Settings) -> str:
    """The same wherever layout, settings and release are. Of secrets it knows only whether they are set; of how
    machines reach each other nothing, for that is another matter on each."""
    sections: dict[str, BaseModel] = {name: getattr(settings, name) for name in CORE_SECTIONS}
    told = {
        "release": processor.__version__,
        "job": plan.job,
        "shape": plan.shape,
        "settings": {
            name: section.model_dump_json(exclude={"cluster"} if name == "runtime" else None)
            for name, section in {**sections, **settings.plugins}.items()
        },
    }
    return sha256(msgspec.json.encode(told, order="sorted")).hexdigest()
