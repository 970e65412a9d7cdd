#!/bin/sh
# make_sysroot.sh FOLDER: unpacks Debian's arm64 libraries that memtrace and its tests link into
# FOLDER, for toolchain.cmake. Needs apt-get, dpkg-deb, 400 MB of disk space, and the address of a
# mirror of Debian in DEBIAN_MIRROR; no root. apt keeps its state in FOLDER, so this system's
# packages and architectures stay as they are. It checks the signatures of the mirror. A finished
# FOLDER is left alone; delete it to get newer packages.
set -eu
folder=${1:?usage: make_sysroot.sh FOLDER}
suite=${DEBIAN_SUITE:-bookworm}
mirror=${DEBIAN_MIRROR:?set it to the address of a mirror of Debian}
keyring=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
packages="libc6-dev libzstd-dev zlib1g-dev libcairo2-dev libpng-dev libdw-dev libncurses-dev libsqlite3-dev libcmocka-dev libjansson-dev"

[ ! -f "$folder/complete" ] || exit 0
mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial"
folder=$(cd "$folder" && pwd)
: >"$folder/apt/status"
echo "deb [signed-by=$keyring] $mirror $suite main" >"$folder/apt/sources.list"

arm_apt() {
    apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
        -o APT::Install-Recommends=false -o APT::Sandbox::User= \
        -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status" \
        -o Dir::Cache="$folder/apt" -o Dir::Etc::SourceList="$folder/apt/sources.list" \
        -o Dir::Etc::SourceParts=- -o Debug::NoLocking=true "$@"
}

arm_apt update
# shellcheck disable=SC2086 # one word a package
arm_apt install --download-only $packages
for archive in "$folder"/apt/archives/*.deb; do
    dpkg-deb -x "$archive" "$folder"
done
rm -rf "$folder/apt" "$folder/usr/share/doc" "$folder/usr/share/man"
: >"$folder/complete"
