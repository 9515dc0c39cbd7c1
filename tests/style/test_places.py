"""The project knows no machine: no path of one, and no address in what is installed."""

from __future__ import annotations

import re

from tests.style.sources import ROOT, tracked

# Put together from halves, so that this file does not name what it forbids.
FOREIGN_PATHS = re.compile(
    "|".join(rf"(?<![\w./:-])/{name}(?=[/\s\"'`)]|$)" for name in ("work", "root", "home"))
)
TEMPORARY = re.compile(r"(?<![\w.-])/" + r"tmp/")
ADDRESS = re.compile(r"[a-z]+://[^\s\"'<>]+")
POM_NAMESPACES = ("http://maven.apache.org/POM/", "http://www.w3.org/")

PATHS_ALLOWED = {
    "docker/Dockerfile": "the home of the image's own user",
    "docker/compose.yaml": "the home of the image's own user",
}


def texts() -> list[tuple[str, str]]:
    """Name and text of every tracked file that is text."""
    found = []
    for path in tracked():
        try:
            found.append((path.as_posix(), (ROOT / path).read_text()))
        except UnicodeDecodeError:
            continue
    return found


def test_no_path_of_a_machine() -> None:
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts()
        if name not in PATHS_ALLOWED
        for number, line in enumerate(text.splitlines(), start=1)
        if FOREIGN_PATHS.search(line) or TEMPORARY.search(line)
    ]
    assert not found, "\n".join(found)


def test_no_address_in_what_is_installed() -> None:
    """Where packages come from is the installing machine's choice; an address in a lock would overrule it."""
    installed = [
        (name, text)
        for name, text in texts()
        if name.startswith("requirements/") or name.endswith(("pom.xml", "pyproject.toml"))
    ]
    assert installed
    found = [
        f"{name}: {address}"
        for name, text in installed
        for address in ADDRESS.findall(text)
        if not (name.endswith("pom.xml") and address.startswith(POM_NAMESPACES))
    ]
    found += [
        f"{name} names a repository" for name, text in installed if re.search(r"<(plugin)?[rR]epositor", text)
    ]
    found += [
        f"{name}: {line}"
        for name, text in installed
        for line in text.splitlines()
        if name.startswith("requirements/")
        and re.match(r"\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b", line)
    ]
    assert not found, found


def test_every_locked_package_has_a_hash() -> None:
    for lock in sorted((ROOT / "requirements").glob("*.txt")):
        pinned = re.findall(r"^[A-Za-z0-9._-]+==.*?(?=^[A-Za-z0-9._-]+==|\Z)", lock.read_text(), re.M | re.S)
        assert pinned, f"{lock.name} pins nothing"
        bare = [entry.split("\n")[0] for entry in pinned if "--hash=sha256:" not in entry]
        assert not bare, bare
