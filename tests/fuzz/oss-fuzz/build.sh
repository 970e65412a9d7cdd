#!/bin/bash -eu
# Builds the fuzz targets as OSS-Fuzz wants them: it sets CC, CFLAGS, LIB_FUZZING_ENGINE, OUT
# and WORK, and brings the sanitizers in CFLAGS. Runs anywhere else with the same variables:
#
#     CC=clang CFLAGS="-O1 -g -fsanitize=address,fuzzer-no-link" \
#         LIB_FUZZING_ENGINE=-fsanitize=fuzzer OUT=/tmp/out WORK=/tmp/work build.sh
root=$(cd "$(dirname "$0")/../../.." && pwd)
fuzz=$root/tests/fuzz
mkdir -p "$OUT" "$WORK"

# Without libraries that are not instrumented: cairo for PNG, libdw for names of machine code,
# ncurses for view, SQLite for sql.
cmake -S "$root" -B "$WORK/build" -G Ninja -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="$CFLAGS" \
    -DMEMTRACE_FUZZ=ON -DMEMTRACE_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DMEMTRACE_ASSERT=ON \
    -DMEMTRACE_CAIRO=OFF -DMEMTRACE_LIBDW=OFF -DMEMTRACE_NCURSES=OFF -DMEMTRACE_SQLITE=OFF
cmake --build "$WORK/build" --target fuzz_all

for program in "$WORK"/build/fuzz_*; do
    [ -x "$program" ] || continue
    target=${program##*/fuzz_}
    cp "$program" "$OUT/"
    "$fuzz/run.py" "$WORK/build" zip "$OUT/fuzz_${target}_seed_corpus.zip" "$target"
    [ ! -e "$fuzz/dict/$target.dict" ] || cp "$fuzz/dict/$target.dict" "$OUT/fuzz_$target.dict"
    [ ! -e "$fuzz/options/$target.options" ] ||
        cp "$fuzz/options/$target.options" "$OUT/fuzz_$target.options"
done
