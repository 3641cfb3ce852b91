"""The pages of Airflow that a person on call uses, by what stands on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Locator, Page

SCREENS = Path(__file__).parents[2] / ".local/browser/screens"
"""Folder of the screenshots. Those of the documents are copies of them."""
PATIENCE = 300_000.0
"""Milliseconds that a page may take on a busy machine."""


@dataclass(frozen=True)
class AirflowPages:
    page: Page
    url: str

    def log_in(self, user: str) -> None:
        """Log in with the form; the password is the user's name."""
        self.page.set_default_timeout(PATIENCE)
        self.page.goto(self.url)
        self.page.locator("input[name=username]").fill(user)
        self.page.locator("input[name=password]").fill(user)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(lambda url: "/login" not in url)

    def open_trigger_form(self, dag_id: str) -> None:
        self.page.goto(f"{self.url}/dags/{dag_id}")
        self.page.get_by_test_id("trigger-dag-button").click()
        self.field("note").wait_for()

    def field(self, name: str) -> Locator:
        return self.page.locator(f"#element_{name}")

    def fill(self, **values: str) -> None:
        """Type into fields of a form; what is typed into a list is left with the keyboard, as people do."""
        for name, value in values.items():
            self.field(name).fill(value)
            self.field(name).blur()

    def choose(self, name: str, label: str) -> None:
        self.field(name).click()
        self.page.get_by_role("option", name=label, exact=True).click()

    def switch(self, name: str) -> None:
        self.page.locator(f"[id='switch:element_{name}']").click()

    def required_fields(self) -> list[str]:
        """Return the names of the fields that the open form marks with an asterisk."""
        labels = self.page.get_by_role("dialog").locator("label[data-required]")
        return [text.split()[0] for text in labels.all_inner_texts()]

    def shown(self, name: str) -> str:
        """Return what a field of the form shows as its value."""
        return str(self.field(name).inner_text()).strip()

    def trigger(self) -> dict[str, Any]:
        """Press the button of the open form, and return the new run as Airflow describes it."""
        with self.page.expect_response(
            lambda answer: answer.request.method == "POST" and answer.url.endswith("/dagRuns")
        ) as answer:
            self.page.get_by_test_id("trigger-dag-submit").click()
        run: dict[str, Any] = answer.value.json()
        return run

    def open_approval(self, dag_id: str, run_id: str) -> None:
        """Go from the page of a run to what it requires, and from there to the task that asks."""
        self.page.goto(self._run(dag_id, run_id))
        self.page.get_by_text("Required Actions", exact=True).click()
        self.page.get_by_role("dialog").get_by_role("link", name="approve", exact=True).last.click()
        self.page.wait_for_url("**/required_actions")
        # The list of actions, which lies above the page, has the same button while the page still loads.
        page = self.page.locator("#root")
        page.get_by_test_id("hitl-option-Approve").wait_for()
        page.get_by_text("To approve, type").wait_for()

    def read(self) -> str:
        return str(self.page.locator("#root").inner_text())

    def approve(self) -> int:
        """Press *Approve*, and return the status of Airflow's answer."""
        with self.page.expect_response(lambda answer: answer.request.method == "PATCH") as answer:
            self.page.get_by_test_id("hitl-option-Approve").click()
        return int(answer.value.status)

    def open_xcom(self, dag_id: str, run_id: str, task_id: str) -> None:
        self.page.goto(f"{self._run(dag_id, run_id)}/tasks/{task_id}/xcom")
        self.page.get_by_role("row").filter(has_text="report").get_by_text("#").first.wait_for()

    def photograph(self, name: str, *, top: Locator | None = None, bottom: Locator | None = None) -> None:
        """Keep what the screen shows, with `top` at its upper edge, or `bottom` at its lower one."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        for element, edge in ((top, "start"), (bottom, "end")):
            if element is not None:
                element.evaluate("(element, edge) => element.scrollIntoView({block: edge})", edge)
        self.page.evaluate("() => document.fonts.ready.then(() => true)")
        self.page.screenshot(path=SCREENS / f"{name}.png", animations="disabled", caret="hide")

    def _run(self, dag_id: str, run_id: str) -> str:
        return f"{self.url}/dags/{dag_id}/runs/{quote(run_id, safe='')}"
