#!/bin/sh
# check_layers.sh must find a planted wrong include, a twin and a printf.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/check_layers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

plant() {
    rm -rf "$tree"
    mkdir -p "$tree/base" "$tree/analyzer/replay" "$tree/render" "$tree/cli"
    echo 'int a;' >"$tree/base/arena.h"
    echo '#include "arena.h"' >"$tree/analyzer/replay/replay.h"
    echo '#include "replay.h"' >"$tree/render/chart.c"
}

must_fail() {
    if "$check" "$tree" >"$tree/out" 2>&1; then
        echo "check_layers passed although $1" >&2
        exit 1
    fi
}

plant
"$check" "$tree"
echo '#include "replay.h"' >"$tree/base/arena.c"
must_fail "base includes analyzer"
plant
echo '#include "unknown.h"' >"$tree/cli/main.c"
must_fail "an include is nobody's"
plant
cp "$tree/base/arena.h" "$tree/cli/arena.h"
must_fail "two headers have one name"
plant
echo 'void f(void) { printf("x"); }' >"$tree/render/chart.c"
must_fail "a library prints"
