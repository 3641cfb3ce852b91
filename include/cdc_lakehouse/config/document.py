"""A YAML file as plain values that remember the line they stand on."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import yaml

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that a person has to correct, and where."""

    line: int | None
    table: str | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Document:
    """What the file says, `lines` by path of keys, and what is wrong with its YAML."""

    content: object
    lines: Mapping[KeyPath, int]
    problems: tuple[Problem, ...]

    def line_of(self, path: KeyPath) -> int | None:
        """The line of the path, or of the nearest thing around it that the file has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


class _PlainLoader(yaml.SafeLoader):
    """YAML as people expect it: times, `no`, `on` and `12:30` stay text, numbers are numbers."""


_PlainLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"(?:~|null|)", ["~", "n", ""]),
    ("bool", r"(?:true|false)", list("tf")),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*)", list("-+0123456789")),
    ("float", r"[-+]?[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?", list("-+0123456789")),
):
    _PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^{_pattern}$"), _first)


def parse_document(text: str) -> Document:
    """Never raises for what a person wrote: what is wrong comes back as `problems`."""
    try:
        loader = _PlainLoader(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = ", ".join(part for part in (error.context, error.problem) if part)
        return Document(
            None, {}, (Problem(mark.line + 1 if mark else None, None, f"this is not YAML: {why}"),)
        )
    except yaml.YAMLError as error:
        return Document(None, {}, (Problem(None, None, f"this is not YAML: {error}"),))
    if node is None:
        return Document(None, {}, (Problem(None, None, "the file is empty"),))
    walk = _Walk(loader)
    content = walk.value(node, ())
    return Document(content, walk.lines, tuple(walk.problems))


class _Walk:
    """One pass over the nodes of a file."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._open: set[int] = set()
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []

    def value(self, node: yaml.Node, path: KeyPath) -> object:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if id(node) in self._open:
            self._problem(node, "an alias may not point to something that contains it")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._scalar(node)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node)
            if not isinstance(key, str):
                self._problem(key_node, f"the key {key!r} is not text; put it in quotes if it is meant")
                continue
            if key in found:
                first = self.lines[(*path, key)]
                self._problem(key_node, f"the key `{key}` is written twice, first on line {first}")
                continue
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            found[key] = self.value(value_node, (*path, key))
        return found

    def _scalar(self, node: yaml.Node) -> Hashable:
        if not isinstance(node, yaml.ScalarNode):
            return "a list or a mapping"
        try:
            value: Hashable = self._loader.construct_object(node)
        except yaml.YAMLError:
            self._problem(node, f"the YAML tag {node.tag} is not read here")
            return str(node.value)
        return value

    def _problem(self, node: yaml.Node, sentence: str) -> None:
        self.problems.append(Problem(node.start_mark.line + 1, None, sentence))
