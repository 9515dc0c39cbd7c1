"""What a broker without Docker is run with: a Java runtime, and Kafka's jars, copied once by Maven."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

DEFAULT_VERSION = os.environ.get("KAFKA_VERSION") or "4.4.0"
"""Of brokers that are started here; the variable runs tests against another release."""
"""The Kafka version that is run when nobody asks for another."""

JAVA_MAJOR_MIN = 17
"""Brokers from Kafka 4.0 on need Java 17."""

MAVEN_TIMEOUT_S = 600.0
APT_TIMEOUT_S = 600.0
JAVA_VERSION_TIMEOUT_S = 30.0

DEBIAN_PACKAGES = {"java": "default-jre-headless", "mvn": "maven"}


class MissingToolError(RuntimeError):
    """A program that is needed is missing and cannot be installed from here; the message says what to do."""


def project_root() -> Path:
    """The checkout this file belongs to; jars and the shared broker are kept in its `build/`.

    Raises MissingToolError when the package was installed without its checkout: a wheel carries no pom.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / "docker" / "kafka" / "pom.xml").exists():
        raise MissingToolError(
            "A broker for development can only be started from a checkout of the project. "
            "Set KAFKA_BOOTSTRAP_SERVERS to use a Kafka that is already there."
        )
    return root


def find_java() -> Path:
    """The `java` program, in version 17 or above; installed through apt-get on Debian as root."""
    java = _java_home() or _tool("java")
    answer = subprocess.run(
        [java, "-version"], capture_output=True, text=True, check=False, timeout=JAVA_VERSION_TIMEOUT_S
    ).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    if found is None or int(found.group(1)) < JAVA_MAJOR_MIN:
        raise MissingToolError(
            f"Kafka needs Java {JAVA_MAJOR_MIN} or above; {java} says: {answer.strip() or 'nothing'}. "
            f"Install a newer Java runtime and put it first on PATH, or set JAVA_HOME."
        )
    return java


def kafka_jars(version: str = DEFAULT_VERSION) -> Path:
    """The folder of Kafka's jars, `build/kafka-VERSION/libs`; copied there by Maven the first time."""
    if re.fullmatch(r"\d+\.\d+\.\d+(-[A-Za-z0-9.]+)?", version) is None:
        raise ValueError(f"{version!r} is no Kafka version; one looks like {DEFAULT_VERSION}")
    root = project_root()
    pom = root / "docker" / "kafka" / "pom.xml"
    return jars_of(pom, root / "build" / f"kafka-{version}" / "libs", f"-Dkafka.version={version}")


def jars_of(pom: Path, libs: Path, *options: str) -> Path:
    """The folder ``libs`` with the jars that a pom needs to run; copied there by Maven the first time, which gets
    these further options. Raises MissingToolError."""
    if libs.is_dir():
        return libs
    libs.parent.mkdir(parents=True, exist_ok=True)
    with exclusively(libs.parent / "lock"):
        if not libs.is_dir():
            _copy_jars(pom, libs, options)
    return libs


@contextmanager
def exclusively(lock: Path) -> Iterator[None]:
    """Hold a file lock: among several programs that want the same thing made, one makes it."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _copy_jars(pom: Path, libs: Path, options: Sequence[str]) -> None:
    """Copy into a folder beside `libs` and rename: an interrupted run leaves no half-filled `libs`."""
    maven = _tool("mvn")
    find_java()  # Maven's own message for a missing Java names no remedy
    partial = Path(mkdtemp(prefix="libs-partial-", dir=libs.parent))
    try:
        done = subprocess.run(
            [
                os.fspath(maven),
                "--quiet",
                "--batch-mode",
                f"--file={pom}",
                *options,
                f"-DoutputDirectory={partial}",
                "-DincludeScope=runtime",
                "-Dstyle.color=never",
                # In full: with only the plugin's prefix, a refused connection reads as an unknown plugin.
                "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies",
            ],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=MAVEN_TIMEOUT_S,
        )
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip()[-2000:]
            raise MissingToolError(f"Maven could not bring the jars of {libs.parent.name}. It said:\n{said}")
        partial.chmod(0o755)
        partial.rename(libs)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _java_home() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    if not home:
        return None
    java = Path(home) / "bin" / "java"
    return java if os.access(java, os.X_OK) else None


def _tool(name: str) -> Path:
    found = shutil.which(name)
    if found is None and _debian_root():
        _apt_install(DEBIAN_PACKAGES[name])
        found = shutil.which(name)
    if found is None:
        raise MissingToolError(
            f"`{name}` is not on PATH, and is needed to run Kafka without Docker. Install it "
            f"(Debian and Ubuntu: apt-get install {' '.join(DEBIAN_PACKAGES.values())}; "
            f"macOS: brew install openjdk maven), start Docker, or set KAFKA_BOOTSTRAP_SERVERS."
        )
    return Path(found)


def _debian_root() -> bool:
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def _apt_install(package: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        done = subprocess.run(
            ["apt-get", "--quiet", *command],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environment,
            timeout=APT_TIMEOUT_S,
        )
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip()[-2000:]
            raise MissingToolError(f"apt-get {' '.join(command)} failed. It said:\n{said}")
