#!/usr/bin/env python3
"""generate_documents.py [--check]: writes memtrace/documents/*.py, the dataclasses of the JSON
documents, from docs/schema/*.json. With --check, writes nothing, and exits with 1 if a file is not
what the schemas demand.

A class has the keys of an object as fields, the required ones first. An object whose keys are not
names in Python (roles, parts of a device) becomes a mapping. Several kinds of one object (anyOf)
become one class: a key that only some kinds have may be None."""
import json
import keyword
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "docs" / "schema"
FOLDER = ROOT / "python" / "memtrace" / "documents"
NAMES = ["analyze", "live", "lines", "diff", "estimate-diff", "fit", "tune", "info", "oom", "dry-run"]
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
COLUMNS = 100


def camel(text):
    return "".join(word.capitalize() for word in text.replace("-", "_").split("_"))


def singular(text):
    if text.endswith("ies"):
        return text[:-3] + "y"
    return text[:-1] if text.endswith("s") and not text.endswith("ss") else text


def module_of(name):
    return name.replace("-", "_")


def merged(kinds):
    """One object with the properties of all of them; required: those that all require."""
    properties = {}
    for kind in kinds:
        for key, value in kind["properties"].items():
            if key in properties and properties[key] != value:
                value = {"anyOf": [properties[key], value]}
            properties[key] = value
    required = [key for key in kinds[0]["required"] if all(key in k["required"] for k in kinds)]
    return {"type": "object", "properties": properties, "required": required}


class Module:
    """The classes of one schema. `others`: modules of the schemas that it refers to."""

    def __init__(self, name, others):
        self.name = name
        self.schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
        self.others = others
        self.classes = {}  # name -> lines, in order
        self.kinds = {}  # key of $defs -> its type and builder
        self.imported = set()
        self.helpers = set()

    def resolve(self, reference):
        file, path = reference.split("#")
        owner = self.others[file[:-len(".json")]] if file else self
        return owner, path.rsplit("/", 1)[1]

    def of_reference(self, reference):
        owner, key = self.resolve(reference)
        kind = owner.of_definition(key)
        if owner is self:
            return kind
        for name in set(re.findall(r"\w+", kind[0])) & owner.classes.keys():
            if name in self.classes:
                raise SystemExit(f"{self.name}: {name} is also a class of {owner.name}")
            self.imported.add((module_of(owner.name), name))
        return kind

    def of_definition(self, key):
        if key not in self.kinds:
            self.kinds[key] = self.type_of(self.schema["$defs"][key], key, "", key)
        return self.kinds[key]

    def of_object(self, node, hint, parent, definition):
        properties = node.get("properties", {})
        if not properties or not all(key.isidentifier() for key in properties):
            kinds = {self.type_of(value, key, hint, None)[0] for key, value in properties.items()}
            return f"Mapping[str, {kinds.pop() if len(kinds) == 1 else 'Any'}]", None
        name = camel(hint)
        taken = self.classes.keys() | {name for _, name in self.imported}
        if name in taken or (not definition and name in self.reserved()):
            name = f"{parent}{name}"
        if name in self.classes:
            raise SystemExit(f"{self.name}: two classes are called {name}")
        self.classes[name] = []  # taken
        lines = self.class_lines(name, node)
        del self.classes[name]
        self.classes[name] = lines  # after the classes that it uses
        return name, name

    def reserved(self):
        return {camel(key) for key, node in self.schema.get("$defs", {}).items()
                if node.get("type") == "object"}

    def type_of(self, node, hint, parent, definition=None):
        """The type of a value, and the class that builds it (None: the value is taken as it is; a
        tuple ("many" or "maybe", inner): around another one)."""
        if "$ref" in node:
            return self.of_reference(node["$ref"])
        if "const" in node:
            return type(node["const"]).__name__, None
        if "enum" in node:
            plain = {type(value).__name__ for value in node["enum"] if value is not None}
            if not plain:
                return "None", None
            return self.maybe_none(" | ".join(sorted(plain)), None, None in node["enum"])
        if "anyOf" in node:
            kinds = [kind for kind in node["anyOf"] if kind != {"type": "null"}]
            nullable = len(kinds) < len(node["anyOf"])
            if len(kinds) > 1 and not all("properties" in kind for kind in kinds):
                plain = {self.type_of(kind, hint, parent)[0] for kind in kinds}
                return self.maybe_none(" | ".join(sorted(plain)), None, nullable)
            one = kinds[0] if len(kinds) == 1 else merged(kinds)
            inner, builder = self.type_of(one, hint, parent, definition)
            return self.maybe_none(inner, builder, nullable)
        types = node["type"] if isinstance(node["type"], list) else [node["type"]]
        nullable = "null" in types
        types = [kind for kind in types if kind != "null"]
        if not types:
            return "None", None
        if types == ["object"]:
            inner, builder = self.of_object(node, hint, parent, definition)
        elif types == ["array"]:
            element, builder = self.type_of(node["items"], singular(hint), parent)
            inner, builder = f"tuple[{element}, ...]", ("many", builder)
        else:
            inner, builder = " | ".join(SIMPLE[kind] for kind in types), None
        return self.maybe_none(inner, builder, nullable)

    @staticmethod
    def maybe_none(inner, builder, nullable):
        if not nullable:
            return inner, builder
        return f"{inner} | None", ("maybe", builder) if builder else None

    def build(self, builder, value):
        """The expression that makes the value of a field from the JSON value."""
        if builder is None:
            return value
        if isinstance(builder, str):
            return f"{builder}.from_json({value})"
        functions = []
        while isinstance(builder, tuple):
            functions.append(builder[0])
            builder = builder[1]
        made = f"{builder}.from_json" if builder else "same"
        if functions not in (["many"], ["maybe"], ["maybe", "many"]):
            raise SystemExit(f"{self.name}: cannot build {functions} of {made}")
        name = "_".join(functions)
        self.helpers.update([name] if builder else [name, "same"])
        return f"{name}({made}, {value})"

    def class_lines(self, name, node):
        required = node.get("required", [])
        keys = sorted(node["properties"], key=lambda key: key not in required)
        fields, arguments = [], []
        for key in keys:
            kind, builder = self.type_of(node["properties"][key], key, name)
            field = key + "_" if keyword.iskeyword(key) else key
            if field == "raw":
                raise SystemExit("a key is called 'raw'")
            if key in required:
                fields.append(f"    {field}: {kind}")
                arguments.append((field, self.build(builder, f'data["{key}"]')))
                continue
            if not kind.endswith("| None"):
                kind, builder = self.maybe_none(kind, builder, True)
            fields.append(f"    {field}: {kind} = None")
            arguments.append((field, self.build(builder, f'data.get("{key}")')))
        fields.append("    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)")
        lines = ["@dataclass(frozen=True)", f"class {name}(Document):"] + fields
        lines += ["", "    @classmethod", f"    def from_json(cls, data: Mapping[str, Any]) -> {name}:",
                  "        return cls("]
        for field, value in arguments:
            lines += argument_lines(field, value)
        return lines + ["            raw=data,", "        )"]

    def make(self):
        for key in self.schema.get("$defs", {}):
            self.of_definition(key)
        if "properties" in self.schema:
            self.type_of(self.schema, self.name, "")

    def text(self):
        title = self.schema["title"]
        lines = [f'"""{title}', "", f"Generated by generate_documents.py from docs/schema/{self.name}.json.", '"""', "from __future__ import annotations", "",
                 "from collections.abc import Mapping", "from dataclasses import dataclass, field",
                 "from typing import Any", ""]
        lines += import_lines("base", ["Document"] + sorted(self.helpers))
        for module in sorted({module for module, _ in self.imported}):
            names = sorted(name for owner, name in self.imported if owner == module)
            lines += import_lines(module, names)
        for body in self.classes.values():
            lines += ["", ""] + body
        return "\n".join(lines) + "\n"


def argument_lines(field, value):
    line = f"            {field}={value},"
    if len(line) <= COLUMNS:
        return [line]
    head, rest = value.split("(", 1)
    return [f"            {field}={head}(", f"                {rest[:-1]}", "            ),"]


def import_lines(module, names):
    line = f"from .{module} import {', '.join(names)}"
    if len(line) <= COLUMNS:
        return [line]
    return [f"from .{module} import ("] + [f"    {name}," for name in names] + [")"]


def main():
    modules = {}
    for name in ["common"] + NAMES:
        modules[name] = Module(name, modules)
        modules[name].make()
    stale = False
    for module in modules.values():
        path, text = FOLDER / f"{module_of(module.name)}.py", module.text()
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} differs from its schema: run python/generate_documents.py")
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
