"""From a location and the settings to a bucket, or a folder of HDFS, one can ask."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from pydantic import SecretStr

from processor.errors import SettingsError
from processor.invariant import invariant
from processor.settings.location import Location, Scheme
from processor.settings.stores import StoreSettings
from processor.storage.hadoop_objects import HadoopObjects
from processor.storage.negotiate import Negotiator
from processor.storage.object_store import BucketObjects
from processor.storage.objects import Objects
from processor.storage.webhdfs import Access, WebHdfs

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

NAMENODE_PORT = 9_870
"""Of its HTTP server."""

BACKOFF_FIRST_MS = 100
BACKOFF_MAX_MS = 5_000
"""Wait between two tries of a request: doubled from the first to the largest, with chance."""


def open_bucket(location: Location, settings: StoreSettings) -> Objects:
    """The objects below a location. Asks nobody yet. Raises SettingsError."""
    invariant(location.scheme is not Scheme.FILE, "a directory is no bucket")
    if location.scheme is Scheme.HDFS:
        return _hdfs(location, settings)
    try:
        store = _store(location, settings)
    except Exception as error:
        # Not chained, and only its kind: the library's text may quote what it was given.
        raise SettingsError(
            f"'{location}' cannot be opened: its settings are refused ({type(error).__name__}).",
            remedy=f"Check stores.{location.scheme} and the provider's environment variables.",
        ) from None
    return BucketObjects(store, str(location), f"{location.path}/" if location.path else "")


def _store(location: Location, settings: StoreSettings) -> ObjectStore:
    from obstore.store import AzureStore, GCSStore, S3Store

    client, retries = _client(settings), _retries(settings)
    match location.scheme:
        case Scheme.S3:
            s3 = settings.s3
            if s3.endpoint is not None and s3.endpoint.startswith("http:"):
                client["allow_http"] = True
            config = _given(
                endpoint=s3.endpoint,
                region=s3.region,
                access_key_id=s3.access_key_id,
                secret_access_key=s3.secret_access_key,
                session_token=s3.session_token,
            )
            return S3Store(
                location.bucket,
                client_options=client,
                retry_config=retries,
                virtual_hosted_style_request=s3.virtual_hosted,
                conditional_put="etag",
                **config,  # type: ignore[arg-type]
            )
        case Scheme.GS:
            file = settings.gs.service_account_file
            config = _given(service_account=None if file is None else str(file))
            return GCSStore(location.bucket, client_options=client, retry_config=retries, **config)  # type: ignore[arg-type]
        case Scheme.AZ:
            az = settings.az
            if az.endpoint is not None and az.endpoint.startswith("http:"):
                client["allow_http"] = True
            config = _given(
                endpoint=az.endpoint,
                account_name=az.account,
                account_key=az.account_key,
                sas_key=az.sas_token,
            )
            return AzureStore(location.bucket, client_options=client, retry_config=retries, **config)  # type: ignore[arg-type]
        case Scheme.FILE | Scheme.HDFS:
            raise AssertionError("looked at above")
        case _:
            assert_never(location.scheme)


def _hdfs(location: Location, settings: StoreSettings) -> Objects:
    hdfs = settings.hdfs
    identity = {}
    if hdfs.delegation_token is not None:
        identity = {"delegation": hdfs.delegation_token.get_secret_value()}
    elif hdfs.user is not None:
        identity = {"user.name": hdfs.user}
    access = Access(
        endpoints=(hdfs.endpoints or f"http://{location.bucket}:{NAMENODE_PORT}").split(","),
        identity=identity,
        connect_timeout_s=settings.connect_timeout / 1_000,
        request_timeout_s=settings.request_timeout / 1_000,
        retries_max=settings.retries_max,
        retry_timeout_s=settings.retry_timeout / 1_000,
    )
    if hdfs.kerberos:
        by_kerberos = Negotiator(principal=hdfs.principal, keytab=hdfs.keytab)
        access = replace(access, authorization=by_kerberos.authorization)
    return HadoopObjects(WebHdfs(access), str(location), f"/{location.path}" if location.path else "")


def _client(settings: StoreSettings) -> ClientConfig:
    return {
        "connect_timeout": timedelta(milliseconds=settings.connect_timeout),
        "timeout": timedelta(milliseconds=settings.request_timeout),
    }


def _retries(settings: StoreSettings) -> RetryConfig:
    return {
        "max_retries": settings.retries_max,
        "retry_timeout": timedelta(milliseconds=settings.retry_timeout),
        "backoff": {
            "init_backoff": timedelta(milliseconds=BACKOFF_FIRST_MS),
            "max_backoff": timedelta(milliseconds=BACKOFF_MAX_MS),
            "base": 2,
        },
    }


def _given(**values: str | SecretStr | None) -> dict[str, str]:
    """What is set; the rest is left to the environment."""
    return {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value
        for name, value in values.items()
        if value is not None
    }
