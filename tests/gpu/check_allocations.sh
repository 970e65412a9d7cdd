#!/bin/sh
# On a machine with a GPU: each allocation call of driver and runtime is in the
# trace, once, with its size.
#
#   check_allocations.sh BUILD_FOLDER
#
# BUILD_FOLDER: of a build with tests (cmake --preset dev). Needs nvcc for the
# runtime's part, which is left out without it.
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
set -- "$build/memtrace" "$build/libmemtrace-inject.so" --gpu
if [ -x "$nvcc" ]; then
    "$nvcc" -o "$build/runtime_allocations" runtime_allocations.cu
    set -- "$@" "$build/runtime_allocations"
else
    echo "check_allocations: no nvcc, so nothing through the runtime" >&2
fi
exec python3 ../check_cupti.py "$@"
