"""`python -m cdc_lakehouse.preflight NAME`: one line per check; 0, 65, 75 or 78."""

from __future__ import annotations

import typer

from cdc_lakehouse.preflight.checks import check_pipeline
from cdc_lakehouse.preflight.findings import exit_code_of, verdict

app = typer.Typer(add_completion=False)


@app.command()
def check(name: str) -> None:
    """Try the pipeline NAME and every connection it needs; nothing is written."""
    findings = []
    for finding in check_pipeline(name):
        findings.append(finding)
        typer.echo("\n".join(finding.lines()))
    typer.echo(verdict(name, findings))
    raise typer.Exit(exit_code_of(findings))


if __name__ == "__main__":
    app()
