"""A connector's section as the tests need it: names chosen by people, secrets, and every kind of value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from processor.settings.section import Section
from processor.settings.units import Duration, at_least_ms


class Login(Section):
    """As whom."""

    user: str | None = Field(default=None, description="Name.")
    password: SecretStr | None = Field(default=None, min_length=1, max_length=64, description="Secret.")
    tokens: Mapping[str, SecretStr] = Field(default_factory=dict, description="Secrets by name.")

    @model_validator(mode="after")
    def _told_too_much(self) -> Login:
        if self.user == "careless" and self.password is not None:
            # A connector's author who forgets: the engine's net has to hold all the same.
            raise ValueError(f"no such password: {self.password.get_secret_value()}")
        return self


class Cluster(Section):
    """One cluster."""

    address: str | None = Field(default=None, description="Where it is.")
    wait: Annotated[Duration, at_least_ms(10)] = Field(default=5_000, description="How long.")
    login: Login = Field(default_factory=Login, description="As whom.")
    topic_map: Mapping[str, str] = Field(default_factory=dict, description="Names.")
    racks: list[str] = Field(default_factory=list, description="Several.")


class Broker(BaseModel):
    """Clusters by name."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Cluster]

    main: Cluster = Field(default_factory=Cluster, description="The first.")
