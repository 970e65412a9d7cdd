#!/usr/bin/env python3
"""check_schemas.py PROGRAM: docs/schema describes what --json prints, all of it.

Every JSON document among the golden outputs, and what the program prints here
for more inputs, is compared with its schema. The validator is also tested, and
so are the schemas: a document with a field more, a field less or a field of
another type has to fail."""
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from support.json_schema import SchemaError, Schemas
from support.program import fast_program

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
SCHEMAS = ROOT / "docs" / "schema"
FIXTURES = ROOT / "fixtures"

# ---- the validator -----------------------------------------------------------------------------

# (schema, documents that are right, documents that are wrong)
CASES = [
    ({"type": "integer", "minimum": 0}, [0, 7], [-1, "7", 7.5, True, None]),
    ({"type": ["string", "null"]}, ["", None], [0, [], {}]),
    ({"type": "number"}, [1, 0.5, -2], [True, "1"]),
    ({"const": "a/1"}, ["a/1"], ["a/2", None]),
    ({"enum": ["a", None, 1]}, ["a", None, 1], ["b", True, 0]),
    ({"type": "array", "items": {"type": "boolean"}}, [[], [True]], [[1], {}, [True, None]]),
    ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "string"}},
      "required": ["a"], "additionalProperties": False},
     [{"a": None}, {"a": None, "b": ""}],
     [{}, {"b": ""}, {"a": None, "c": 1}, {"a": None, "b": 1}]),
    ({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/few"}],
      "$defs": {"few": {"type": "array", "items": {"type": "integer", "minimum": 3}}}},
     [None, [3]], [[2], 3]),
    ({"$ref": "other.json#/$defs/x"}, ["x"], ["y"]),
]
# Schemas that have to be refused: not understood, not strict, or leading nowhere.
WRONG = [{"type": "whole"}, {"pattern": "a"}, {"properties": {}}, {"$ref": "#/$defs/none"},
         {"anyOf": [{"oneOf": []}]}, {"$ref": "none.json#/$defs/x"},
         {"type": "object", "properties": {}, "required": ["a"], "additionalProperties": False}]


def in_folder(schema):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "one.json").write_text(json.dumps(schema), encoding="utf-8")
        pathlib.Path(folder, "other.json").write_text('{"$defs": {"x": {"const": "x"}}}',
                                                      encoding="utf-8")
        return Schemas(folder)


def check_validator():
    complaints = []
    for schema, right, wrong in CASES:
        schemas = in_folder(schema)
        complaints += [f"validator: refuses {value!r} for {schema}" for value in right
                       if schemas.complaints(value, "one.json")]
        complaints += [f"validator: takes {value!r} for {schema}" for value in wrong
                       if not schemas.complaints(value, "one.json")]
    for schema in WRONG:
        try:
            in_folder(schema)
            complaints.append(f"validator: understands {schema}")
        except SchemaError:
            pass
    return complaints


# ---- documents ---------------------------------------------------------------------------------


def documents_in(text):
    """JSON documents of an output that is nothing else: one, or one a line. SARIF has a schema of OASIS."""
    if not text.startswith("{"):
        return []
    try:
        document = json.loads(text)
        return [] if "$schema" in document else [document]
    except json.JSONDecodeError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()]
    except json.JSONDecodeError:
        return []  # a part of one


def schema_of(document):
    """File of its schema: a line of dump names none."""
    return re.sub(r"^memtrace\.(.*)/1$", r"\1", document.get("schema", "memtrace.dump/1")) + ".json"


def check_document(schemas, document, where):
    name = schema_of(document)
    if name not in schemas.files:
        return [f"{where}: no docs/schema/{name}"]
    return [f"{where}: {complaint}" for complaint in schemas.complaints(document, name)[:5]]


def documents_of_pages():
    """Files that people write, as the pages show them."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        for block in re.findall(r"^```json\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            yield from ((path.name, document) for document in documents_in(block) if "schema" in document)


def golden_documents():
    for path in sorted((HERE / "golden").glob("*.stdout")):
        for document in documents_in(path.read_text(encoding="utf-8", errors="replace")):
            yield path.name, document


# More than the goldens have: `memtrace` and words, in a folder with links to the fixtures.
COMMANDS = [
    "analyze --json captures/leakval_ring.pickle.zst",
    "analyze --json captures/churn_gc.pickle.zst",
    "analyze --json captures/twogpu.pickle.zst",
    "analyze --json findings/pinned.pickle.zst",
    "analyze --json dry_run/two_devices.trace.zst",
    "analyze --json recorded/mixed.trace.zst",
    "analyze --json recorded/paged_pool.trace.zst",
    "analyze --json recorded/communicators.trace.zst",
    "analyze --json recorded/communicator_ids.trace.zst",
    "info --json recorded/communicator_ids.trace.zst",
    "analyze --json recorded/driver_only.trace.zst",
    "analyze --json recorded/every_allocation.trace.zst",
    "analyze --json recorded/graph.trace.zst",
    "analyze --json --policy cupy captures/graph.pickle.zst",
    "analyze --json --limit 300MiB captures/graph.pickle.zst",
    "analyze --json captures/ddp_leak_rank1.pickle.zst",
    "analyze --json captures/leakval.pickle.zst --max-peak device=1 --max-growth 1,warn=0 --fits 1GiB",
    "analyze --json captures/leak.pickle.zst --base captures/leakval.pickle.zst --max-regression 0%",
    "live --json captures/oom_adam.pickle.zst --at oom --by stack",
    "live --json captures/twogpu.pickle.zst --at end --by phase",
    "live --json recorded/driver_only.trace.zst --by size",
    "diff --json recorded/graph.trace.zst captures/graph.pickle.zst",
    "replay --json recorded/driver_only.trace.zst -p bfc",
    "replay --json captures/graph.pickle.zst -p planned -p none --limit 300MiB",
    "replay --json captures/churn_gc.pickle.zst --verify",
    "fit --json captures/graph.pickle.zst -p pytorch --no-cards",
    "fit --json captures/graph.pickle.zst --pool size>=20MiB",
    "fit --json captures/oom_adam.pickle.zst -p pytorch",
    "fit --json recorded/driver_only.trace.zst",
    "tune --json captures/streams.pickle.zst --no-fits",
    "optimal --json captures/graph.pickle.zst --time none",
    "optimal --json recorded/driver_only.trace.zst --time none",
    "info --json recorded/mixed.trace.zst",
    "info --json --secrets recorded/mixed.trace.zst",
    "info --json recorded/twogpu.trace.zst",
    "info --json recorded/every_allocation.trace.zst",
    "info --json captures/leakval_ring.pickle.zst",
    "info --json cut.trace.zst",
    "lines --json captures/lines.pickle.zst",
    "lines --json captures/graph.pickle.zst",
    "lines --json recorded/mixed.trace.zst",
    "dump --json recorded/driver_only.trace.zst --stacks",
    "dump --json recorded/every_allocation.trace.zst --to 300",
    "dump --json recorded/mixed.trace.zst",
    "import --json recorded/mixed.trace.zst -o again.trace",
    "info --json again.trace.mtsum",
    "fleet diff --json captures/ddp_rank0.pickle.zst captures/ddp_leak_rank0.pickle.zst",
    "fleet diff --json recorded/mixed.trace.zst recorded/communicators.trace.zst",
    "record --json -o r.trace.zst recorded exit 3",
    "info --json r.trace.zst",
    "dry-run --json --max-peak reserved=1GiB -o d.trace.zst recorded exit 3",
    "dry-run --json --max-peak reserved=1GiB -- true",
    "dry-run --json --sweep code=0,3 --max-peak reserved=1KiB recorded exit {code}",
    "dry-run --json --ranks 0,3 --world 4 recorded exit 3",
    "dry-run --json --sweep code=0..1 -o sweep recorded plain {code}",
    "plan --json --no-cache --try code=0..3 --try word=a,b recorded exit {code} {word}",
    "plan --json --no-cache --card T4 --world 4 -o plan recorded exit 0",
    "info --json d.trace.zst",
    "analyze --json d.trace.zst",
    "oom --json oom/cases.txt",
    "recover --json r.trace.zst missing.trace",
    "doctor --json",
]


def run(program, command, folder):
    """On the stand-in for a GPU: `recorded` is a program that allocates there."""
    build = pathlib.Path(program).parent
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("MEMTRACE_", "LD_PRELOAD", "CUDA_"))}
    environment["LD_LIBRARY_PATH"] = str(build / "standin")
    environment["MEMTRACE_DRY_RUN_SITE"] = "own"
    environment["MEMTRACE_CUPTI"] = str(build / "standin" / "libcupti.so.13")
    words = [str(build / "tests" / "recorded") if word == "recorded" else word
             for word in command.split()]
    return subprocess.run([program, *words], cwd=folder, env=environment, capture_output=True,
                          text=True, check=False)


def printed_documents(program):
    """What the program prints for COMMANDS; a command that prints none is an error."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("captures", "dry_run", "findings", "oom", "recorded"):
            pathlib.Path(folder, name).symlink_to(FIXTURES / name)
        whole = (FIXTURES / "recorded" / "mixed.trace.zst").read_bytes()
        pathlib.Path(folder, "cut.trace.zst").write_bytes(whole[:-1000])
        for command in COMMANDS:
            done = run(program, command, folder)
            documents = documents_in(done.stderr if command.startswith("record") else done.stdout)
            if not documents:
                yield command, None
            for document in documents:
                yield command, document


# ---- documents that are broken -----------------------------------------------------------------


def optional_fields(schemas):
    """Names of fields that some object may lack. The file that people write has no others."""
    found = set()

    def walk(node):
        if isinstance(node, dict):
            if isinstance(node.get("properties"), dict):
                found.update(set(node["properties"]) - set(node.get("required", [])))
            node = list(node.values())
        if isinstance(node, list):
            for item in node:
                walk(item)

    walk([schema for name, schema in schemas.files.items() if name != "estimate.json"])
    return found


def nodes(value, path=(), shape=()):
    """(path, shape): of each object and of each scalar; equal shapes differ in indices alone."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from nodes(item, path + (index,), shape + ("*",))
        return
    yield path, shape
    if isinstance(value, dict):
        for key, item in value.items():
            yield from nodes(item, path + (key,), shape + (key,))


def broken(document, optional):
    """(what was done, document): each must fail."""
    seen = set()
    for path, shape in nodes(document):
        if shape in seen:
            continue
        seen.add(shape)
        spoilt = copy.deepcopy(document)
        at, parent = spoilt, None
        for step in path:
            at, parent = at[step], at
        if isinstance(at, dict):
            at["undocumented"] = 1
            yield f"{path}: a field more", spoilt
            continue
        parent[path[-1]] = {}
        yield f"{path}: an object", spoilt
        if isinstance(parent, dict) and path[-1] not in optional:
            spoilt = copy.deepcopy(spoilt)
            at = spoilt
            for step in path[:-1]:
                at = at[step]
            del at[path[-1]]
            yield f"{path}: missing", spoilt


def check_broken(schemas, document, where, optional):
    name = schema_of(document)
    return [f"{where}: {name} takes a broken document: {what}"
            for what, spoilt in broken(document, optional)
            if not schemas.complaints(spoilt, name)]


# ---- all of it ---------------------------------------------------------------------------------


def check_names(schemas):
    """Every document of the program has a schema, and no schema is without one."""
    printed = set()
    for path in [*(ROOT / "cli").rglob("*.c"), *(ROOT / "fleet").rglob("*.c"),
                 *(ROOT / "simulate").rglob("*.c"), *(ROOT / "analyzer" / "compare").glob("*.h")]:
        printed.update(re.findall(r'"memtrace\.([\w-]+)/1"', path.read_text(encoding="utf-8")))
    printed.discard("picture")  # metadata in a picture
    described = {pathlib.Path(name).stem for name in schemas.files} - {"common", "dump"}
    return [f"docs/schema/{name}.json is missing" for name in sorted(printed - described)] + \
           [f"docs/schema/{name}.json: no such document" for name in sorted(described - printed)]


def check_costs(schemas):
    """No document here has a communicator: its names are those in the source."""
    source = (ROOT / "simulate" / "commands" / "dry_run_answer.c").read_text(encoding="utf-8")
    body = re.search(r"\*cost_name\(.*?\n}", source, re.DOTALL).group(0)
    device = schemas.files["dry-run.json"]["properties"]["devices"]["items"]["properties"]
    listed = device["outside"]["properties"]["measured"]["items"]["properties"]["what"]["enum"]
    written = re.findall(r'return "(\w+)"', body)
    return [] if sorted(written) == sorted(listed) else \
        [f"dry-run.json: 'what' is {listed}, the program writes {written}"]


def main(program):
    program = str(pathlib.Path(program).resolve())
    complaints = check_validator()
    schemas = Schemas(SCHEMAS)
    optional = optional_fields(schemas)
    complaints += check_names(schemas) + check_costs(schemas)
    count, spoilt = 0, set()
    for documents in (golden_documents(), documents_of_pages(), printed_documents(program)):
        for where, document in documents:
            if document is None:
                complaints.append(f"{where}: no JSON document")
                continue
            found = check_document(schemas, document, where)
            complaints += found
            count += 1
            if not found and (where, schema_of(document)) not in spoilt:
                spoilt.add((where, schema_of(document)))
                if where.endswith(".stdout"):
                    complaints += check_broken(schemas, document, where, optional)
    missing = set(schemas.files) - {name for _, name in spoilt} - {"common.json"}
    complaints += [f"docs/schema/{name}: no document was compared with it"
                   for name in sorted(missing)]
    print("\n".join(complaints[:60]) or f"{count} documents are as their schemas say")
    return 1 if complaints else 0


if __name__ == "__main__":
    try:
        sys.exit(main(fast_program(sys.argv[1])))
    except SchemaError as error:
        sys.exit(f"docs/schema: {error}")
