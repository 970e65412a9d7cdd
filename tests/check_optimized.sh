#!/bin/sh
# check_optimized.sh BUILD CAPTURE: the optimized program is hardened, has no wrong access and is as
# fast as before; with a sample of the sweeps, in which allocations and calls fail.
set -eu
tests=$(dirname "$0") build=$1 capture=$2
"$tests/check_hardening.py" "$build/memtrace" "$build"/libmemtrace-*.so
"$tests/check_valgrind.sh" "$build/memtrace" "$capture"
"$tests/check_instructions.py" "$build/memtrace" "$capture"
ctest --test-dir "$build" -L sweep --output-on-failure
