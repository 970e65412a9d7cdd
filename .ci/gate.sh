#!/bin/sh
# Gates a trace: what the GitHub action and the GitLab template run.
#
#   MEMTRACE_TRACE   the trace or snapshot
#   MEMTRACE_BUDGET  rules (docs/ci.md), may be empty
#   MEMTRACE_BASE    trace, snapshot or baseline to compare with, may be empty
#   MEMTRACE_OUTPUT  folder of the report
#   MEMTRACE         the program, by default `memtrace`
#
# Exits as memtrace does; the summary of a GitHub job is written whatever comes out.
set -u
: "${MEMTRACE_TRACE:?is the trace to gate}"
output=${MEMTRACE_OUTPUT:-memtrace-report}
set -- analyze "$MEMTRACE_TRACE" -o "$output"
[ -z "${MEMTRACE_BUDGET:-}" ] || set -- "$@" --budget "$MEMTRACE_BUDGET"
[ -z "${MEMTRACE_BASE:-}" ] || set -- "$@" --base "$MEMTRACE_BASE"
# own NAME: memtrace wrote this file.
own() {
    head -n 2 "$output/$1" 2>/dev/null |
        grep -q -e '^### memtrace: ' -e '^<testsuites name="memtrace"'
}
for name in summary.md junit.xml; do
    ! own "$name" || rm -f "$output/$name" # of another run
done
status=0
"${MEMTRACE:-memtrace}" "$@" || status=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && own summary.md; then
    cat "$output/summary.md" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
