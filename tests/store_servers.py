"""Servers of stores that are programs of their own: HDFS from Hadoop's jars, an emulator of Azure's blobs from npm.

    python -m tests.store_servers        brings both into build/; after that the tests of those stores run

They are large and take a minute or two, so nobody has to have them: without, those tests are skipped, and say so.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import secrets
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from email.utils import formatdate
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest

from connectors.kafka.dev_broker import free_ports
from connectors.kafka.dev_jars import MissingToolError, exclusively, find_java, jars_of, project_root
from processor.settings.location import Location, Scheme
from processor.settings.stores import StoreSettings
from tests.waiting import wait_until

HADOOP_VERSION: Final = "3.4.1"
AZURITE_VERSION: Final = "3.37.0"
BRING: Final = "bring it with: make store-servers"

START_TIMEOUT_S: Final = 90.0
NPM_TIMEOUT_S: Final = 600.0
STOP_TIMEOUT_S: Final = 30.0
REQUEST_TIMEOUT_S: Final = 30.0
HEAP_MAX: Final = "400m"

HDFS_USER: Final = "tester"
REALM: Final = "EXAMPLE.COM"
AZURE_ACCOUNT: Final = "devstoreaccount1"
AZURE_KEY: Final = base64.b64encode(b"a key of tests, which opens nothing").decode()
AZURE_API: Final = "2021-12-02"


def hadoop_libs() -> Path:
    """Where Hadoop's jars are once they were brought."""
    return project_root() / "build" / f"hadoop-{HADOOP_VERSION}" / "libs"


def azurite_program() -> Path:
    """The emulator's server of blobs, once it was brought."""
    home = project_root() / "build" / f"azurite-{AZURITE_VERSION}"
    return home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


class HdfsServer:
    """A cluster of one NameNode and one DataNode in a process of its own."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"

    def location(self) -> Location:
        """A folder that nobody else uses."""
        return Location(scheme=Scheme.HDFS, bucket="localhost", path=f"user/{secrets.token_hex(6)}")

    def settings(self, **more: object) -> StoreSettings:
        """For this server; impatient."""
        hdfs = {"endpoints": self.endpoint, "user": HDFS_USER}
        return StoreSettings.model_validate({"hdfs": hdfs, "retries_max": 2, **more})


class KerberisedHdfsServer(HdfsServer):
    """The same, with a Kerberos that every caller has to have a ticket of."""

    def __init__(self, port: int, keytab: Path) -> None:
        super().__init__(port)
        # By the name that Kerberos knows it by; DataNodes are sent to by their number.
        self.endpoint = f"http://localhost:{port}"
        self.keytab = keytab

    def settings(self, **more: object) -> StoreSettings:
        hdfs = {
            "endpoints": self.endpoint,
            "kerberos": True,
            "keytab": str(self.keytab),
            "principal": HDFS_USER,
        }
        return StoreSettings.model_validate({"hdfs": hdfs, "retries_max": 2, **more})


class AzureServer:
    """An emulator of Azure's blobs in a process of its own."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"

    def location(self) -> Location:
        """A prefix of a new container."""
        container = f"container-{secrets.token_hex(6)}"
        self.request("PUT", container, restype="container")
        return Location(scheme=Scheme.AZ, bucket=container, path="some/prefix")

    def settings(self, **more: object) -> StoreSettings:
        """For this server; impatient."""
        az = {"endpoint": self.endpoint, "account": AZURE_ACCOUNT, "account_key": AZURE_KEY}
        return StoreSettings.model_validate({"az": az, "retries_max": 2, **more})

    def request(
        self,
        method: str,
        path: str,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> bytes:
        """Behind the back of who is tested; signed with the account's key."""
        own = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": AZURE_API, **(headers or {})}
        kind = "application/octet-stream" if content else ""
        signed = [method, "", "", str(len(content) or ""), "", kind, *[""] * 6]
        signed += [f"{name}:{value}" for name, value in sorted(own.items())]
        signed += [f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{path}"]
        signed += [f"{name}:{value}" for name, value in sorted(query.items())]
        digest = hmac.digest(base64.b64decode(AZURE_KEY), "\n".join(signed).encode(), "sha256")
        own["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"
        if method == "PUT":
            own |= {"Content-Length": str(len(content)), **({"Content-Type": kind} if kind else {})}
        address = f"{self.endpoint}/{path}" + (f"?{urlencode(query)}" if query else "")
        request = urllib.request.Request(address, data=content or None, method=method, headers=own)
        with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:
            found: bytes = answer.read()
        return found


@contextmanager
def hdfs_server(folder: Path) -> Iterator[HdfsServer]:
    """For the time of a with-block, with its data in the folder; skips the test when the jars are not there."""
    with _cluster(folder, {}) as port:
        yield HdfsServer(port)


@contextmanager
def kerberised_hdfs_server(folder: Path) -> Iterator[KerberisedHdfsServer]:
    """Likewise, with Hadoop's own Kerberos, which this process asks for the time of the with-block; skips the test
    without gssapi, too."""
    if find_spec("gssapi") is None:
        pytest.skip("gssapi is not installed: pip install gssapi, which needs the headers of Kerberos")
    kdc, cluster = folder / "kdc", folder / "cluster"
    kdc.mkdir()
    cluster.mkdir()
    server, http = f"hdfs/localhost@{REALM}", f"HTTP/localhost@{REALM}"
    with _kerberos(kdc, "hdfs/localhost", "HTTP/localhost", HDFS_USER) as (config, keytab):
        options = {
            "hadoop.security.authentication": "kerberos",
            "hadoop.http.filter.initializers": "org.apache.hadoop.hdfs.web.AuthFilterInitializer",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": http,
            "hadoop.http.authentication.kerberos.keytab": str(keytab),
            "dfs.web.authentication.kerberos.principal": http,
            "dfs.web.authentication.kerberos.keytab": str(keytab),
            "dfs.namenode.kerberos.principal": server,
            "dfs.namenode.kerberos.internal.spnego.principal": http,
            "dfs.namenode.keytab.file": str(keytab),
            "dfs.datanode.kerberos.principal": server,
            "dfs.datanode.keytab.file": str(keytab),
            "dfs.block.access.token.enable": "true",
            "ignore.secure.ports.for.testing": "true",
        }
        with _cluster(cluster, options, f"-Djava.security.krb5.conf={config}") as port:
            yield KerberisedHdfsServer(port, keytab)


@contextmanager
def _kerberos(folder: Path, *principals: str) -> Iterator[tuple[Path, Path]]:
    """A KDC for the time of a with-block, which is that of this process meanwhile: its configuration, and a keytab
    with the principals."""
    properties, made, keytab = folder / "kdc.properties", folder / "krb5.conf", folder / "all.keytab"
    organisation, domain = REALM.split(".")
    properties.write_text(
        f"org.name={organisation}\norg.domain={domain}\nkdc.bind.address=127.0.0.1\nkdc.port=0\n"
        "instance=Test\nmax.ticket.lifetime=86400000\nmax.renewable.lifetime=86400000\ntransport=TCP\n"
        "debug=false\n"
    )
    command = [*_java(), "org.apache.hadoop.minikdc.MiniKdc"]
    command += [str(folder), str(properties), str(keytab), *principals]
    config = folder / "used.conf"
    before = os.environ.get("KRB5_CONFIG")
    with _running(command, folder):
        # It says so once the keytab is whole.
        log = folder / "server.log"
        wait_until(lambda: "MiniKdc Running" in log.read_text(), START_TIMEOUT_S, "the KDC is there")
        names = "[libdefaults]\n    dns_canonicalize_hostname = false\n    rdns = false"
        config.write_text(made.read_text().replace("[libdefaults]", names))
        os.environ["KRB5_CONFIG"] = str(config)
        try:
            yield config, keytab
        finally:
            if before is None:
                del os.environ["KRB5_CONFIG"]
            else:
                os.environ["KRB5_CONFIG"] = before


@contextmanager
def _cluster(folder: Path, options: Mapping[str, str], *java: str) -> Iterator[int]:
    """HDFS for the time of a with-block; the port of the NameNode's HTTP server."""
    (port,) = free_ports(1)
    started = folder / "started.json"
    command = [*_java(), f"-Dtest.build.data={folder}", f"-Dhadoop.log.dir={folder}", *java]
    command += ["org.apache.hadoop.test.MiniDFSClusterManager", "-datanodes", "1", "-format"]
    command += ["-httpport", str(port), "-writeDetails", str(started)]
    settled = {"dfs.replication": "1", "dfs.permissions.enabled": "false", **options}
    command += [word for name, value in settled.items() for word in ("-D", f"{name}={value}")]
    with _running(command, folder):
        wait_until(
            lambda: started.exists() and json.loads(started.read_text() or "0"),
            START_TIMEOUT_S,
            "HDFS is there",
        )
        yield port


def _java() -> list[str]:
    """Java with Hadoop's classes; skips the test when the jars are not there."""
    libs = hadoop_libs()
    if not libs.is_dir():
        pytest.skip(f"Hadoop's jars are not in build/; {BRING}")
    return [str(find_java()), f"-Xmx{HEAP_MAX}", "-cp", f"{libs}/*"]


@contextmanager
def azure_server(folder: Path) -> Iterator[AzureServer]:
    """For the time of a with-block; skips the test when the emulator, or node to run it, is not there."""
    node, program = shutil.which("node"), azurite_program()
    if node is None or not program.exists():
        pytest.skip(f"azurite, or node to run it, is not here; {BRING}")
    (port,) = free_ports(1)
    server = AzureServer(port)
    command = [
        node,
        str(program),
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        str(port),
        "--inMemoryPersistence",
    ]
    command += ["--skipApiVersionCheck", "--silent", "--disableTelemetry"]
    accounts = {"AZURITE_ACCOUNTS": f"{AZURE_ACCOUNT}:{AZURE_KEY}"}
    with _running(command, folder, accounts):
        wait_until(lambda: _answers(server.endpoint), START_TIMEOUT_S, "the emulator answers")
        yield server


@contextmanager
def _running(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A program for the time of a with-block; what it says goes to a file of the folder."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **(environment or {})},
        )
    try:
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_TIMEOUT_S)
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=REQUEST_TIMEOUT_S).close()
    except urllib.error.HTTPError:
        return True  # it wants a signature
    except OSError:
        return False
    return True


def bring_azurite() -> None:
    """Install the emulator into build/, by npm; its scripts are not run. Raises MissingToolError."""
    program = azurite_program()
    home = program.parents[5]
    home.mkdir(parents=True, exist_ok=True)
    npm = shutil.which("npm")
    if npm is None:
        raise MissingToolError("`npm` is not on PATH, and is needed for the emulator of Azure's blobs.")
    with exclusively(home.parent / f"{home.name}.lock"):
        if program.exists():
            return
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", f"azurite@{AZURITE_VERSION}"],
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=NPM_TIMEOUT_S,
        )
    if done.returncode != 0:
        raise MissingToolError(
            f"npm could not bring azurite. It said:\n{(done.stdout + done.stderr)[-2000:]}"
        )


def main() -> int:
    jars_of(
        project_root() / "docker" / "hadoop" / "pom.xml", hadoop_libs(), f"-Dhadoop.version={HADOOP_VERSION}"
    )
    print(f"HDFS: {hadoop_libs()}")
    bring_azurite()
    print(f"Azure: {azurite_program()}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
