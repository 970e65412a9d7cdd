#!/bin/sh
# emulate.sh COMMAND...: runs a command in which this machine starts programs for aarch64 through
# qemu-user, also those that other programs start. Needs qemu-aarch64-static and Linux 6.7, whose
# user namespaces have a table of foreign programs (binfmt_misc) of their own: nothing outside of
# the command changes, and no root is needed. MEMTRACE_SYSROOT is the folder of make_sysroot.sh.
# QEMU_PAGE_BYTES is the size of a page that programs see, 4096 if it is not set. Tests find
# MEMTRACE_EMULATED set: the other programs of the machine are not for aarch64. objcopy and strip
# are those of the cross compiler.
set -eu
if [ "${1:-}" != --inside ]; then
    qemu=$(command -v qemu-aarch64-static) || {
        echo "emulate.sh: qemu-aarch64-static is missing: install qemu-user-static" >&2
        exit 77
    }
    here=$(cd "$(dirname "$0")" && pwd)
    sysroot=${MEMTRACE_SYSROOT:-$here/../../build/aarch64-sysroot}
    [ -f "$sysroot/complete" ] || {
        echo "emulate.sh: make_sysroot.sh did not make '$sysroot': set MEMTRACE_SYSROOT" >&2
        exit 77
    }
    QEMU_LD_PREFIX=$(cd "$sysroot" && pwd)
    PATH=/usr/aarch64-linux-gnu/bin:$PATH
    export QEMU_LD_PREFIX MEMTRACE_EMULATED=1 PATH
    exec unshare --user --map-root-user --mount --propagation private \
        "$here/emulate.sh" --inside "$qemu" "$@"
fi
qemu=$2
shift 2
table=/proc/sys/fs/binfmt_misc
mount -t binfmt_misc binfmt_misc "$table" || {
    echo "emulate.sh: this kernel has no binfmt_misc for user namespaces (Linux 6.7)" >&2
    exit 77
}
# The recorder starts the loader that the program names, so it must exist at this path.
mount -t overlay overlay -o "lowerdir=/usr/lib:$QEMU_LD_PREFIX/lib:$QEMU_LD_PREFIX/usr/lib" /usr/lib || {
    echo "emulate.sh: this kernel has no overlay file system for user namespaces (Linux 5.11)" >&2
    exit 77
}
[ -z "${QEMU_PAGE_BYTES:-}" ] || export QEMU_PAGESIZE="$QEMU_PAGE_BYTES"
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
echo ":memtrace-aarch64:M::$magic:$mask:$qemu:F" >"$table/register"
exec "$@"
