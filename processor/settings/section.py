"""Base of every section of the settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of every section, connectors' too: frozen, strict about names, silent about values in errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=False)
