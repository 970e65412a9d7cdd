# What remains to be tested in a build without an annex (MEMTRACE_DRY_RUN, MEMTRACE_FLEET).
set(absent_files "")
foreach(annex DRY_RUN:simulate FLEET:fleet)
  string(REPLACE ":" ";" annex ${annex})
  list(GET annex 0 option)
  list(GET annex 1 folder)
  if(NOT MEMTRACE_${option})
    file(GLOB_RECURSE files ${PROJECT_SOURCE_DIR}/${folder}/*.[ch]
      ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.h)
    list(APPEND absent_files ${files})
  endif()
endforeach()
list(TRANSFORM absent_files REPLACE ".*/" "")

# Tests of whole programs that use an annex, among other things.
set(absent_tests "")
if(NOT MEMTRACE_DRY_RUN)
  list(APPEND absent_tests project.completion project.schemas project.dry_run_python golden.ci
    golden.pages golden.pages_torch record.dry_run record.dry_run_hostile record.installed
    fault.sweep_memory fault.sweep_io)
endif()
if(NOT MEMTRACE_FLEET)
  list(APPEND absent_tests project.hostile_names project.schemas golden.charts golden.pages
    golden.pages_torch record.ends record.identity record.killed record.redact fault.sweep_memory
    fault.sweep_io)
endif()

# mt_remove_absent(LIST): removes the files that include one of an absent annex.
function(mt_remove_absent list)
  set(kept "")
  foreach(file IN LISTS ${list})
    file(STRINGS ${file} includes REGEX "^# *include \"")
    list(TRANSFORM includes REPLACE "^# *include \"(.*/)?([^/]*)\".*" "\\2")
    set(is_kept ON)
    foreach(name IN LISTS includes)
      if(name IN_LIST absent_files)
        set(is_kept OFF)
      endif()
    endforeach()
    if(is_kept)
      list(APPEND kept ${file})
    endif()
  endforeach()
  set(${list} "${kept}" PARENT_SCOPE)
endfunction()

# Headers of tests that include them.
file(GLOB headers ${CMAKE_CURRENT_SOURCE_DIR}/*/*.h)
set(kept_headers ${headers})
mt_remove_absent(kept_headers)
list(REMOVE_ITEM headers ${kept_headers})
list(TRANSFORM headers REPLACE ".*/" "")
list(APPEND absent_files ${headers})
