# For cmake --toolchain: a cross build for aarch64 Linux with Debian's gcc. Its libraries are those
# of make_sysroot.sh, in MEMTRACE_SYSROOT. Tests run in emulate.sh, not through
# CMAKE_CROSSCOMPILING_EMULATOR, which would also start this system's Python in the emulator.
set(MEMTRACE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64-sysroot CACHE PATH
  "Folder of make_sysroot.sh")
get_filename_component(MEMTRACE_SYSROOT ${MEMTRACE_SYSROOT} ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MEMTRACE_SYSROOT)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_SYSROOT ${MEMTRACE_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

# pkg-config finds the libraries of the sysroot and none of this system.
set(ENV{PKG_CONFIG_LIBDIR}
  ${MEMTRACE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${MEMTRACE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${MEMTRACE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
