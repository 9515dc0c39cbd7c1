"""Settings of object stores: how they are reached, as whom, and how long an answer may take.

What is not set here is taken from the environment by the names that each provider's own tools use, or from the
machine's identity in the cloud.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, model_validator

from processor.settings.section import Section
from processor.settings.units import Duration, at_least_ms

RETRIES_LIMIT = 100

_ENDPOINT = r"https?://[^/?#@,\s]+"
_ENDPOINTS = rf"^{_ENDPOINT}(,{_ENDPOINT})*$"
_ADDRESS = r"^https?://[^/?#@\s]+(/[^?#@\s]*)?$"
_BOTH = "{} and {} go together: set both or none"


class S3Settings(Section):
    """S3, and stores that speak its protocol."""

    endpoint: str | None = Field(
        default=None,
        pattern=_ADDRESS,
        description="Address of the server; by default Amazon's of the region. Without it AWS_ENDPOINT_URL counts.",
    )
    region: str | None = Field(
        default=None, description="Of the bucket; by default AWS_REGION, else us-east-1."
    )
    access_key_id: str | None = Field(
        default=None,
        description="By default AWS_ACCESS_KEY_ID, else the identity of the machine, container or web token. "
        "Profile files of the home directory are not read.",
    )
    secret_access_key: SecretStr | None = Field(default=None, description="Of the access key.")
    session_token: SecretStr | None = Field(default=None, description="With keys that are lent for a time.")
    virtual_hosted: bool = Field(
        default=False, description="Whether the bucket is part of the host's name instead of the path."
    )

    @model_validator(mode="after")
    def _consistent(self) -> S3Settings:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise ValueError(_BOTH.format("access_key_id", "secret_access_key"))
        if self.session_token is not None and self.access_key_id is None:
            raise ValueError("session_token needs access_key_id and secret_access_key")
        return self


class GsSettings(Section):
    """Google Cloud Storage."""

    service_account_file: Path | None = Field(
        default=None,
        description="Key file (JSON) of a service account; by default GOOGLE_APPLICATION_CREDENTIALS, else the "
        "identity of the machine.",
    )


class AzSettings(Section):
    """Azure Blob Storage."""

    endpoint: str | None = Field(
        default=None,
        pattern=_ADDRESS,
        description="Address of the account's blobs; by default Azure's own.",
    )
    account: str | None = Field(default=None, description="By default AZURE_STORAGE_ACCOUNT_NAME.")
    account_key: SecretStr | None = Field(
        default=None,
        description="By default AZURE_STORAGE_ACCOUNT_KEY, else a client's secret or token from the environment, "
        "else the identity of the machine.",
    )
    sas_token: SecretStr | None = Field(
        default=None, description="A shared access signature, instead of a key."
    )

    @model_validator(mode="after")
    def _consistent(self) -> AzSettings:
        if self.account_key is not None and self.sas_token is not None:
            raise ValueError("account_key and sas_token are both set: keep one")
        if self.account is None and (self.account_key is not None or self.sas_token is not None):
            raise ValueError("account_key and sas_token need account")
        return self


class HdfsSettings(Section):
    """HDFS, by the HTTP interface of its NameNodes (WebHDFS) or of a gateway (HttpFS)."""

    endpoints: str | None = Field(
        default=None,
        pattern=_ENDPOINTS,
        description="Addresses of the HTTP servers, with commas between them; asked in turn until one answers. By "
        "default http://NAME:9870 of the location hdfs://NAME/PATH.",
    )
    user: str | None = Field(
        default=None,
        description="Whom to be, where HDFS believes it (simple authentication); by default whom the server takes "
        "its visitors for.",
    )
    delegation_token: SecretStr | None = Field(
        default=None, description="Instead of a user, where Kerberos is asked for; it is renewed elsewhere."
    )
    kerberos: bool = Field(
        default=False,
        description="Say by Kerberos who asks, with the tickets of keytab or, by default, those of the machine's "
        "ticket cache (KRB5CCNAME), which somebody else renews. Needs the extra kerberos.",
    )
    keytab: Path | None = Field(
        default=None, description="A file of keys for Kerberos: tickets are fetched and renewed with it."
    )
    principal: str | None = Field(
        default=None,
        min_length=1,
        description="Whom to be for Kerberos; by default the first of the keytab or of the ticket cache.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> HdfsSettings:
        if self.user is not None and self.delegation_token is not None:
            raise ValueError("user and delegation_token are both set: keep one")
        if self.kerberos and (self.user is not None or self.delegation_token is not None):
            raise ValueError("kerberos says who asks: leave out user and delegation_token")
        if not self.kerberos and (self.keytab is not None or self.principal is not None):
            raise ValueError("keytab and principal are for kerberos: set that, too")
        return self


class StoreSettings(Section):
    """How stores are reached that checkpoint.directory or checkpoint.log_directory names by a URI."""

    s3: S3Settings = Field(default_factory=S3Settings, description="For s3: locations.")
    gs: GsSettings = Field(default_factory=GsSettings, description="For gs: locations.")
    az: AzSettings = Field(default_factory=AzSettings, description="For az: locations.")
    hdfs: HdfsSettings = Field(default_factory=HdfsSettings, description="For hdfs: locations.")
    connect_timeout: Annotated[Duration, at_least_ms(100)] = Field(
        default=5_000, description="How long a connection may take."
    )
    request_timeout: Annotated[Duration, at_least_ms(1_000)] = Field(
        default=30_000,
        description="How long one request may take, with its content: 8 MiB at most of a file, all of an entry of "
        "the log.",
    )
    retries_max: int = Field(
        default=5,
        ge=0,
        le=RETRIES_LIMIT,
        description="How often a request is repeated that was not answered, or answered with an error of the "
        "server. Then what asked for it fails: a checkpoint is given up, a decision asked for again.",
    )
    retry_timeout: Annotated[Duration, at_least_ms(100)] = Field(
        default=60_000, description="Since the first try; after this no request is repeated."
    )
