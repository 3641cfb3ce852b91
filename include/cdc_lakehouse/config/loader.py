"""Pipeline files: found by name, read whole, refused with every problem at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from cdc_lakehouse.config.document import Document, Problem, parse_document
from cdc_lakehouse.config.models import Pipeline
from cdc_lakehouse.config.problems import duplicate_problems, problems_of
from cdc_lakehouse.config.settings import pipelines_folder
from cdc_lakehouse.config.values import NAME_PATTERN
from cdc_lakehouse.errors import InvalidPipelineError


def pipeline_files(folder: Path | None = None) -> tuple[Path, ...]:
    """Every `*.yaml` of the folder, by name; the folder's files are read by nobody else."""
    return tuple(sorted((folder if folder is not None else pipelines_folder()).glob("*.yaml")))


def find_pipeline(name: str, folder: Path | None = None) -> Pipeline:
    """The pipeline of that name in `folder` (by default: `settings.pipelines_folder`)."""
    home = folder if folder is not None else pipelines_folder()
    path = home / f"{name}.yaml"
    if re.fullmatch(NAME_PATTERN, name) and path.is_file():
        return load_pipeline(path)
    raise InvalidPipelineError(file=str(path), where="", problem=_why_not_found(name, home))


def load_pipeline(path: Path) -> Pipeline:
    """Read and check one file; `InvalidPipelineError` names everything that is wrong with it."""
    document = parse_document(_text_of(path))
    problems = list(document.problems)
    pipeline = None
    if isinstance(document.content, dict):
        problems += duplicate_problems(document)
        problems += _name_problems(document, path)
        try:
            pipeline = Pipeline.model_validate(document.content)
        except ValidationError as error:
            problems += problems_of(document, error)
    elif not problems:
        problems.append(
            Problem(1, None, "the file must hold keys like `name:` and `tables:`, not a list or a value")
        )
    if problems or pipeline is None:
        raise _refusal(path, problems)
    return pipeline


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        problem = f"the file cannot be read: {error.strerror}"
        raise InvalidPipelineError(file=str(path), where="", problem=problem) from error
    except UnicodeDecodeError as error:
        problem = f"the file is not UTF-8 text (byte {error.start})"
        raise InvalidPipelineError(file=str(path), where="", problem=problem) from error


def _name_problems(document: Document, path: Path) -> list[Problem]:
    name = document.content.get("name") if isinstance(document.content, dict) else None
    if not isinstance(name, str) or name == path.stem:
        return []
    sentence = f"`name: {name}` does not match the file, which is called {path.name}; make them the same"
    return [Problem(document.line_of(("name",)), None, sentence)]


def _why_not_found(name: str, home: Path) -> str:
    if (home / f"{name}.yml").is_file():
        return f"rename {name}.yml to {name}.yaml"
    known = [path.stem for path in pipeline_files(home)]
    close = get_close_matches(name, known, n=1)
    if close:
        return f"there is no such file; did you mean `{close[0]}`?"
    return f"there is no such file; pipelines here: {', '.join(known) or 'none'}"


def _refusal(path: Path, problems: Sequence[Problem]) -> InvalidPipelineError:
    found = sorted(problems, key=lambda problem: problem.line or 0)
    if len(found) == 1:
        line, table = found[0].line, found[0].table
        where = (f":{line}" if line is not None else "") + (f", table {table}" if table is not None else "")
        return InvalidPipelineError(file=str(path), where=where, problem=found[0].sentence)
    listed = "".join(f"\n  {_as_line(problem)}" for problem in found)
    return InvalidPipelineError(file=str(path), where="", problem=f"{len(found)} problems{listed}")


def _as_line(problem: Problem) -> str:
    line = f"line {problem.line}" if problem.line is not None else "somewhere"
    table = f", table {problem.table}" if problem.table is not None else ""
    return f"{line}{table}: {problem.sentence}"
