"""The part of JSON Schema (draft 2020-12) that docs/schema uses, and no more: a
keyword that is not known here is an error, so that none is ignored silently."""
import json
import pathlib

KEYWORDS = {"$schema", "title", "$defs", "$ref", "description", "type", "properties", "required",
            "additionalProperties", "items", "enum", "const", "minimum", "anyOf"}
TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


class SchemaError(Exception):
    """The schema itself is wrong."""


def same(a, b):
    """Equality of JSON: true is not 1."""
    return type(a) is type(b) and a == b


class Schemas:
    """All schemas of a folder: they may refer to each other."""

    def __init__(self, folder):
        self.files = {path.name: json.loads(path.read_text(encoding="utf-8"))
                      for path in sorted(pathlib.Path(folder).glob("*.json"))}
        for name, schema in self.files.items():
            self.check(schema, name)

    def resolve(self, reference, name):
        """(schema, name of its file) of "#/$defs/x" or "common.json#/$defs/x"."""
        file, _, pointer = reference.partition("#")
        file = file or name
        at = self.files.get(file)
        for step in pointer.split("/")[1:]:
            at = at.get(step) if isinstance(at, dict) else None
        if not isinstance(at, dict):
            raise SchemaError(f"{name}: '{reference}' leads nowhere")
        return at, file

    def check(self, schema, name):
        """Raises SchemaError unless a schema is of the kind that is understood, and strict."""
        if not isinstance(schema, dict) or set(schema) - KEYWORDS:
            raise SchemaError(f"{name}: not understood: {schema}")
        types = schema.get("type", [])
        for kind in [types] if isinstance(types, str) else types:
            if kind not in TYPES:
                raise SchemaError(f"{name}: no type '{kind}'")
        if "properties" in schema and schema.get("additionalProperties") is not False:
            raise SchemaError(f"{name}: an object that allows fields without a name: {schema}")
        if set(schema.get("required", [])) - set(schema.get("properties", {})):
            raise SchemaError(f"{name}: requires what it does not describe: {schema}")
        if "$ref" in schema:
            self.resolve(schema["$ref"], name)
        inner = [*schema.get("anyOf", []), *schema.get("properties", {}).values(),
                 *schema.get("$defs", {}).values()]
        for part in inner + ([schema["items"]] if "items" in schema else []):
            self.check(part, name)

    def complaints(self, document, name):
        """What is wrong with a document, by the schema in file `name`; [] = nothing."""
        return self._value(document, self.files[name], name, "$")

    def _value(self, value, schema, name, path):
        if "$ref" in schema:
            target, file = self.resolve(schema["$ref"], name)
            return self._value(value, target, file, path)
        if "anyOf" in schema:
            return self._any(value, schema["anyOf"], name, path)
        found = self._scalar(value, schema, path)
        if not found and isinstance(value, dict) and "properties" in schema:
            found += self._object(value, schema, name, path)
        if not found and isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                found += self._value(item, schema["items"], name, f"{path}[{index}]")
        return found

    def _any(self, value, choices, name, path):
        tries = [self._value(value, choice, name, path) for choice in choices]
        if not all(tries):
            return []
        return [f"{path}: none of {len(tries)} fits, the nearest: {min(tries, key=len)[0]}"]

    @staticmethod
    def _scalar(value, schema, path):
        types = schema.get("type")
        if types is not None:
            types = [types] if isinstance(types, str) else types
            if not any(TYPES[kind](value) for kind in types):
                return [f"{path}: {value!r:.60} is not of type {'/'.join(types)}"]
        if "const" in schema and not same(value, schema["const"]):
            return [f"{path}: {value!r:.60} is not {schema['const']!r}"]
        if "enum" in schema and not any(same(value, one) for one in schema["enum"]):
            return [f"{path}: {value!r:.60} is none of {schema['enum']}"]
        if "minimum" in schema and TYPES["number"](value) and value < schema["minimum"]:
            return [f"{path}: {value} is below {schema['minimum']}"]
        return []

    def _object(self, value, schema, name, path):
        properties = schema["properties"]
        found = [f"{path}: '{key}' is missing" for key in schema.get("required", [])
                 if key not in value]
        for key, item in value.items():
            if key in properties:
                found += self._value(item, properties[key], name, f"{path}.{key}")
            else:
                found.append(f"{path}: '{key}' is not documented")
        return found
