#!/bin/sh
# cupti_abi.h, the table of calls and the stand-ins' list of them against the
# vendor's headers.
#
#   check_headers.sh [FOLDERS...]
#
# FOLDERS: include folders, joined by commas, that hold cupti.h and cuda.h of one
# version (11.8 or later). Without any: MEMTRACE_CUPTI_HEADERS (such folders, joined by colons),
# else the toolkits of this machine. Exits with 77 if there are no headers.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
compiler=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

complain() {
    echo "check_headers: $*" >&2
    status=1
}

toolkits() {
    for home in "${CUDA_HOME:-}" /usr/local/cuda*; do
        home=$(readlink -f "$home" || true)
        [ ! -f "$home/include/cuda.h" ] || echo "$home/include,$home/extras/CUPTI/include"
    done | sort -u
}

# find_header NAME FOLDERS...: the first folder's.
find_header() {
    name=$1
    shift
    for folder in "$@"; do
        if [ -f "$folder/$name" ]; then
            echo "$folder/$name"
            return
        fi
    done
}

# numbers HEADER: "number name" a line, of its calls.
numbers() {
    sed -n 's/^ *CUPTI_DRIVER_TRACE_CBID_\([A-Za-z0-9_]*\) *= *\([0-9]*\).*/\2 \1/p' "$1" |
        grep -v -e ' SIZE$' -e ' FORCE_INT$' -e ' INVALID$' | sort -k 2
}

# of_memory: the lines of the list whose meaning must never change.
of_memory() { grep -E ' cu[A-Za-z0-9]*(Mem|Alloc|Array|Pool|Ctx|GraphAdd)' | sort -k 2; }

# compare_list NUMBERS: both know it under different numbers?
compare_list() {
    sed -n 's/^CBID(\([0-9]*\), \(.*\))$/\1 \2/p' "$root/simulate/driver/driver_cbids.def" |
        of_memory >"$work/list"
    of_memory <"$1" | join -1 2 -2 2 - "$work/list" | awk '$2 != $3' >"$work/different"
    [ ! -s "$work/different" ] || complain "driver_cbids.def: $(cat "$work/different")"
}

# compile OPTION...: with the headers in $includes.
compile() {
    # shellcheck disable=SC2086 # one word an option
    "$compiler" -std=gnu11 "-I$work" "-I$here" "-I$root/collector/inject/cupti" $includes "$@"
}

check() {
    folders=$(echo "$1" | tr , ' ')
    # shellcheck disable=SC2086 # one word a folder
    ids=$(find_header cupti_driver_cbid.h $folders) cuda=$(find_header cuda.h $folders)
    [ -n "$ids" ] && [ -n "$cuda" ] || return 0
    cuda_version=$(sed -n 's/^#define CUDA_VERSION *//p' "$cuda")
    [ "$cuda_version" -ge 11080 ] || return 0
    checked=$((checked + 1))
    numbers "$ids" >"$work/numbers"
    compare_list "$work/numbers"
    sed -n 's/^ *{\([0-9]*\), "\([A-Za-z0-9_]*\)".*/\1 \2/p' \
        "$root/collector/inject/cupti/cupti_decoders.c" | sort -k 2 >"$work/ours"
    join -1 2 -2 2 "$work/ours" "$work/numbers" |
        awk '{ print "CALL(" $2 ", " $1 ")" }' >"$work/calls.def"
    known=$(wc -l <"$work/calls.def") all=$(wc -l <"$work/ours")
    [ "$all" -gt 50 ] || complain "the table of calls was not found"
    includes=
    for folder in $folders; do includes="$includes -isystem $folder"; done
    version=$(sed -n 's/^#define CUPTI_API_VERSION *//p' "$(dirname "$ids")/cupti_version.h")
    if compile -fsyntax-only "$here/check_headers.c"; then
        asserts=$(compile -E "$here/check_headers.c" | grep -o _Static_assert | wc -l)
        echo "CUPTI_API_VERSION $version: $known of $all calls known, $asserts assertions hold"
    else
        complain "$1"
    fi
    [ "$cuda_version" -ge 13000 ] || return 0
    for file in "$root"/simulate/driver/driver_*.c "$root"/fixtures/standin/program/*.c; do
        # shellcheck disable=SC2086 # one word an option
        "$compiler" -std=gnu11 -fsyntax-only -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE \
            -DMEMTRACE_VENDOR_HEADERS -I"$root/simulate/driver" -D__CUDA_API_VERSION_INTERNAL $includes "$file" ||
            complain "$file does not agree with $cuda"
    done
    echo "CUDA $cuda_version: the stand-in has its signatures"
}

checked=0
[ $# -gt 0 ] || IFS=:
# shellcheck disable=SC2046,SC2086 # one word a set of folders
[ $# -gt 0 ] || set -- ${MEMTRACE_CUPTI_HEADERS:-$(toolkits | tr '\n' ':')}
unset IFS
for set in "$@"; do
    [ -z "$set" ] || check "$set"
done
[ "$checked" -gt 0 ] || exit 77
exit $status
