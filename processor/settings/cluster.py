"""Settings of workers on several machines."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from processor.settings.section import Section
from processor.settings.units import Duration, at_least_ms


class WorkersFrom(StrEnum):
    """Who starts the workers."""

    PROCESSES = "processes"
    JOINING = "joining"
    RAY = "ray"


class RaySettings(Section):
    """Where coordinator and workers run, and what each of them asks for. They are processes beside Ray's own."""

    address: str = Field(
        default="auto",
        description="The Ray cluster: ray://host:10001 through its client server, host:port of its head for a driver "
        "on one of its nodes, or auto.",
    )
    working_directory: Path = Field(
        default=Path("."),
        description="The folder that nodes get a copy of: it holds the job's module and its files of settings. The "
        "product itself is installed on the nodes.",
    )
    exclude: tuple[str, ...] = Field(
        default=(".git", ".venv", "__pycache__"),
        description="What of that folder stays here, as patterns of a .gitignore.",
    )
    worker_cpus: float = Field(default=1.0, ge=0, description="CPUs that one worker asks of Ray.")
    worker_resources: dict[str, float] = Field(
        default_factory=dict, description="Other resources that one worker asks of Ray, by name."
    )
    coordinator_cpus: float = Field(
        default=0.5, ge=0, description="CPUs that the coordinator asks of Ray; it steps no records."
    )
    coordinator_resources: dict[str, float] = Field(
        default_factory=dict, description="Other resources that the coordinator asks of Ray, by name."
    )


class ClusterSettings(Section):
    """Workers on several machines, and how they make sure of each other. Workers of one machine need none of it:
    their sockets lie where only the job's user can enter."""

    workers: WorkersFrom = Field(
        default=WorkersFrom.PROCESSES,
        description="processes: the coordinator starts them on its own machine. joining: they come by themselves, as "
        "'processor worker --coordinator' started by Kubernetes or by hand; runtime.workers is how many are waited "
        "for. ray: coordinator and workers are started on the nodes of a Ray cluster (section ray).",
    )
    workers_min: int | None = Field(
        default=None,
        ge=1,
        description="Fewest workers with which the job runs when the others have not come within worker_wait: the "
        "workers there are share all of it. Those that come later take part after one more checkpoint. By default "
        "all of runtime.workers are waited for.",
    )
    worker_wait: Annotated[Duration, at_least_ms(1)] = Field(
        default=10_000,
        description="With workers_min: how long others are waited for at a start, and how long those that come later "
        "have to stay before the job is dealt out anew.",
    )
    listen: str = Field(
        default="tcp:127.0.0.1:0",
        description="Where the coordinator waits for workers of other machines: tcp:host:port, with a host that they "
        "reach; port 0 is any free one. Needs secret_file or certificates.",
    )
    shared_directory: bool = Field(
        default=False,
        description="Whether a checkpoint.directory without an object store is the same one on all machines (NFS and "
        "such). Without it workers on several machines need an object store.",
    )
    secret_file: Path | None = Field(
        default=None,
        description="File with a secret that all workers of the job have and nobody else, such as 'openssl rand -hex "
        "32' prints. It keeps strangers out; who controls the network can still read and change what is said.",
    )
    certificate_file: Path | None = Field(
        default=None,
        description="Certificate (PEM) that a worker shows to the others: with it, connections are TLS, both ways.",
    )
    key_file: Path | None = Field(default=None, description="Private key (PEM) of the certificate.")
    ca_file: Path | None = Field(
        default=None,
        description="Certificate (PEM) of the authority that has signed those of the job's workers. Whoever it signs "
        "for is a worker: let it sign for nobody else, or set secret_file too.",
    )

    ray: RaySettings = Field(default_factory=RaySettings, description="The Ray cluster of workers: ray.")

    @model_validator(mode="after")
    def _consistent(self) -> ClusterSettings:
        files = (self.certificate_file, self.key_file, self.ca_file)
        if any(file is None for file in files) and any(file is not None for file in files):
            raise ValueError("certificate_file, key_file and ca_file go together: set all or none")
        return self
