"""YAML text as plain data that remembers the line of every value.

Stricter than YAML, because a manifest is written by hand and read by an API server: duplicate keys,
merge keys and keys that are not strings are errors, and dates stay strings. Size, nesting and the
expansion of aliases are bounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_BYTES = 4 * 1024 * 1024
MAX_VALUES = 200_000

Loc = tuple[str | int, ...]

_SCALAR_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str")}


@dataclass(eq=False)
class YamlError(Exception):
    """The text is not YAML, or not YAML that can be read here."""

    line: int
    message: str
    loc: Loc = ()


@dataclass
class Document:
    """One YAML document."""

    data: Any = None
    lines: dict[Loc, int] = field(default_factory=dict)
    errors: list[YamlError] = field(default_factory=list)
    """Problems that leave `data` readable, such as a duplicate key."""

    def line(self, loc: Loc) -> int:
        """1-based line of the value at `loc`, or of the nearest thing around it."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return self.lines.get(loc, 1)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, without dates."""

    yaml_implicit_resolvers = {
        first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_yaml(text: str) -> list[Document]:
    """Read all documents of `text`; empty ones are left out.

    Raises:
        YamlError: The text cannot be parsed, or is beyond the limits.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        msg = (
            f"must be at most {MAX_BYTES // 1024**2} MiB; keep tasks in a JSONL file and name it "
            "in `spec.tasks.uri`"
        )
        raise YamlError(1, msg)
    try:
        return list(_documents(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise YamlError(line, f"not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise YamlError(1, f"not valid YAML: {str(error).splitlines()[0]}") from error


def _documents(text: str) -> Iterator[Document]:
    loader = _Loader(text)
    try:
        reader = _Reader(loader)
        while loader.check_node():
            document = Document()
            document.data = reader.read(loader.get_node(), (), document)
            if document.data is not None:
                yield document
    finally:
        loader.dispose()


class _Reader:
    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._values = 0
        self._open: set[int] = set()

    def read(self, node: yaml.Node, loc: Loc, document: Document) -> Any:
        line = node.start_mark.line + 1
        document.lines.setdefault(loc, line)
        self._values += 1
        if self._values > MAX_VALUES:
            raise YamlError(line, f"must have at most {MAX_VALUES} values, aliases expanded")
        if id(node) in self._open:
            raise YamlError(line, "must not contain itself through an alias")
        self._open.add(id(node))
        try:
            return self._construct(node, loc, document)
        finally:
            self._open.remove(id(node))

    def _construct(self, node: yaml.Node, loc: Loc, document: Document) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, loc, document)
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [self.read(item, (*loc, index), document) for index, item in items]
        if node.tag not in _SCALAR_TAGS:
            raise YamlError(node.start_mark.line + 1, f"must not use the tag {node.tag}", loc)
        return self._loader.construct_object(node)

    def _mapping(self, node: yaml.MappingNode, loc: Loc, document: Document) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._key(key_node, loc)
            here = (*loc, key)
            if key in result:
                message = f"must be set once; it is also on line {document.lines[here]}"
                document.errors.append(YamlError(line, message, here))
                continue
            document.lines[here] = line
            result[key] = self.read(value_node, here, document)
        return result

    def _key(self, node: yaml.Node, loc: Loc) -> str:
        line = node.start_mark.line + 1
        if node.tag == "tag:yaml.org,2002:merge":
            raise YamlError(line, "merge keys (`<<`) are not supported; write the fields out", loc)
        if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:str":
            text = node.value if isinstance(node, yaml.ScalarNode) else "a list or mapping"
            raise YamlError(line, f"a key must be a string, got {text}; put it in quotes", loc)
        return str(node.value)
