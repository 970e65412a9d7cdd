# PyTorch as a source, against stand-ins of its libraries.
mt_inject_test(torch_versions source_torch_symbols.c source_torch_versions.c)
mt_inject_test(source_torch originals.c torch_facts.c source_torch.c source_torch_allocator.c source_torch_limit.c
  source_torch_reports.c source_torch_scopes.c source_torch_symbols.c
  source_torch_tracker.c source_torch_versions.c)
target_sources(test_source_torch PRIVATE torch_harness.c)
set_target_properties(test_source_torch PROPERTIES ENABLE_EXPORTS ON)
mt_inject_test(torch_recorded)
foreach(test test_torch_versions test_source_torch test_torch_recorded)
  target_compile_definitions(${test} PRIVATE _GNU_SOURCE
    STANDIN_TORCH="${CMAKE_BINARY_DIR}/standin/torch"
    STANDIN_DRIVER="${CMAKE_BINARY_DIR}/standin/libcuda.so.1"
    TORCH_PROGRAM="$<TARGET_FILE:torch_program>")
  add_dependencies(${test} standin_torch_cuda standin_driver torch_program)
endforeach()
