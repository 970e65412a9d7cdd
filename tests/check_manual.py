#!/usr/bin/env python3
"""check_manual.py PROGRAM: docs/reference.md has a section for every command and no other. Each section
lists exactly the options that the command takes, and shows the usage line and examples."""
import pathlib
import re
import subprocess
import sys

from annexes import absent_words

SUBCOMMANDS = {"fleet": ["diff"]}  # each has a section in that of its command
PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "reference.md"


def ask(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


def options_of_program(program, *command):
    """{"--limit=", "-o", ...}"""
    return set(ask(program, *command, "--completion-helper").split())


def options_of_section(text):
    """Items such as: - `-o`, `--output FILE`: ... (several spellings allowed)"""
    found = set()
    for line in re.findall(r"^- (`-.*?):", text, re.MULTILINE):
        for spelling in re.findall(r"`(-[^`]*)`", line):
            name, _, value = spelling.partition(" ")
            found.add(name + "=" if value and name.startswith("--") else name)
    return found


def usage_of_program(program, *command):
    return re.search(r"^usage: (.*)$", ask(program, *command, "--help"), re.MULTILINE).group(1)


def sections_of_page():
    """{command: text of its section}"""
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.split("\n", 1)[0].removeprefix("memtrace "): part for part in parts if part.startswith("memtrace ")}


def split_section(command, text):
    """The section without those of its subcommands, and these by name."""
    sections = {}
    for name in SUBCOMMANDS.get(command, []):
        section = re.search(rf"^### {command} {name}$.*?(?=^### |\Z)", text, re.MULTILINE | re.DOTALL)
        sections[name] = section.group(0) if section else ""
        text = text.replace(sections[name], "") if section else text
    return text, sections


def check_subcommand(program, command, name, text):
    documented, taken = options_of_section(text), options_of_program(program, command, name)
    complaints = [f"{command} {name}: {option} is not in its section" for option in sorted(taken - documented)]
    complaints += [f"{command} {name}: its section has {o}, it does not" for o in sorted(documented - taken)]
    usage = usage_of_program(program, command, name)
    if usage not in text:
        complaints.append(f"{command} {name}: its section lacks the usage line '{usage}'")
    return complaints


def check(program, command, text):
    text, sections = split_section(command, text)
    documented, taken = options_of_section(text), options_of_program(program, command)
    complaints = [f"{command}: {option} is not in its section" for option in sorted(taken - documented)]
    complaints += [f"{command}: its section has {o}, it does not" for o in sorted(documented - taken)]
    usage = usage_of_program(program, command)
    if usage not in text:
        complaints.append(f"{command}: its section lacks the usage line '{usage}'")
    complaints += [f"{command}: its section lacks '### {part}'" for part in
                   ("Options", "Examples") if f"### {part}\n" not in text]
    for name, section in sections.items():
        complaints += check_subcommand(program, command, name, section)
    return complaints


def main(program):
    commands = set(ask(program, "--completion-helper").split()) - {"help", "version"}
    sections = sections_of_page()
    complaints = [f"{PAGE.name} has {command}: no such command" for command in sorted(set(sections) - commands - set(absent_words(program)))]
    for command in sorted(commands):
        complaints += check(program, command, sections.get(command, ""))
    print("\n".join(complaints) or f"{len(commands)} commands, all documented")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
