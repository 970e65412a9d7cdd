# PyTorch as a source, against stand-ins of its libraries.
mt_inject_test(torch_versions)
mt_inject_test(source_torch torch_harness.c)
set_target_properties(test_source_torch PROPERTIES ENABLE_EXPORTS ON)
mt_inject_test(torch_recorded)
foreach(test test_torch_versions test_source_torch test_torch_recorded)
  target_compile_definitions(${test} PRIVATE _GNU_SOURCE
    STANDIN_TORCH="${CMAKE_BINARY_DIR}/standin/torch"
    STANDIN_DRIVER="${CMAKE_BINARY_DIR}/standin/libcuda.so.1"
    TORCH_PROGRAM="$<TARGET_FILE:torch_program>")
  add_dependencies(${test} standin_torch_cuda standin_driver torch_program)
endforeach()
