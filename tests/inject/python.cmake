# The reader of Python stacks, loaded into the machine's own interpreter. Any
# other one: python3.X tests/inject/check_python_stacks.py BUILD/tests/libpython_probe.so
mt_inject_test(python_line)
mt_inject_test(python_layout)

set(inject ${PROJECT_SOURCE_DIR}/collector/inject)
add_library(python_probe SHARED python_probe.c ${inject}/stacks/python_check.c
  ${inject}/stacks/python_layout.c ${inject}/collect/settings.c
  ${PROJECT_SOURCE_DIR}/collector/tape/python_code.c)
target_include_directories(python_probe PRIVATE
  $<TARGET_PROPERTY:memtrace-inject,INCLUDE_DIRECTORIES>)
target_compile_options(python_probe PRIVATE -fvisibility=hidden -ftls-model=initial-exec)
target_compile_definitions(python_probe PRIVATE _GNU_SOURCE)
target_link_libraries(python_probe PRIVATE mt_plain_flags Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(python_probe PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_test(NAME inject.python_stacks COMMAND Python3::Interpreter
  ${CMAKE_CURRENT_SOURCE_DIR}/check_python_stacks.py $<TARGET_FILE:python_probe>)
