"""What mkdocs does with the pages of docs/ to build the site, beyond mkdocs.yml.

The pages are written for readers of the repository: they link to files outside docs/, and their
lists follow CommonMark. The site shows Markdown files outside docs/ that are linked below source/,
and the names of other files without a link. Python-Markdown wants nested lists indented by four
columns."""
import os
import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
FENCE = re.compile(r" *(```|~~~)")
NESTED = re.compile(r"^( {2,})(- |\d+\. )")


def place_in_tree(page_path, target):
    """The path of a relative link from ROOT, or None if the target is inside docs/ or on a host."""
    if "://" in target or target.startswith("mailto:"):
        return None
    source = page_path.removeprefix("source/") if page_path.startswith("source/") else "docs/" + page_path
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    return path


def outside_pages():
    """Markdown files outside docs/ that a page of docs/ links to, and those linked from them."""
    found, todo = set(), [("docs/" + p.relative_to(ROOT / "docs").as_posix()) for p in (ROOT / "docs").rglob("*.md")]
    todo += PROJECT_PAGES
    found.update(PROJECT_PAGES)
    while todo:
        page = todo.pop()
        for _, target, _ in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
            outside = path.endswith(".md") and not path.startswith(("docs/", "..")) and "://" not in target
            if outside and path not in found and (ROOT / path).is_file():
                found.add(path)
                todo.append(path)
    return sorted(found)


def on_files(files, config):
    for path in outside_pages():
        files.append(File.generated(config, "source/" + path, abs_src_path=str(ROOT / path)))
    return files


def on_nav(nav, config, files):  # pylint: disable=unused-argument
    """Pages below source/ that the navigation does not have are reached by links."""
    return nav


def linked(match, page_path):
    text, target, anchor = match.group(1), match.group(2), match.group(3) or ""
    path = place_in_tree(page_path, target)
    if path is None:
        return match.group(0)
    if path.startswith("docs/") and (ROOT / path).is_file():
        place = path.removeprefix("docs/")
    elif path.endswith(".md") and (ROOT / path).is_file():
        place = "source/" + path
    elif path == "docs/schema" and (ROOT / path / "README.md").is_file():
        place = path.removeprefix("docs/") + "/README.md"
    elif (ROOT / path).exists():
        return text if text.startswith("`") else f"{text} (`{path}`)" if path not in text else f"`{text}`"
    else:
        return match.group(0)  # mkdocs reports it
    return f"[{text}]({os.path.relpath(place, posixpath.dirname(page_path) or '.')}{anchor})"


def with_lists(lines):
    """Nested items indented by four columns, and an empty line before a list."""
    inside, previous = False, ""
    for line in lines:
        if FENCE.match(line):
            inside = not inside
        if not inside:
            item = NESTED.match(line)
            if item and previous.strip() and not item.group(1).startswith("    "):
                line = " " * len(item.group(1)) + line
            if re.match(r"(- |\d+\. )", line) and previous.strip() and not re.match(r"[-> |]|\d+\. ", previous):
                yield ""
        yield line
        previous = line


def on_page_markdown(markdown, page, config, files):  # pylint: disable=unused-argument
    path, parts = page.file.src_uri, re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    prose = [part if part.startswith("```") else LINK.sub(lambda match: linked(match, path), part) for part in parts]
    return "\n".join(with_lists("".join(prose).split("\n")))


def on_post_build(config):
    """The theme's program can load parts from another host, for features that no page uses."""
    for program in pathlib.Path(config["site_dir"]).rglob("*.js"):
        text = program.read_text(encoding="utf-8")
        changed = re.sub(r"https://unpkg\.com/[\w@./-]*", "", text)
        if changed != text:
            program.write_text(changed, encoding="utf-8")
