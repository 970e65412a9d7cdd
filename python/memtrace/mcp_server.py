"""`memtrace-mcp [FOLDER...]`: a server of the Model Context Protocol (MCP) on standard input and output.

Agents get the answers of the program as tools. The tools read existing files, only those in the
folders if there are any, and write nothing: the databases of `sql` are in a temporary folder that
goes with the server. Needs the package `mcp`: pip install "memtrace-gpu[mcp]"."""
from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, Dict, List, Optional

from . import program
from .database import is_database
from .errors import Error, printable

DEFAULT_BYTES, MIN_BYTES, MAX_BYTES = 20_000, 1_000, 1_000_000
MAX_DATABASES = 4
TIMEOUT_SECONDS = float(os.environ.get("MEMTRACE_MCP_TIMEOUT", "300"))
# Sentences about options, files that the program would write, and commands.
_ABOUT_OPTIONS = re.compile(r"(^|[\s(])--?\w|beside|^Examples?:")
INSTRUCTIONS = """Answers about GPU memory from recordings: where it goes, why the peak is where it is, what to
change. Start with `analyze`. Call `help` with "skill" for what each number means, what not to conclude, and
worked questions. Answers have at most `max_bytes` bytes. With format="json", `part` selects a part such as
devices.0.summary; an answer that is too large is replaced by the sizes of its parts."""


class Server:
    """The tools. `folders`: the only ones whose files are read; none: every file may be read."""

    def __init__(self, folders: Sequence[str], scratch: str) -> None:
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._scratch = scratch
        self._databases: dict[tuple[Any, ...], str] = {}
        self._lock = asyncio.Lock()

    async def analyze(self, path: str, policy: Optional[str] = None, limit: Optional[str] = None,
                      all_rows: bool = False, format: str = "text", part: str = "",
                      max_bytes: int = DEFAULT_BYTES) -> List[str]:
        words = [*_options(policy=policy, limit=limit), *(["--all"] if all_rows else [])]
        return await self._answer("analyze", words, [self._file(path)], format, part, max_bytes)

    async def live(self, path: str, at: str = "peak", by: str = "site", device: Optional[int] = None,
                   format: str = "text", part: str = "", max_bytes: int = DEFAULT_BYTES) -> List[str]:
        words = _options(at=at, by=by, device=device)
        return await self._answer("live", words, [self._file(path)], format, part, max_bytes)

    async def diff(self, base: str, new: str, at: str = "peak", device: Optional[int] = None,
                   format: str = "text", part: str = "", max_bytes: int = DEFAULT_BYTES) -> List[str]:
        files = [self._file(base), self._file(new)]
        words = _options(at=at, device=device)
        return await self._answer("diff", words, files, format, part, max_bytes)

    async def lines(self, path: str, function: Optional[str] = None, own: bool = False,
                    device: Optional[int] = None, format: str = "text", part: str = "",
                    max_bytes: int = DEFAULT_BYTES) -> List[str]:
        words = [*_options(function=function, device=device), *(["--own"] if own else [])]
        return await self._answer("lines", words, [self._file(path)], format, part, max_bytes)

    async def oom(self, message: str, format: str = "text", part: str = "",
                  max_bytes: int = DEFAULT_BYTES) -> List[str]:
        return await self._answer("oom", [], ["-"], format, part, max_bytes, message)

    async def sql(self, path: Optional[str] = None, statement: Optional[str] = None,
                  ask: Optional[str] = None, parameters: Optional[Dict[str, str]] = None,
                  rows: int = 100, format: str = "text", max_bytes: int = DEFAULT_BYTES) -> List[str]:
        words = [*_options(ask=ask, rows=rows, bytes=_bounded(max_bytes)),
                 *[f"--set={name}={value}" for name, value in (parameters or {}).items()]]
        if path is None and statement:  # the program would read a file of this name
            raise Error("a statement needs `path`, a recording or a database")
        files = [] if path is None else [await self._database(self._file(path))]
        return await self._answer("sql", words, [*files, *([statement] if statement else [])],
                                  format, "", max_bytes)

    async def help(self, command: str = "skill", max_bytes: int = 40_000) -> List[str]:
        text, _ = await _run(["help", *([command] if command else [])])
        return [_cut(text, _bounded(max_bytes))]

    def _file(self, path: str) -> str:
        """The absolute path of an existing file that may be read. Raises Error."""
        try:
            whole = os.path.realpath(path)
            is_file = stat.S_ISREG(os.stat(whole).st_mode)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not a name of a file"
            raise Error(f"cannot read '{printable(path)}': {reason}") from None
        if not is_file:
            raise Error(f"cannot read '{printable(path)}': it is not a regular file")
        if self._folders and not any(os.path.commonpath([folder, whole]) == folder
                                     for folder in self._folders):
            raise Error(f"cannot read '{printable(path)}': this server reads only files in "
                        f"{printable(', '.join(self._folders))}")
        return whole

    async def _answer(self, command: str, options: Sequence[str], arguments: Sequence[str],
                      format: str, part: str, max_bytes: int, text: str = "") -> list[str]:
        if format not in ("text", "json"):
            raise Error(f"there is no format '{printable(format)}': use text or json")
        is_json, limit = format == "json", _bounded(max_bytes)
        words = [command, "--quiet", *options, *(["--json"] if is_json else []), "--", *arguments]
        answer, notes = await _run(words, text)
        shown = _part(answer, part, limit) if is_json else _cut(answer, limit)
        return [shown, *[_cut(note, MIN_BYTES) for note in notes[:5]]]

    async def _database(self, path: str) -> str:
        """The database of a recording in the temporary folder, without a file beside the recording."""
        if is_database(path):
            return path
        async with self._lock:
            found = os.stat(path)
            key = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
            if key not in self._databases:
                while len(self._databases) >= MAX_DATABASES:
                    os.unlink(self._databases.pop(next(iter(self._databases))))
                file = os.path.join(self._scratch, "-".join(map(str, key)) + ".db")
                await _run(["export", "sqlite", "--quiet", "--force", "-o", file, "--", path], file=file)
                self._databases[key] = file
        return self._databases[key]


def _options(**values: object) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def _bounded(max_bytes: int) -> int:
    return max(MIN_BYTES, min(max_bytes, MAX_BYTES))


async def _run(words: Sequence[str], text: str = "", file: str | None = None) -> tuple[str, list[str]]:
    """Runs a command of the program. Returns its answer and notes about it. Raises Error with its
    line if there is none, and after TIMEOUT_SECONDS."""
    try:
        process = await asyncio.create_subprocess_exec(
            program.find(), *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE)
    except (OSError, ValueError) as error:
        raise Error(f"cannot run memtrace {words[0]}: {printable(str(error))}") from None
    try:
        output, errors = await asyncio.wait_for(process.communicate(text.encode("utf-8", "replace")),
                                                TIMEOUT_SECONDS)
    except asyncio.TimeoutError:
        raise Error(f"memtrace {words[0]} took longer than {TIMEOUT_SECONDS:g} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = [line[len("memtrace: "):] if line.startswith("memtrace: ") else line
             for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    has_answer = os.path.exists(file) if file else output
    if process.returncode not in program.ANSWERED or not has_answer:
        raise Error(lines[0] if lines else f"memtrace {words[0]} failed with status {process.returncode}")
    return output.decode("utf-8", "replace"), lines if process.returncode in (3, 5) else []


def _cut(text: str, limit: int) -> str:
    """The first lines of a text, at most `limit` bytes, and how much is missing."""
    data = text.encode("utf-8")
    if len(data) <= limit:
        return text
    kept = data[:limit - 100].decode("utf-8", "ignore").rpartition("\n")[0]
    rest = len(data) - len(kept.encode("utf-8"))
    return f"{kept}\n... {rest:,} more bytes: request less, or raise max_bytes"


def _part(text: str, part: str, limit: int) -> str:
    """A part of a JSON document, or the sizes of its parts if it is larger than `limit`."""
    found = json.loads(text)
    for key in filter(None, part.split(".")):
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise Error(f"the document has no part '{printable(part)}'") from None
    shown = json.dumps(found, ensure_ascii=False)
    if len(shown.encode("utf-8")) <= limit:
        return shown
    items = enumerate(found) if isinstance(found, list) else \
        found.items() if isinstance(found, dict) else [("", found)]
    sizes = {str(key): len(json.dumps(value)) for key, value in list(items)[:200]}
    return _cut(json.dumps({"too_large": len(shown), "bytes_of_parts": sizes,
                            "next": "set `part`, or raise max_bytes"}, indent=0), limit)


def described(command: str) -> str:
    """What the help of the program has about a command, without its options and what these do."""
    text = program.run(["help", command]).text
    head, _, body = text.partition("\n\nusage: ")
    paragraphs = [head]
    for paragraph in body.partition("\n\noptions:")[0].split("\n\n")[1:]:
        sentences = re.split(r"(?<=[.]) ", " ".join(paragraph.split()))
        kept = [sentence for sentence in sentences if not _ABOUT_OPTIONS.search(sentence)]
        if kept[:1] == sentences[:1]:
            paragraphs.append(" ".join(kept).strip())
    return "\n\n".join(paragraphs)


def make(folders: Sequence[str], scratch: str) -> Any:
    """The server of the package `mcp`, version 1 or 2."""
    try:
        from mcp.server.mcpserver import MCPServer as Protocol
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        from mcp.server.fastmcp import FastMCP as Protocol
        from mcp.server.fastmcp.exceptions import ToolError
    import functools

    from mcp.types import ToolAnnotations

    def reported(function: Any) -> Any:
        @functools.wraps(function)
        async def call(*args: Any, **kwargs: Any) -> List[str]:
            try:
                return list(await function(*args, **kwargs))
            except Error as error:
                raise ToolError(str(error)) from None
        return call

    tools, protocol = Server(folders, scratch), Protocol("memtrace", instructions=INSTRUCTIONS,
                                                         log_level="WARNING")
    hints = ToolAnnotations.model_validate({"readOnlyHint": True, "openWorldHint": False})
    for name in ("analyze", "live", "diff", "lines", "oom", "sql"):
        protocol.add_tool(reported(getattr(tools, name)), name=name, description=described(name),
                          annotations=hints, structured_output=False)
    protocol.add_tool(
        reported(tools.help), name="help", annotations=hints, structured_output=False,
        description='What a command of memtrace does and its options; with "skill", how to use memtrace: '
                    "which command answers which question, what each number means, worked questions.")
    return protocol


def main() -> int:
    """Serves until standard input ends."""
    folders = sys.argv[1:]
    try:
        for folder in folders:
            if not os.path.isdir(folder):
                raise Error(f"'{printable(folder)}' is not a folder; usage: memtrace-mcp [FOLDER...]")
        with tempfile.TemporaryDirectory(prefix="memtrace-mcp-") as scratch:
            make(folders, scratch).run("stdio")
    except ImportError as error:
        print(f"memtrace-mcp: {error}: pip install 'memtrace-gpu[mcp]'", file=sys.stderr)
        return 1
    except Error as error:
        print(f"memtrace-mcp: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
