# NVTX, NVML, thread names.
mt_inject_test(thread_names)
target_link_options(test_thread_names PRIVATE -Wl,--wrap=stat,--wrap=fstat)
mt_inject_test(nvtx)
mt_inject_test(nvtx_tool)
target_compile_definitions(test_nvtx_tool PRIVATE NVTX_TOOL="$<TARGET_FILE:standin_nvtx_tool>")
add_dependencies(test_nvtx_tool standin_nvtx_tool)
mt_inject_test(nvtx_payload)
mt_inject_test(nccl)
target_compile_definitions(test_nccl PRIVATE _GNU_SOURCE)
target_link_libraries(test_nccl PRIVATE standin_nccl)
set_target_properties(test_nccl PROPERTIES ENABLE_EXPORTS ON)
add_test(NAME inject.nvtx_abi COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/check_nvtx_abi.sh
  ${CMAKE_C_COMPILER})
set_tests_properties(inject.nvtx_abi PROPERTIES SKIP_RETURN_CODE 77)

# NVML: the test is the driver, for the stand-in that asks it.
mt_inject_test(nvml)
set_target_properties(test_nvml PROPERTIES ENABLE_EXPORTS ON)
target_compile_definitions(test_nvml PRIVATE STANDIN="${CMAKE_BINARY_DIR}/standin")
add_dependencies(test_nvml standin_nvml standin_driver)

# The whole way, into a trace.
add_test(NAME inject.nvtx COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/check_nvtx.py
  $<TARGET_FILE:memtrace> $<TARGET_FILE:memtrace-inject> ${CMAKE_BINARY_DIR}/standin
  ${CMAKE_C_COMPILER})
add_test(NAME inject.nvml COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/check_nvml.py
  $<TARGET_FILE:memtrace> $<TARGET_FILE:memtrace-inject> ${CMAKE_BINARY_DIR}/standin)
