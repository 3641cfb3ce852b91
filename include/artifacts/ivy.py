"""One run of Apache Ivy, which lies in pyspark's `jars/`: it fetches exact files and resolves nothing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import quoteattr

from artifacts.errors import ArtifactsError, CancelledDownloadError, DownloadError
from artifacts.java import Java
from artifacts.lock import Artifact

ENV_ROOT = "CDC_LAKEHOUSE_MAVEN_ROOT"
_REASONS = (
    ("No space left on device", "the disk is full"),
    ("UnknownHostException", "the repository's host is not known here (no network?)"),
    ("ConnectException", "the repository does not answer (no network, or a proxy is needed)"),
    ("NoRouteToHost", "the repository cannot be reached (no network?)"),
    ("SocketTimeout", "the repository took too long"),
    ("SSLHandshake", "the repository's certificate is not trusted by this Java"),
    ("timed out", "the repository took too long"),
    ("UNRESOLVED", "the repository does not have them, or cannot be reached from here"),
)


def pyspark_jars() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ArtifactsError("pyspark is not installed in this Python; install requirements.lock first")
    return Path(spec.origin).parent / "jars"


def download(artifacts: Iterable[Artifact], *, scratch: Path, java: Java, cancel: threading.Event) -> Path:
    """Fetch into `scratch` and return the folder with the files; the caller checks their hashes."""
    wanted = tuple(artifacts)
    scratch.mkdir(parents=True)
    (scratch / "settings.xml").write_text(settings_xml(os.environ.get(ENV_ROOT)))
    (scratch / "ivy.xml").write_text(module_xml(wanted))
    with (scratch / "ivy.log").open("wb") as log:
        process = subprocess.Popen(_command(scratch, java), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            code = _wait(process, cancel)
        finally:
            process.kill()
            process.wait()
    if code != 0:
        raise DownloadError(wanted[0].group, why((scratch / "ivy.log").read_text(errors="replace")))
    return scratch / "files"


def _wait(process: subprocess.Popen[bytes], cancel: threading.Event) -> int:
    while not cancel.is_set():
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=0.2)
    raise CancelledDownloadError


def _command(scratch: Path, java: Java) -> list[str]:
    ivy = next(pyspark_jars().glob("ivy-*.jar"))
    flags = [
        "-Xshare:auto",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xmx256m",
        "-Djava.net.preferIPv4Stack=true",
    ]
    pattern = scratch / "files" / "[artifact]-[revision](-[classifier]).[ext]"
    return [
        *(java.executable, *flags, f"-Divy.cache.dir={scratch / 'ivy'}", "-jar", str(ivy)),
        *("-settings", str(scratch / "settings.xml"), "-ivy", str(scratch / "ivy.xml")),
        *("-cache", str(scratch / "ivy"), "-retrieve", str(pattern)),
    ]


def settings_xml(root: str | None) -> str:
    """Without a root of its own, Ivy's resolver knows where the public repository is."""
    own_root = f" root={quoteattr(root.rstrip('/') + '/')}" if root else ""
    resolver = (
        f'<ibiblio name="central" m2compatible="true" usepoms="false" useMavenMetadata="false"{own_root}/>'
    )
    return (
        f'<ivysettings><settings defaultResolver="central"/><resolvers>{resolver}</resolvers></ivysettings>\n'
    )


def module_xml(artifacts: Iterable[Artifact]) -> str:
    """A module that depends on each file by itself, never on what its pom names."""
    dependencies = "\n".join(_dependency(artifact) for artifact in artifacts)
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '<info organisation="local" module="artifacts"/>\n'
        '<configurations><conf name="default"/></configurations>\n'
        f"<dependencies>\n{dependencies}\n</dependencies>\n</ivy-module>\n"
    )


def _dependency(artifact: Artifact) -> str:
    classifier = f" m:classifier={quoteattr(artifact.classifier)}" if artifact.classifier else ""
    name, extension = quoteattr(artifact.name), quoteattr(artifact.extension)
    where = f"org={quoteattr(artifact.organisation)} name={name} rev={quoteattr(artifact.version)}"
    kind = f"type={extension} ext={extension}{classifier}"
    return (
        f'<dependency {where} conf="default->default" transitive="false" force="true">'
        f"<artifact name={name} {kind}/></dependency>"
    )


def why(log: str) -> str:
    """Ivy's log is long and names hosts; this is its meaning."""
    folded = log.casefold()
    for sign, reason in _REASONS:
        if sign.casefold() in folded:
            return reason
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else "Ivy ended without a word"
