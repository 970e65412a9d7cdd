# cmake -DMANIFEST=install_manifest.txt -P uninstall.cmake
# Removes exactly the files that the last `cmake --install` wrote, below $DESTDIR if that is set, and
# the folders of memtrace's own name that are then empty.
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST} does not exist: nothing was installed from this build")
endif()
# Without an encoding, file(STRINGS) cuts a path at a character that is not ASCII.
file(STRINGS "${MANIFEST}" files ENCODING UTF-8)
foreach(file IN LISTS files)
  set(path "$ENV{DESTDIR}${file}")
  if(EXISTS "${path}" OR IS_SYMLINK "${path}")
    file(REMOVE "${path}")
    message(STATUS "removed ${path}")
  else()
    message(STATUS "was already removed: ${path}")
  endif()
  # rmdir removes only empty folders. file(GLOB) would read "[x]" in a path as a pattern.
  cmake_path(GET path PARENT_PATH folder)
  while(folder MATCHES "/memtrace(/|$)|/memtrace-python(/|$)")
    execute_process(COMMAND rmdir -- "${folder}" OUTPUT_QUIET ERROR_QUIET)
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
endforeach()
