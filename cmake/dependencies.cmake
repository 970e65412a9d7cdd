# Libraries of other people: found once, here, as imported targets.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
include(${CMAKE_CURRENT_LIST_DIR}/static_libraries.cmake)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd>=1.4.0)
mt_link_archives(ZSTD)
# The program only: the library in the traced process reads no compressed files of others.
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib>=1.2.11)
mt_link_archives(ZLIB)

# mt_find_optional(NAME WHAT MODULE...): sets MEMTRACE_HAVE_NAME, which is ON if pkg-config has all
# modules and the option MEMTRACE_NAME is not OFF. PkgConfig::NAME links them.
function(mt_find_optional name what)
  set(required QUIET)
  set(have OFF)
  if(MEMTRACE_${name} STREQUAL "ON")
    set(required REQUIRED)
  endif()
  if(NOT MEMTRACE_${name} STREQUAL "OFF")
    pkg_check_modules(${name} ${required} IMPORTED_TARGET ${ARGN})
    if(${name}_FOUND)
      set(have ON)
      mt_link_archives(${name})
    endif()
  endif()
  set(MEMTRACE_HAVE_${name} ${have} PARENT_SCOPE)
  message(STATUS "${what}: ${have}")
endfunction()

mt_find_optional(CAIRO "PNG pictures (cairo)" "cairo>=1.14")
mt_find_optional(LIBDW "names of native frames (libdw)" "libdw>=0.170" libelf)
mt_find_optional(NCURSES "memtrace view (ncurses)" "ncursesw>=6.1")
mt_find_optional(SQLITE "memtrace sql (SQLite)" "sqlite3>=3.31")

# The library in the traced process carries zstd as hidden code. A dependency on libzstd.so.1 would
# put its names in front of those of the program's own libraries. Where there is no libzstd.a, the
# library loads libzstd.so.1 itself, out of sight (collector/inject/collect/zstd_loaded.c).
find_library(MEMTRACE_STATIC_ZSTD NAMES libzstd.a HINTS ${ZSTD_LIBRARY_DIRS})
set(MEMTRACE_ZSTD_IS_LINKED OFF)
if(MEMTRACE_STATIC_ZSTD AND NOT MEMTRACE_ZSTD STREQUAL "SHARED")
  set(MEMTRACE_ZSTD_IS_LINKED ON)
elseif(MEMTRACE_ZSTD STREQUAL "STATIC")
  message(FATAL_ERROR "libzstd.a was not found. MEMTRACE_ZSTD=SHARED works without it.")
endif()
message(STATUS "zstd within the injected library: ${MEMTRACE_ZSTD_IS_LINKED}")

set(MEMTRACE_HAVE_MPI OFF)
if(MEMTRACE_FLEET AND NOT MEMTRACE_MPI STREQUAL "OFF")
  if(MEMTRACE_MPI STREQUAL "ON")
    find_package(MPI REQUIRED COMPONENTS C)
  else()
    find_package(MPI QUIET COMPONENTS C)
  endif()
  if(MPI_C_FOUND)
    set(MEMTRACE_HAVE_MPI ON)
  endif()
endif()
message(STATUS "fleet over MPI: ${MEMTRACE_HAVE_MPI}")
