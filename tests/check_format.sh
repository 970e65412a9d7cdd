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
status=0
for file in $(find base trace collector simulate analyzer fleet render cli tests fixtures -name '*.[ch]' | sort); do
    "$tool" --style=file "$file" | cmp -s - "$file" && continue
    if [ "${1:-}" = --fix ]; then
        "$tool" -i --style=file "$file"
    else
        echo "check_format: $file is not formatted; run ./dev format" >&2
        status=1
    fi
done
exit $status
