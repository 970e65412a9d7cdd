#!/bin/sh
# check_layers.py must find a planted wrong include, call, circle, twin and printf.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/check_layers.py
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

plant() {
    rm -rf "$tree"
    mkdir -p "$tree/base" "$tree/analyzer/data" "$tree/analyzer/replay" "$tree/render" "$tree/cli" \
        "$tree/build/data" "$tree/build/replay"
    echo 'int a;' >"$tree/base/arena.h"
    echo 'int b;' >"$tree/analyzer/data/holding.h"
    printf '#include "arena.h"\n#include "holding.h"\n' >"$tree/analyzer/replay/replay.h"
    echo '#include "replay.h"' >"$tree/render/chart.c"
    echo 'int role(void) { return 1; }' >"$tree/analyzer/data/role.c"
    echo 'int role(void); int replay(void) { return role(); }' >"$tree/analyzer/replay/replay.c"
}

compile() {
    ${CC:-cc} -c "$tree/analyzer/data/role.c" -o "$tree/build/data/role.c.o"
    ${CC:-cc} -c "$tree/analyzer/replay/replay.c" -o "$tree/build/replay/replay.c.o"
}

must_pass() {
    "$check" --build "$tree/build" "$tree"
}

must_fail() {
    if "$check" --build "$tree/build" "$tree" >"$tree/out" 2>&1; then
        echo "check_layers passed although $1" >&2
        exit 1
    fi
    grep -q "$2" "$tree/out" || {
        echo "check_layers did not say '$2' when $1:" >&2
        cat "$tree/out" >&2
        exit 1
    }
}

plant
compile
must_pass
echo '#include "replay.h"' >"$tree/base/arena.c"
must_fail "base includes analyzer" "base/arena.c must not include analyzer/replay/replay.h"

plant
compile
echo '#include "replay.h"' >"$tree/analyzer/data/role.c"
must_fail "a folder includes one above it" "must not include analyzer/replay/replay.h"

plant
echo 'int replay(void); int role(void) { return replay(); }' >"$tree/analyzer/data/role.c"
echo 'int replay(void) { return 1; }' >"$tree/analyzer/replay/replay.c"
compile
must_fail "a folder calls one above it" "must not call replay"

plant
mkdir -p "$tree/build/base" "$tree/build/cli"
echo 'int tables(void) { return 1; }' >"$tree/cli/annexes.c"
echo 'int tables(void); int arena(void) { return tables(); }' >"$tree/base/arena.c"
compile
for file in cli/annexes.c base/arena.c; do
    ${CC:-cc} -c "$tree/$file" -o "$tree/build/$file.o"
done
must_fail "a library calls the tables of the program" "base/arena.c must not call tables"

plant
compile
mkdir -p "$tree/fleet/data"
echo 'int c;' >"$tree/fleet/data/rank.h"
echo '#include "rank.h"' >"$tree/cli/main.c"
must_fail "the core includes an annex" "cli/main.c must not include fleet/data/rank.h"
echo '#include "rank.h"' >"$tree/cli/annexes.c"
rm "$tree/cli/main.c"
must_pass
echo '#include "annexes.c"' >"$tree/base/arena.c"
must_fail "a lower layer uses a table of annexes" "base/arena.c must not include cli/annexes.c"

plant
compile
echo '#include "unknown.h"' >"$tree/cli/main.c"
must_fail "an include is nobody's" "which is in no layer"

plant
compile
cp "$tree/base/arena.h" "$tree/cli/arena.h"
must_fail "two headers have one name" "two files have one name"

plant
compile
echo 'void f(void) { printf("x"); }' >"$tree/render/chart.c"
must_fail "a library prints" "must not print or exit"

plant
compile
printf "char quote = '\"';\nvoid f(void) { printf(\"x\"); }\n" >"$tree/render/chart.c"
must_fail "a library prints behind a quote" "must not print or exit"

plant
compile
for room in 1 2 3 4; do
    echo "#include \"room$((room % 4 + 1)).h\"" >"$tree/cli/room$room.h"
done
must_fail "four rooms need each other" "a circle of 4 rooms"

plant
compile
for pair in 1 2 3 4 5 6 7 8 9; do
    echo "#include \"right$pair.h\"" >"$tree/cli/left$pair.h"
    echo "#include \"left$pair.h\"" >"$tree/cli/right$pair.h"
done
must_fail "there are nine circles" "9 circles of rooms"
