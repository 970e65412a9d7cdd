#!/bin/sh
# check_valgrind.sh PROGRAM CAPTURE: reads, replays and draws without a wrong
# access, an uninitialized value or a leak.
set -eu
[ $# = 2 ] || {
    echo "usage: $0 PROGRAM CAPTURE" >&2
    exit 2
}
program=$1 capture=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 1' HUP INT TERM # ./dev stops it if a build fails; sh would leave the folder there
valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect \
    "$program" analyze "$capture" -o "$out" >"$out/text"
[ -s "$out/text" ]
echo "valgrind: nothing wrong"
