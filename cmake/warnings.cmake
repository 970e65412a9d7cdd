# Optimising across files is worth a tenth of the time of a replay, and makes every link
# slow: not for the programs of the tests.
if(MEMTRACE_LTO STREQUAL "ON" OR
   (MEMTRACE_LTO STREQUAL "AUTO" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT BUILD_TESTING))
  include(CheckIPOSupported)
  check_ipo_supported(RESULT supported OUTPUT why LANGUAGES C)
  if(NOT supported AND MEMTRACE_LTO STREQUAL "ON")
    message(FATAL_ERROR "MEMTRACE_LTO: ${why}")
  endif()
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${supported})
  message(STATUS "optimised as a whole: ${supported}")
endif()

# Programs run with stacks of 64 KiB, and the injected library on any stack of its process. Other
# builds have larger frames: sanitizers put space around each variable, and without optimization
# variables share no space.
if(NOT MEMTRACE_SANITIZE AND NOT MEMTRACE_THREAD_SANITIZE AND NOT MEMTRACE_FUZZ AND
   NOT CMAKE_C_FLAGS_DEBUG MATCHES "-O0")
  add_compile_options(-Wframe-larger-than=16384)
endif()

# Everything that all our own targets are compiled with...
add_library(mt_plain_flags INTERFACE)
target_compile_definitions(mt_plain_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
target_compile_options(mt_plain_flags INTERFACE
  -Wall -Wextra -Wshadow -Wundef -Wconversion -Wstrict-prototypes -Wmissing-prototypes
  -Wvla -Wwrite-strings -Wpointer-arith -Wunused-macros -Wstrict-aliasing=2
  $<$<BOOL:${MEMTRACE_WERROR}>:-Werror>)
target_link_libraries(mt_plain_flags INTERFACE mt_hardening)
if(MEMTRACE_THREAD_SANITIZE)
  # Also the injected library: its locks and its tape are what this build checks.
  # It does not model fences; every value beside one (native_stack.c) is atomic by itself.
  target_compile_options(mt_plain_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer
    $<$<C_COMPILER_ID:GNU>:-Wno-tsan>)
  target_link_options(mt_plain_flags INTERFACE -fsanitize=thread)
endif()

# ... and, except what is loaded into other people's processes, with sanitizers and assertions.
add_library(mt_flags INTERFACE)
target_link_libraries(mt_flags INTERFACE mt_plain_flags)
if(MEMTRACE_SANITIZE)
  # Conversions: to a type that cannot hold the value. -Wconversion makes them casts, which only
  # the check of floats sees; clang also checks implicit ones.
  set(conversions float-cast-overflow,float-divide-by-zero$<$<C_COMPILER_ID:Clang>:,implicit-conversion>)
  target_compile_options(mt_flags INTERFACE -fsanitize=address,undefined,${conversions}
    -fno-sanitize-recover=undefined,${conversions} -fno-omit-frame-pointer)
  target_link_options(mt_flags INTERFACE -fsanitize=address,undefined)
endif()
if(MEMTRACE_ASSERT)
  target_compile_definitions(mt_flags INTERFACE MEMTRACE_ASSERT)
endif()
if(MEMTRACE_FUZZ)
  target_compile_options(mt_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
