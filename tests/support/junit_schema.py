"""What a Jenkins server demands of a JUnit file, as a table: its schema is junit-10.xsd of
the xunit plugin (elements, their attributes, which of them are required, what may be inside).
GitLab and GitHub's readers demand less."""
import re

# element: (required attributes, further attributes, elements within, may hold text)
SUITE_MORE = {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"}
RERUNS = {"rerunFailure", "rerunError", "flakyFailure", "flakyError"}
ELEMENTS = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}, False),
    "testsuite": ({"name", "tests", "failures", "errors"}, SUITE_MORE,
                  {"testsuite", "properties", "testcase", "system-out", "system-err"}, False),
    "testcase": ({"name"}, {"time", "classname", "group"},
                 {"skipped", "error", "failure", "system-out", "system-err"} | RERUNS, False),
    "properties": (set(), set(), {"property"}, False),
    "property": ({"name", "value"}, set(), set(), False),
    "system-out": (set(), set(), set(), True),
    "system-err": (set(), set(), set(), True),
    **{name: (set(), {"type", "message"}, set(), True) for name in ("skipped", "error", "failure")},
    **{name: ({"type"}, {"message"}, {"stackTrace", "system-out", "system-err"}, True) for name in RERUNS},
    "stackTrace": (set(), set(), set(), True),
}
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


def complaints(element):
    """What is wrong with an element of xml.etree and all that is in it, a line each."""
    if element.tag not in ELEMENTS:
        return [f"<{element.tag}> is unknown"]
    required, optional, within, holds_text = ELEMENTS[element.tag]
    names = set(element.keys())
    found = [f"<{element.tag}> lacks {name}" for name in sorted(required - names)]
    found += [f"<{element.tag}> has {name}" for name in sorted(names - required - optional)]
    if element.tag in ("testsuite", "testsuites") and not TIME.fullmatch(element.get("time", "")):
        found.append(f"<{element.tag}> has time {element.get('time')!r}")
    text = (element.text or "") + "".join(child.tail or "" for child in element)
    if text.strip() and not holds_text:
        found.append(f"<{element.tag}> holds text: {text.strip()!r}")
    for child in element:
        if child.tag not in within:
            found.append(f"<{element.tag}> holds <{child.tag}>")
        else:
            found += complaints(child)
    return found
