# CUPTI: what is alive, decoders and subscription (on an imitated library), the
# binary interface. The whole, on the stand-in driver: differential.cupti.
mt_inject_test(cupti_live cupti_live.c)
set(decoders cupti_array_bytes.c cupti_capture.c cupti_contexts.c cupti_linear.c cupti_live.c cupti_pools.c
  cupti_sharing.c cupti_table.c cupti_tell.c cupti_virtual.c)
foreach(test cupti_subscribe cupti_calls cupti_memory)
  mt_inject_test(${test} source_cupti.c cupti_place.c cupti_subscribe.c ${decoders})
endforeach()
mt_inject_test(cupti_guest cupti_guest.c cupti_place.c)
mt_inject_test(cupti_library cupti_library.c originals.c ${decoders})
target_compile_definitions(test_cupti_library PRIVATE _GNU_SOURCE NOT_CUPTI="$<TARGET_FILE:cuda_tool>"
  STANDIN_CUPTI="$<TARGET_FILE:standin_cupti>")
add_dependencies(test_cupti_library cuda_tool standin_cupti)
add_library(cuda_tool MODULE cuda_tool.c)
target_link_libraries(cuda_tool PRIVATE mt_plain_flags)
target_compile_definitions(test_cupti_subscribe PRIVATE CUDA_TOOL="$<TARGET_FILE:cuda_tool>"
  DRIVER_CBIDS="${PROJECT_SOURCE_DIR}/simulate/driver/driver_cbids.def")
add_dependencies(test_cupti_subscribe cuda_tool)
add_test(NAME inject.cupti_headers
  COMMAND ${PROJECT_SOURCE_DIR}/tests/cupti_headers/check_headers.sh)
set_tests_properties(inject.cupti_headers PROPERTIES SKIP_RETURN_CODE 77
  ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
