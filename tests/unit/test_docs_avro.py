"""The example of `include/docs/avro.md` prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "include" / "docs" / "avro.md"


def test_the_example_prints_what_the_page_says():
    code, printed = re.findall(r"```(?:python)?\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})  # noqa: S102 - the example is ours
    assert out.getvalue() == printed
