#!/usr/bin/env python3
"""check_site.py VENV SITE: builds the documentation site into SITE with mkdocs of docs/requirements.txt, which it
installs into VENV, and checks it: every link and anchor of every page leads somewhere in the site, the search index has
the pages, and nothing of a page (style, program, font, picture) comes from another host.

Where the package index cannot be reached, prints why and exits with 77."""
import collections
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "docs" / "requirements.txt"
MAX_SECONDS = 900
HOST = re.compile(r"^(https?:)?//")
# Attributes that make a browser fetch something.
FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data"),
           ("image", "href"), ("use", "href")}


class PageParser(html.parser.HTMLParser):
    """Targets, anchors and fetched files of one page."""

    def __init__(self):
        super().__init__()
        self.links, self.fetched, self.anchors = [], [], set()

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        self.anchors.update(facts[name] for name in ("id", "name") if facts.get(name))
        if tag == "a" and facts.get("href") is not None:
            self.links.append(facts["href"])
        if tag == "link" and facts.get("rel") in ("stylesheet", "icon", "preload", "preconnect", "modulepreload"):
            self.fetched.append(facts.get("href", ""))
        self.fetched += [facts[name] for kind, name in FETCHED if kind == tag and facts.get(name)]

    handle_startendtag = handle_starttag


def install(venv):
    """mkdocs of VENV; made if it is not what the requirements say."""
    wanted, stamp = REQUIREMENTS.read_text(encoding="utf-8"), venv / "requirements.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        for command in ([sys.executable, "-m", "venv", "--clear", venv],
                        [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-input", "--retries", "1",
                         "--disable-pip-version-check", "-r", REQUIREMENTS]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=MAX_SECONDS, check=False)
            if done.returncode:
                print(f"mkdocs cannot be installed: {(done.stdout.strip().splitlines() or ['no message'])[-1]}")
                sys.exit(77)
        stamp.write_text(wanted, encoding="utf-8")
    return venv / "bin" / "mkdocs"


def build(mkdocs, site):
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([mkdocs, "build", "--strict", "--quiet", "--clean", "--site-dir", site.resolve()], cwd=ROOT,
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=MAX_SECONDS, check=False)
    return [f"mkdocs: {line}" for line in done.stdout.splitlines()] if done.returncode else []


def parse(path):
    parser = PageParser()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def check_links(site, pages):
    """Complaints about links and anchors; 404.html has absolute links of a site at the root of a host."""
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if HOST.match(link) or link.startswith("mailto:") or path.name == "404.html":
                continue
            goal = (path.parent / urllib.parse.unquote(target)).resolve() if target else path
            goal = goal / "index.html" if goal.is_dir() else goal
            where = path.relative_to(site)
            if not goal.is_file() or site not in goal.parents:
                yield f"{where}: a link to {link}, which does not exist"
            elif anchor and goal in pages and urllib.parse.unquote(anchor) not in pages[goal].anchors:
                yield f"{where}: a link to {link}, which has no such anchor"


def check_hosts(site, pages):
    """Complaints about what a browser would fetch from another host."""
    for path, page in pages.items():
        for name in page.fetched:
            if HOST.match(name):
                yield f"{path.relative_to(site)}: fetches {name}"
            elif not name.startswith("data:") and path.name != "404.html" \
                    and not (path.parent / urllib.parse.unquote(name.partition("?")[0])).is_file():
                yield f"{path.relative_to(site)}: fetches {name}, which does not exist"
    for path in site.rglob("*.css"):
        for name in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]*)", path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: fetches {name}"
    for path in site.rglob("*.js"):
        for name in re.findall(r"https?://(?:unpkg|cdn|fonts)[\w./@-]*", path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: may fetch {name}"


def check_pages(site, pages):
    """Every document is a page, and the search index has it."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = collections.Counter(entry["location"].partition("#")[0] for entry in index["docs"])
    for document in (ROOT / "docs").rglob("*.md"):
        name = document.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        name = re.sub(r"(^|/)README\.html$", r"\1index.html", name)
        if site / name not in pages:
            yield f"{document.name} is not a page of the site"
        elif not places[name] and not places[name.removesuffix("index.html")]:
            yield f"{name} is not in the search index"


def main(venv, site):
    complaints = build(install(venv), site)
    site = site.resolve()
    pages = {path: parse(path) for path in site.rglob("*.html")}
    complaints += [*check_links(site, pages), *check_hosts(site, pages), *check_pages(site, pages)] \
        if not complaints else []
    links = sum(len(page.links) for page in pages.values())
    print("\n".join(complaints) or f"{len(pages)} pages, {links} links, nothing from another host")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
