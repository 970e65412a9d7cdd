# Modules: code that needs a library which a machine may lack (cairo, libdw) is a library of its own,
# which the program loads when it needs it. A library `mt_NAME` has this code, and `mt_NAME_loaded`
# has the same functions, which call those of the module. A program that is linked with archives
# (MEMTRACE_STATIC_LIBRARIES) and the programs of the tests have the code itself.

# mt_add_module(MODULE LIBRARY SOURCE EXPORTS): makes libMODULE.so of the archive LIBRARY. SOURCE has
# the functions that the version script EXPORTS names; it is compiled again, so that they are there.
function(mt_add_module module library source exports)
  if(MEMTRACE_STATIC_LIBRARIES)
    return()
  endif()
  add_library(${module} MODULE ${source})
  target_link_libraries(${module} PRIVATE mt_flags ${library})
  target_include_directories(${module} PRIVATE $<TARGET_PROPERTY:${library},INCLUDE_DIRECTORIES>)
  target_link_options(${module} PRIVATE -Wl,-u,mt_memory_rules_set
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/${exports} -Wl,-z,nodelete)
  set_target_properties(${module} PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${exports}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  mt_install_private(${module})
  set_property(GLOBAL APPEND PROPERTY MEMTRACE_MODULES ${module})
endfunction()

# Links `library` or, in programs that load modules and in builds without it, `library`_loaded.
function(mt_link_module user library)
  if(TARGET ${library})
    set(loads $<BOOL:$<TARGET_PROPERTY:MEMTRACE_LOADS_MODULES>>)
    target_link_libraries(${user} PRIVATE $<IF:${loads},${library}_loaded,${library}>)
  else()
    target_link_libraries(${user} PRIVATE ${library}_loaded)
  endif()
endfunction()

function(mt_load_modules program)
  get_property(modules GLOBAL PROPERTY MEMTRACE_MODULES)
  if(modules)
    set_target_properties(${program} PROPERTIES MEMTRACE_LOADS_MODULES ON)
    add_dependencies(${program} ${modules})
  endif()
endfunction()
