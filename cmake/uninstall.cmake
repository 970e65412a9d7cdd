# cmake -DMANIFEST=install_manifest.txt -P uninstall.cmake
# Removes exactly the files that the last `cmake --install` wrote, below $DESTDIR if that is set, and
# the folders of memtrace's own name that are then empty.
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST} does not exist: nothing was installed from this build")
endif()
# Neither file(STRINGS) nor a list: they cut or join paths at brackets, semicolons and characters that
# are not ASCII.
file(READ "${MANIFEST}" rest)
# CMake 3.25 cuts a prefix at a semicolon, and the first part may be a file of others.
set(documents "LICENSE|NOTICE|CHANGELOG[.]md|README[.]md|changelog[.]gz|copyright")
string(REGEX REPLACE "/[^\n]*(memtrace[^\n]*|/(${documents}))(\n|$)" "" others "${rest}")
if(others)
  message(FATAL_ERROR "${MANIFEST} has paths that are not memtrace's: nothing is removed\n${others}")
endif()
while(NOT rest STREQUAL "")
  string(FIND "${rest}" "\n" length)
  string(SUBSTRING "${rest}" 0 ${length} file)
  if(length EQUAL -1)
    set(rest "")
  else()
    math(EXPR next "${length} + 1")
    string(SUBSTRING "${rest}" ${next} -1 rest)
  endif()
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
endwhile()
