#!/bin/sh
# Every C file is as clang-format 14 would write it. Generated files are in the folder of the build.
# Names those that are not; --fix rewrites them.
set -eu
cd "$(dirname "$0")/.."
tool=$(command -v clang-format-14 || command -v clang-format || echo true)
case $("$tool" --version) in
*"version 14."*) ;;
*)
    echo "check_format: needs clang-format 14 (other versions format differently)" >&2
    exit 1
    ;;
esac

# for_files OPTION...: runs clang-format with these options, once per 100 files, because its start
# takes longer than a file.
for_files() {
    find base trace collector simulate analyzer fleet render cli tests fixtures -name '*.[ch]' -print0 |
        sort -z | xargs -0 -n 100 -P "$(nproc 2>/dev/null || echo 2)" "$tool" --style=file "$@"
}

if [ "${1:-}" = --fix ]; then
    for_files -i
    exit
fi
output=$(for_files --dry-run -Werror 2>&1) && exit
printf '%s\n' "$output" | sed 's/^\([^:]*\):[0-9]*:[0-9]*: error: code should be clang-formatted.*/\1/; t; d' | sort -u |
    sed 's/.*/check_format: & is not formatted; run .\/dev format/' >&2
printf '%s\n' "$output" | grep -q 'error: code should be clang-formatted' || printf '%s\n' "$output" >&2
exit 1
