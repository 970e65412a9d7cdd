# Libraries of other people: found once, here, as imported targets.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd>=1.4.0)

set(MEMTRACE_HAVE_CAIRO OFF)
if(NOT MEMTRACE_CAIRO STREQUAL "OFF")
  if(MEMTRACE_CAIRO STREQUAL "ON")
    set(required REQUIRED)
  else()
    set(required QUIET)
  endif()
  pkg_check_modules(CAIRO ${required} IMPORTED_TARGET cairo>=1.14)
  pkg_check_modules(PNG ${required} IMPORTED_TARGET libpng>=1.6)
  if(CAIRO_FOUND AND PNG_FOUND)
    set(MEMTRACE_HAVE_CAIRO ON)
  endif()
endif()
message(STATUS "PNG pictures (cairo, libpng): ${MEMTRACE_HAVE_CAIRO}")

# The library in the traced process must not depend on what that process has.
find_library(MEMTRACE_STATIC_ZSTD NAMES libzstd.a REQUIRED)
