# What makes a memory error in an optimised build harder to exploit: the program
# reads hostile files, and the injected library runs inside other programs.
# Interface targets: mt_hardening (compile and link flags of every target of
# ours). Sanitizer and Debug builds have no _FORTIFY_SOURCE: AddressSanitizer
# checks the same calls, and glibc warns about _FORTIFY_SOURCE at -O0.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)

option(MEMTRACE_HARDENING "Stack protector, _FORTIFY_SOURCE, full RELRO, CET where available" ON)
check_pie_supported(LANGUAGES C)

add_library(mt_hardening INTERFACE)

function(mt_harden_compile name flag)
  check_c_compiler_flag(${flag} MEMTRACE_HAS_${name})
  if(MEMTRACE_HAS_${name})
    target_compile_options(mt_hardening INTERFACE ${flag})
  endif()
endfunction()

function(mt_harden_link name flag)
  check_linker_flag(C ${flag} MEMTRACE_LINKS_${name})
  if(MEMTRACE_LINKS_${name})
    target_link_options(mt_hardening INTERFACE ${flag})
  endif()
endfunction()

if(MEMTRACE_HARDENING)
  mt_harden_compile(STACK_PROTECTOR -fstack-protector-strong)
  mt_harden_compile(STACK_CLASH -fstack-clash-protection)
  mt_harden_compile(CF_PROTECTION -fcf-protection=full) # x86-64
  # clang accepts the option for every processor, and warns that it is not used.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)")
    mt_harden_compile(BRANCH_PROTECTION -mbranch-protection=standard)
  endif()
  mt_harden_link(RELRO -Wl,-z,relro)
  mt_harden_link(NOW -Wl,-z,now)
  mt_harden_link(NOEXECSTACK -Wl,-z,noexecstack)
  # Level 3 needs gcc 12 or clang 9, and glibc 2.34; glibc warns if it has only 2.
  set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
  check_c_source_compiles("#include <string.h>
    int main(void) { return 0; }" MEMTRACE_HAS_FORTIFY_3)
  unset(CMAKE_REQUIRED_FLAGS)
  set(level 2)
  if(MEMTRACE_HAS_FORTIFY_3)
    set(level 3)
  endif()
  if(NOT MEMTRACE_SANITIZE AND NOT MEMTRACE_THREAD_SANITIZE)
    target_compile_options(mt_hardening INTERFACE
      $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
      $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=${level}>)
  endif()
endif()
