#!/bin/sh
# Our declarations of NVTX against the real headers, where there are some.
#   check_nvtx_abi.sh COMPILER
# MEMTRACE_NVTX_HEADERS: folders that hold nvtx3/, with colons between them.
set -eu
cd "$(dirname "$0")/../.."
compiler=$1
checked=0

IFS=:
for folder in ${MEMTRACE_NVTX_HEADERS:-/usr/local/cuda/include}; do
    [ -e "$folder/nvtx3/nvToolsExt.h" ] || continue
    payload=
    [ ! -e "$folder/nvtx3/nvToolsExtPayload.h" ] || payload=-DHAVE_PAYLOAD
    "$compiler" $payload -std=c11 -D_DEFAULT_SOURCE -fsyntax-only -w -isystem "$folder" -Icollector/inject/nvtx \
        tests/inject/nvtx_abi_check.c
    checked=$((checked + 1))
done
[ "$checked" -gt 0 ] || {
    echo "no NVTX headers: set MEMTRACE_NVTX_HEADERS"
    exit 77
}
echo "checked against $checked sets of headers"
