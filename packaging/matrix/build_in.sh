#!/bin/sh
# build_in.sh COMPILER...: runs inside the root file system of a system. Builds /src/memtrace with each
# compiler and runs the tests that use everything: the recorder on stand-ins for a GPU, analysis,
# pictures. Prints one line for each compiler. Exits with 1 if one of them failed.
set -u
. /etc/os-release
export LC_ALL=C.UTF-8 PATH="/opt/cmake/bin:$PATH"
glibc=$(ldd --version | sed -n '1s/.* //p')
cmake=$(cmake --version | sed -n '1s/.* //p')
status=0

for compiler in "$@"; do
    version=$($compiler -dumpfullversion -dumpversion 2>/dev/null || $compiler -dumpversion)
    build=/src/build-$compiler
    result=built
    cmake -S /src/memtrace -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$compiler" \
        -DMEMTRACE_MPI=OFF -DMEMTRACE_LTO=OFF -DBUILD_TESTING=ON \
        >"$build.log" 2>&1 || result="configure failed"
    [ "$result" != built ] || cmake --build "$build" -- -k 0 >>"$build.log" 2>&1 || result="build failed"
    if [ "$result" = built ]; then
        # Before the tests: their output may contain the word.
        warnings=$(grep -c 'warning: ' "$build.log")
        (cd "$build" && ctest -R '^(unit\..*|golden\.commands_.*|record\.(ends|installed|doctor))$' -j2 --output-on-failure) \
            >>"$build.log" 2>&1 || result="tests failed"
        result="$result, $warnings warnings: $(grep -E '^[0-9]+% tests passed' "$build.log" | tail -1)"
    fi
    case $result in
    built*) ;;
    *) status=1 ;;
    esac
    printf '%s | glibc %s | CMake %s | %s %s | %s\n' "$PRETTY_NAME" "$glibc" "$cmake" "$compiler" \
        "$version" "$result"
done
exit "$status"
