# Man pages, made from the sections of docs/reference.md, if Python is there.
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "man pages: OFF (no Python)")
  return()
endif()
set(reference ${PROJECT_SOURCE_DIR}/docs/reference.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${reference})
file(STRINGS ${reference} sections REGEX "^## memtrace ")
set(manuals ${CMAKE_BINARY_DIR}/man/memtrace.1)
foreach(section IN LISTS sections)
  string(REPLACE "## memtrace " "" command ${section})
  list(APPEND manuals ${CMAKE_BINARY_DIR}/man/memtrace-${command}.1)
endforeach()
add_custom_command(OUTPUT ${manuals}
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/packaging/make_man.py ${PROJECT_VERSION}
    ${reference} ${CMAKE_BINARY_DIR}/man
  DEPENDS ${reference} ${PROJECT_SOURCE_DIR}/packaging/make_man.py VERBATIM)
# Packages of Debian have them compressed, without a time.
if(MEMTRACE_COMPRESS_MAN)
  list(TRANSFORM manuals APPEND .gz OUTPUT_VARIABLE compressed)
  add_custom_command(OUTPUT ${compressed} COMMAND gzip -9nkf ${manuals} DEPENDS ${manuals} VERBATIM)
  set(manuals ${compressed})
endif()
add_custom_target(manuals ALL DEPENDS ${manuals})
install(FILES ${manuals} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
