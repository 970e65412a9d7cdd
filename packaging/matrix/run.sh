#!/bin/sh
# run.sh FOLDER [SYSTEM[:COMPILER,...]...]: builds and tests memtrace in root file systems that
# debootstrap makes in FOLDER, one after the other, and removes them. COMPILER is a package, such as
# clang-19. Without it, run.sh uses the compilers of its own list. Needs root, debootstrap, a
# package index, and 3 GiB of disk space and ten minutes for each system. A root file system that is
# already there is used. Prints a table of what failed (docs/install.md, "Compilers and systems").
# Logs are in FOLDER/SYSTEM.log. debootstrap checks signatures with the keys in DEBIAN_KEYRING and
# UBUNTU_KEYRING, by default the files of the packages debian-archive-keyring and ubuntu-keyring.
set -eu
folder=${1:?usage: run.sh FOLDER [SYSTEM[:COMPILER,...]...]}
shift
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && git rev-parse --show-toplevel)
debian=${DEBIAN_MIRROR:?set it to the address of a mirror of Debian}
ubuntu=${UBUNTU_MIRROR:?set it to the address of a mirror of Ubuntu}
debian_keyring=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
ubuntu_keyring=${UBUNTU_KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
common=build-essential,ca-certificates,git,ninja-build,pkg-config,libzstd-dev,zlib1g-dev,libcairo2-dev
common=$common,libdw-dev,libncurses-dev,libsqlite3-dev,libcmocka-dev,libjansson-dev,python3,python3-venv,python3-yaml,zstd,binutils

# system MIRROR COMPONENTS COMPILERS: what is installed and tried there.
describe() {
    case $1 in
    bullseye) echo "$debian main gcc-9 gcc-10 clang-11 clang-13" ;;
    bookworm) echo "$debian main gcc-11 gcc-12 clang-14 clang-16" ;;
    trixie) echo "$debian main gcc-14 clang-19" ;;
    sid) echo "$debian main gcc clang" ;;
    jammy) echo "$ubuntu main,universe gcc-11 clang-14" ;;
    noble) echo "$ubuntu main,universe gcc-13 clang-18" ;;
    *) return 1 ;;
    esac
}

try() {
    system=${1%%:*}
    root=$folder/$system
    chosen=$(echo "${1#"$system"}" | tr ':,' '  ')
    # shellcheck disable=SC2046 # words of the description
    set -- $(describe "$system")
    mirror=$1 components=$2
    shift 2
    # shellcheck disable=SC2086 # one word a compiler
    [ -z "$chosen" ] || set -- $chosen
    packages=$common
    for compiler in "$@"; do packages=$packages,$compiler; done
    script=/usr/share/debootstrap/scripts/$system
    # Releases that are newer than this debootstrap use the script of the first one of their kind.
    if [ ! -f "$script" ]; then
        script=/usr/share/debootstrap/scripts/sid
        [ "$mirror" = "$debian" ] || script=/usr/share/debootstrap/scripts/gutsy
    fi
    keyring=$debian_keyring
    [ "$mirror" = "$debian" ] || keyring=$ubuntu_keyring
    [ -f "$root/etc/os-release" ] || debootstrap --variant=minbase --keyring="$keyring" --components="$components" \
        --include="$packages,cmake" "$system" "$root" "$mirror" "$script"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
    # CMake before 3.22: the package index has newer ones.
    if chroot "$root" cmake --version | grep -qE ' 3\.(1[0-9]|2[01])\.'; then
        chroot "$root" sh -c 'python3 -m venv /opt/cmake &&
            PIP_CERT=/etc/ssl/certs/ca-certificates.crt /opt/cmake/bin/pip install --quiet "cmake<4"'
    fi
    mkdir -p "$root/src/memtrace"
    git -C "$source" archive HEAD | tar -x -C "$root/src/memtrace"
    cp "$here/build_in.sh" "$root/src"
    built=0
    chroot "$root" sh /src/build_in.sh "$@" >&3 || built=1
    for log in "$root"/src/build-*.log; do
        echo "== $log"
        cat "$log"
    done
    return "$built"
}

clean() {
    mountpoint -q "$folder/$1/proc" && umount "$folder/$1/proc"
    rm -rf --one-file-system "${folder:?}/$1"
}

[ $# != 0 ] || set -- bullseye bookworm trixie sid jammy noble
# Before anything is done: FOLDER/SYSTEM is removed at the end, whatever SYSTEM is.
for system in "$@"; do
    describe "${system%%:*}" >/dev/null || {
        echo "run.sh: unknown system '$system'" >&2
        exit 2
    }
done
mkdir -p "$folder"
failed=0
for word in "$@"; do
    system=${word%%:*}
    # Not behind || or if, where the shell would ignore -e in the function.
    set +e
    (set -e; try "$word") 3>&1 >"$folder/$system.log" 2>&1
    status=$?
    set -e
    [ "$status" = 0 ] || {
        echo "$system: failed, see $folder/$system.log"
        failed=1
    }
    clean "$system" || true
done
exit "$failed"
