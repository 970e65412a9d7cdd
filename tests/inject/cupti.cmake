# CUPTI: what is alive, decoders and subscription (on an imitated library), the
# binary interface. The whole, on the stand-in driver: differential.cupti.
mt_inject_test(cupti_live)
foreach(test cupti_subscribe cupti_calls cupti_memory)
  mt_inject_test(${test})
endforeach()
mt_inject_test(cupti_guest)
mt_inject_test(cupti_library)
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
