"""Which classes commit to a table's log (decision 0013), and a refusal to work without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cdc_lakehouse.errors import UnsafeStoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_STORES = {
    "spark.delta.logStore.file.impl": "cdclakehouse.ExclusiveLinkLogStore",
    "spark.delta.logStore.s3a.impl": "cdclakehouse.ConditionalPutLogStore",
}
_FOR_ALL = "spark.delta.logStore.class"
"""Delta prefers it to those of a scheme."""
_NEEDS = {"s3a": ("org.apache.hadoop.fs.s3a.S3AFileSystem", "software.amazon.awssdk.services.s3.S3Client")}


def require_log_store(session: SparkSession, *, root: str) -> None:
    """The engine may have been started by somebody else, with other settings and without our jar."""
    scheme = urlsplit(root).scheme
    from py4j.protocol import Py4JJavaError  # as in session.py: the module is read before there is a JVM

    settings = session.sparkContext.getConf()
    wanted = LOG_STORES[f"spark.delta.logStore.{scheme}.impl"]
    if settings.contains(_FOR_ALL) or settings.get(f"spark.delta.logStore.{scheme}.impl") != wanted:
        raise UnsafeStoreError(root=root, reason=f"Spark was started without {wanted} as its log store")
    java: Any = session.sparkContext._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    for name in (wanted, *_NEEDS.get(scheme, ())):
        try:
            loader.loadClass(name)
        except Py4JJavaError as exc:
            raise UnsafeStoreError(root=root, reason=f"Spark finds no class {name}") from exc
