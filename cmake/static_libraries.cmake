# MEMTRACE_STATIC_LIBRARIES: links the archives of a library and of all libraries that it needs, in
# place of shared libraries. libc, libm, libpthread, libdl and librt stay shared: they belong to the
# system that the program runs on.

# Archives of this system may expect functions of a libc that is newer than the one we link for.
if(MEMTRACE_STATIC_LIBRARIES)
  file(REMOVE ${CMAKE_BINARY_DIR}/archives.txt)
  include(CheckFunctionExists)
  check_function_exists(arc4random_buf MEMTRACE_LIBC_HAS_ARC4RANDOM)
  add_library(mt_newer_libc STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/packaging/wheel/newer_libc.c)
  target_link_libraries(mt_newer_libc PRIVATE mt_plain_flags)
endif()

# Sets `out` to what the linker gets for the library `name`: the path of its archive, -lNAME for a
# part of libc, or nothing if the archive is missing. A module names libraries of which it may need
# no function; the linker reports those that it does need.
function(mt_find_archive folders name out)
  if(name MATCHES "^(c|m|pthread|dl|rt)$")
    set(${out} -l${name} PARENT_SCOPE)
    return()
  endif()
  find_library(MEMTRACE_ARCHIVE_${name} NAMES lib${name}.a HINTS ${folders} NO_CACHE)
  if(MEMTRACE_ARCHIVE_${name})
    set(${out} ${MEMTRACE_ARCHIVE_${name}} PARENT_SCOPE)
  else()
    set(${out} "" PARENT_SCOPE)
  endif()
endfunction()

# Replaces what PkgConfig::`prefix` links, if MEMTRACE_STATIC_LIBRARIES is set.
function(mt_link_archives prefix)
  if(NOT MEMTRACE_STATIC_LIBRARIES)
    return()
  endif()
  set(archives "")
  foreach(name IN LISTS ${prefix}_STATIC_LIBRARIES)
    mt_find_archive("${${prefix}_STATIC_LIBRARY_DIRS}" ${name} archive)
    list(APPEND archives ${archive})
  endforeach()
  list(REMOVE_DUPLICATES archives)
  # packaging/wheel/build.py reads it for the licenses.
  file(APPEND ${CMAKE_BINARY_DIR}/archives.txt "archives of ${prefix}: ${archives}\n")
  # Archives that need each other: the linker searches them until nothing new is found.
  if(NOT MEMTRACE_LIBC_HAS_ARC4RANDOM)
    list(APPEND archives mt_newer_libc)
  endif()
  set_target_properties(PkgConfig::${prefix} PROPERTIES
    INTERFACE_LINK_LIBRARIES "-Wl,--start-group;${archives};-Wl,--end-group"
    INTERFACE_LINK_OPTIONS "")
endfunction()
