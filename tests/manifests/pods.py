"""What docker/kubernetes says, as its pods would have it: manifests, and the commands of their containers."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from examples.job_process import PROJECT

FOLDER: Final = PROJECT / "docker" / "kubernetes"
KUSTOMIZATION: Final = FOLDER / "kustomization.yaml"
SETTINGS: Final = FOLDER / "settings.yaml"

EXECUTED: Final = "exec processor "

Manifest = Mapping[str, Any]

_REFERENCE = re.compile(r"\$\((\w+)\)")
"""How Kubernetes writes a variable in a container's arguments."""


def kustomization() -> Manifest:
    """What is applied."""
    found: Manifest = yaml.safe_load(KUSTOMIZATION.read_text())
    return found


def manifests() -> list[Manifest]:
    """All that are applied, without those that are generated."""
    return [
        manifest
        for name in kustomization()["resources"]
        for manifest in yaml.safe_load_all((FOLDER / name).read_text())
    ]


def manifest(kind: str, component: str) -> Manifest:
    """The one of that kind for ``coordinator`` or ``worker``."""
    (found,) = (
        each
        for each in manifests()
        if each["kind"] == kind and each["metadata"]["labels"]["app.kubernetes.io/component"] == component
    )
    return found


def literals() -> dict[str, str]:
    """The variables that the generated ConfigMap ``processor-job`` holds."""
    (generated,) = (made for made in kustomization()["configMapGenerator"] if made["name"] == "processor-job")
    return dict(literal.split("=", 1) for literal in generated["literals"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The only one of a pod, with the variables that it would have."""

    spec: Manifest
    pod: Manifest
    environment: Mapping[str, str]

    @property
    def arguments(self) -> list[str]:
        """Of the image's entry point, ``processor``."""
        return [
            _REFERENCE.sub(lambda named: self.environment[named[1]], argument)
            for argument in self.spec["args"]
        ]

    def executed(self, command: Sequence[str]) -> list[str]:
        """The arguments of ``processor`` as a probe or a hook calls it: through a shell, for its variables."""
        assert command[:2] == ["sh", "-c"]
        assert command[2].startswith(EXECUTED), "a shell in between would not hand signals on"
        told = subprocess.run(
            ["sh", "-c", command[2].replace(EXECUTED, r"printf '%s\0' ", 1)],
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return told.stdout.split("\0")[:-1]

    def probe(self, name: str) -> list[str]:
        """Of ``readinessProbe`` or ``livenessProbe``."""
        return self.executed(self.spec[name]["exec"]["command"])

    @property
    def pre_stop(self) -> list[str]:
        return self.executed(self.spec["lifecycle"]["preStop"]["exec"]["command"])


def container(component: str, address: str = "127.0.0.1") -> Container:
    """``address``: of its pod."""
    kind = "Deployment" if component == "coordinator" else "StatefulSet"
    pod = manifest(kind, component)["spec"]["template"]["spec"]
    (spec,) = pod["containers"]
    assert spec["envFrom"] == [{"configMapRef": {"name": "processor-job"}}]
    assert [variable["name"] for variable in spec["env"]] == ["POD_IP"]
    return Container(spec=spec, pod=pod, environment={**literals(), "POD_IP": address})
