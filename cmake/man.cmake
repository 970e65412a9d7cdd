# Man pages, made from docs/commands, if Python is there.
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "man pages: OFF (no Python)")
  return()
endif()
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/commands/*.md)
set(manuals ${CMAKE_BINARY_DIR}/man/memtrace.1)
foreach(page IN LISTS pages)
  get_filename_component(command ${page} NAME_WE)
  list(APPEND manuals ${CMAKE_BINARY_DIR}/man/memtrace-${command}.1)
endforeach()
add_custom_command(OUTPUT ${manuals}
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/packaging/make_man.py ${PROJECT_VERSION}
    ${PROJECT_SOURCE_DIR}/docs/commands ${CMAKE_BINARY_DIR}/man
  DEPENDS ${pages} ${PROJECT_SOURCE_DIR}/packaging/make_man.py VERBATIM)
# Packages of Debian have them compressed, without a time.
if(MEMTRACE_COMPRESS_MAN)
  list(TRANSFORM manuals APPEND .gz OUTPUT_VARIABLE compressed)
  add_custom_command(OUTPUT ${compressed} COMMAND gzip -9nkf ${manuals} DEPENDS ${manuals} VERBATIM)
  set(manuals ${compressed})
endif()
add_custom_target(manuals ALL DEPENDS ${manuals})
install(FILES ${manuals} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
