"""Apicurio's registry on a file database, behind a login, with Confluent's API."""

from __future__ import annotations

import httpx

from artifacts.unpack import unpacked
from local_stack.component import JVM_FLAGS, Component, plain_environment
from local_stack.process import Launch, ProcessRecord

USER = "lakehouse"


class Registry(Component):
    name = "registry"
    listener = "registry"

    @property
    def address(self) -> str:
        return self.url

    @property
    def url(self) -> str:
        """Of Confluent's API."""
        return f"http://{self.site.address('registry')}/apis/ccompat/v7"

    @property
    def own_url(self) -> str:
        """Of Apicurio's API, which its converter speaks."""
        return f"http://{self.site.address('registry')}/apis/registry/v2"

    @property
    def login(self) -> tuple[str, str]:
        return USER, self.site.secrets.registry

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, auth=self.login, timeout=5, trust_env=False)

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        unpacked("registry")

    def launch(self) -> Launch:
        jar = next(unpacked("registry").glob("apicurio-registry-app-*-runner.jar"))
        host, _, port = self.site.address("registry").partition(":")
        flags = ["-Xms32m", "-Xmx192m", "-XX:TieredStopAtLevel=1", *JVM_FLAGS]
        bind = [f"-Dquarkus.http.host={host}", f"-Dquarkus.http.port={port}"]
        return Launch(
            command=[self.site.java.executable, *flags, *bind, "-jar", str(jar)],
            environment=plain_environment(
                APICURIO_STORAGE_KIND="sql",
                APICURIO_STORAGE_SQL_KIND="h2",
                APICURIO_DATASOURCE_URL=f"jdbc:h2:file:{self.folder}/registry;DB_CLOSE_ON_EXIT=FALSE",
                QUARKUS_HTTP_AUTH_BASIC="true",
                QUARKUS_SECURITY_USERS_EMBEDDED_ENABLED="true",
                QUARKUS_SECURITY_USERS_EMBEDDED_PLAIN_TEXT="true",
                QUARKUS_SECURITY_USERS_EMBEDDED_USERS_LAKEHOUSE=self.site.secrets.registry,
                QUARKUS_SECURITY_USERS_EMBEDDED_ROLES_LAKEHOUSE="sr-admin",
                QUARKUS_HTTP_AUTH_PERMISSION_ALL_PATHS="/apis/*",
                QUARKUS_HTTP_AUTH_PERMISSION_ALL_POLICY="authenticated",
                QUARKUS_LOG_LEVEL="WARN",
                QUARKUS_BANNER_ENABLED="false",
            ),
            folder=self.folder,
        )

    def is_healthy(self, process: ProcessRecord) -> bool:
        """A foreign registry would not know our password."""
        if not process.is_alive:
            return False
        with self.client() as client:
            return client.get("/subjects").status_code == httpx.codes.OK
