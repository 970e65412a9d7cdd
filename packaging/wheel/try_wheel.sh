#!/bin/sh
# try_wheel.sh ROOT WHEEL STANDIN: installs a wheel in an empty root file system as a user who is not
# root, and runs its commands there. ROOT comes from, for example,
#   debootstrap --variant=minbase --include=python3-venv,ca-certificates bookworm ROOT
# STANDIN is build/ci of a checkout: its stand-ins for the driver and CUPTI, and a program that
# allocates. Needs root for chroot. With TRY_TORCH=1 a dry run downloads PyTorch (531 MB).
set -eu
root=$(cd "${1:?}" && pwd) wheel=$2 build=$3
[ "$root" != / ] && [ -f "$root/etc/os-release" ] || {
    echo "try_wheel.sh: $1 is not a root file system of its own" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
work=$root/home/guest
rm -rf "$work"
mkdir -p "$work/standin"
cp "$wheel" "$build/tests/recorded" "$here/../../fixtures/dry_run/gpt.py" "$work"
cp "$build"/standin/lib*.so.* "$work/standin"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# This system's certificates: a proxy before the package index may have its own.
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
grep -q '^guest:' "$root/etc/passwd" ||
    echo 'guest:x:1000:1000::/home/guest:/bin/sh' >>"$root/etc/passwd"
chown -R 1000:1000 "$work"
# Unmounted even after an error: removing ROOT would otherwise remove this system's devices.
trap 'for name in proc dev; do mountpoint -q "$root/$name" && umount "$root/$name"; done' EXIT
trap 'exit 1' HUP INT TERM
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
[ -c "$root/dev/null" ] || mount --bind /dev "$root/dev"

cat >"$work/session.sh" <<'SESSION'
step() {
    printf '\n$ %s\n' "$*"
    start=$(date +%s.%N)
    "$@" || { echo "status $?"; exit 1; }
    printf '(%.1f s)\n' "$(echo "$(date +%s.%N) $start" | awk '{print $1 - $2}')"
}
cd
export LD_LIBRARY_PATH=$HOME/standin MEMTRACE_CUPTI=$HOME/standin/libcupti.so.13
for tool in gcc cc clang make cmake pkg-config; do
    ! command -v $tool || { echo "a compiler or build tool is here"; exit 1; }
done
step id
step head -1 /etc/os-release
step python3 -m venv venv
step venv/bin/pip install --quiet --disable-pip-version-check ./memtrace_gpu-*.whl
. venv/bin/activate
step memtrace --version
step python -m memtrace --version
step memtrace doctor --help
step memtrace record -o run.trace.zst -- ./recorded exit 0
step memtrace analyze run.trace.zst -o report
step ls -l report
if [ "${TRY_TORCH:-}" ]; then
    unset LD_LIBRARY_PATH MEMTRACE_CUPTI
    step pip install --quiet --disable-pip-version-check --no-deps torch==2.11.0 filelock fsspec \
        jinja2 markupsafe mpmath networkx sympy typing_extensions
    step memtrace dry-run --device H200 -o dry.trace.zst -- python gpt.py --batch 8
fi
SESSION
chroot --userspec=1000:1000 "$root" env -i HOME=/home/guest PATH=/usr/bin:/bin \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt TRY_TORCH="${TRY_TORCH:-}" sh /home/guest/session.sh
