# What a builder may choose. Optional libraries are AUTO (use if found), ON
# (fail if missing) or OFF; a missing one removes whole files.
function(mt_optional name help)
  set(MEMTRACE_${name} AUTO CACHE STRING "${help} (AUTO, ON, OFF)")
  set_property(CACHE MEMTRACE_${name} PROPERTY STRINGS AUTO ON OFF)
endfunction()

mt_optional(CAIRO "PNG pictures through cairo")
mt_optional(LIBDW "Names of native frames in recorded traces through libdw (elfutils)")
mt_optional(NCURSES "`memtrace view` through ncurses")
mt_optional(SQLITE "`memtrace sql` and `export sqlite` through SQLite")
mt_optional(MPI "`memtrace fleet` over many processes through MPI")

mt_optional(LTO "Optimise the program as a whole; AUTO: release builds without tests")

set(MEMTRACE_ZSTD AUTO CACHE STRING
  "zstd of the injected library: STATIC (libzstd.a), SHARED (libzstd.so.1 when it runs), or AUTO")
set_property(CACHE MEMTRACE_ZSTD PROPERTY STRINGS AUTO STATIC SHARED)

option(MEMTRACE_STATIC_LIBRARIES
  "Link archives (.a) of all libraries except libc: the program runs where they are missing" OFF)
option(MEMTRACE_COMPRESS_MAN "Install man pages compressed, as packages have them" OFF)
option(MEMTRACE_COLLECTOR "Build what runs inside recorded programs: record, dry-run" ON)
option(MEMTRACE_DRY_RUN "Build the annex of dry runs (simulate)" ON)
option(MEMTRACE_FLEET "Build the annex of jobs of many ranks (fleet)" ON)
option(MEMTRACE_WERROR "Treat warnings as errors" OFF)
option(MEMTRACE_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(MEMTRACE_THREAD_SANITIZE "Build with ThreadSanitizer, the injected library included" OFF)
option(MEMTRACE_ASSERT "MT_ASSERT stops the program (base/check.h)" OFF)
option(MEMTRACE_ASSERT_INJECT
  "MT_ASSERT also stops the traced process: only to test the recorder itself" OFF)
option(MEMTRACE_FUZZ "Build libFuzzer targets (clang only)" OFF)
set(MEMTRACE_FUZZ_ENGINE "-fsanitize=fuzzer" CACHE STRING "What links a fuzz target")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Kind of build" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
