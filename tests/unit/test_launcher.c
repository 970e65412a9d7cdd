/* The launcher's decisions: environment, names, kind of program, list of traces, and their peaks.
 * tests/record tests running programs. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "environment.h"
#include "manifest.h"
#include "program_kind.h"
#include "trace.h"
#include "trace_end.h"
#include "trace_target.h"
#include "util.h"

static const struct mt_record_settings usual = {.library = "/lib/inject.so",
                                                .output = "/out/run.trace.zst",
                                                .manifest = "/out/list",
                                                .python_stacks = true,
                                                .phases = "nvtx,torch",
                                                .sample_hz = 10,
                                                .follow = true,
                                                .root = 42};

static const char *value_in(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    const char *found = NULL;

    for (; *environment; environment++)
        if (!strncmp(*environment, name, length) && (*environment)[length] == '=') {
            assert_null(found); /* once */
            found = *environment + length + 1;
        }
    return found;
}

static void check_value(char *const *inherited, const struct mt_record_settings *settings,
                        const char *name, const char *wanted)
{
    struct mt_arena arena = {0};
    char **environment = mt_record_environment(inherited, settings, &arena);

    assert_non_null(environment);
    const char *value = value_in(environment, name);
    if (wanted) {
        assert_non_null(value);
        assert_string_equal(value, wanted);
    } else {
        assert_null(value);
    }
    mt_arena_release(&arena);
}

TEST(environment_has_all_settings)
{
    char path[] = "PATH=/bin", *inherited[] = {path, NULL};
    struct mt_record_settings settings = usual;

    check_value(inherited, &usual, "PATH", "/bin");
    check_value(inherited, &usual, "LD_PRELOAD", "/lib/inject.so");
    check_value(inherited, &usual, "CUDA_INJECTION64_PATH", "/lib/inject.so");
    check_value(inherited, &usual, "NVTX_INJECTION64_PATH", "/lib/inject.so");
    check_value(inherited, &usual, "MEMTRACE_OUTPUT", "/out/run.trace.zst");
    check_value(inherited, &usual, "MEMTRACE_MANIFEST", "/out/list");
    check_value(inherited, &usual, "MEMTRACE_STACKS", "python");
    check_value(inherited, &usual, "MEMTRACE_PHASES", "nvtx,torch");
    check_value(inherited, &usual, "MEMTRACE_SAMPLE_HZ", "10");
    check_value(inherited, &usual, "MEMTRACE_FOLLOW", "all");
    check_value(inherited, &usual, "MEMTRACE_ROOT", "42");
    check_value(inherited, &usual, "MEMTRACE_QUIET", NULL);
    check_value(inherited, &usual, "MEMTRACE_CUDA_NEXT", NULL);
    settings.auto_stacks = true;
    check_value(inherited, &settings, "MEMTRACE_STACKS", "auto");
    settings.auto_stacks = settings.python_stacks = false;
    check_value(inherited, &settings, "MEMTRACE_STACKS", "none");
    settings.native_stacks = settings.quiet = settings.with_env = true;
    settings.follow = false;
    check_value(inherited, &settings, "MEMTRACE_STACKS", "native");
    settings.free_stacks = true;
    check_value(inherited, &settings, "MEMTRACE_STACKS", "native,frees");
    settings.free_stacks = false;
    check_value(inherited, &settings, "MEMTRACE_QUIET", "1");
    check_value(inherited, &settings, "MEMTRACE_WITH_ENV", "1");
    check_value(inherited, &settings, "MEMTRACE_FOLLOW", "none");
}

/* JAX and TensorFlow read these when they make their first device. */
TEST(environment_shows_requests_of_xla)
{
    char preallocate[] = "XLA_PYTHON_CLIENT_PREALLOCATE=true", *inherited[] = {preallocate, NULL};
    struct mt_record_settings settings = usual;

    check_value(inherited, &settings, "XLA_PYTHON_CLIENT_PREALLOCATE", "true");
    check_value(inherited, &settings, "XLA_PYTHON_CLIENT_ALLOCATOR", NULL);
    settings.xla_requests = true;
    check_value(inherited, &settings, "XLA_PYTHON_CLIENT_PREALLOCATE", "false");
    check_value(inherited, &settings, "XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async");
    check_value(inherited, &settings, "TF_GPU_ALLOCATOR", "cuda_malloc_async");
    check_value(inherited, &settings, "TF_FORCE_GPU_ALLOW_GROWTH", "true");
}

/* LD_PRELOAD has no quotes: the loader searches for the file's name. */
TEST(folder_with_a_space)
{
    char preload[] = "LD_PRELOAD=inject.so:/a.so", search[] = "LD_LIBRARY_PATH=/x:/y",
         *none[] = {NULL}, *inherited[] = {preload, search, NULL}, **again;
    struct mt_record_settings settings = usual;
    struct mt_arena arena = {0};

    check_value(inherited, &usual, "LD_LIBRARY_PATH", "/x:/y");
    settings.library = "/a folder/inject.so";
    settings.interposer = "/a folder/cuda.so";
    check_value(inherited, &settings, "LD_PRELOAD", "inject.so:cuda.so:/a.so");
    check_value(inherited, &settings, "LD_LIBRARY_PATH", "/x:/y:/a folder");
    check_value(inherited, &settings, "CUDA_INJECTION64_PATH", "/a folder/inject.so");
    check_value(none, &settings, "LD_LIBRARY_PATH", "/a folder");
    again = mt_record_environment(inherited, &settings, &arena);
    check_value(again, &settings, "LD_LIBRARY_PATH", "/x:/y:/a folder");
    mt_arena_release(&arena);
}

TEST(others_keep_working)
{
    char preload[] = "LD_PRELOAD=/a.so /lib/inject.so::/b.so", quiet[] = "MEMTRACE_QUIET=1",
         cuda[] = "CUDA_INJECTION64_PATH=/nsys.so", nvtx[] = "NVTX_INJECTION64_PATH=/lib/inject.so",
         asan[] = "ASAN_OPTIONS=halt_on_error=0",
         *inherited[] = {preload, cuda, nvtx, asan, quiet, NULL};
    struct mt_record_settings settings = usual;

    check_value(inherited, &usual, "LD_PRELOAD", "/lib/inject.so:/a.so:/b.so");
    check_value(inherited, &usual, "MEMTRACE_CUDA_NEXT", "/nsys.so");
    check_value(inherited, &usual, "MEMTRACE_NVTX_NEXT", NULL); /* an outer run's memtrace */
    check_value(inherited, &usual, "CUDA_INJECTION64_PATH", "/lib/inject.so");
    check_value(inherited, &usual, "ASAN_OPTIONS", "halt_on_error=0:verify_asan_link_order=0");
    check_value(inherited, &usual, "MEMTRACE_QUIET", NULL);
    settings.interposer = "/lib/cuda.so";
    check_value(inherited, &settings, "LD_PRELOAD", "/lib/inject.so:/lib/cuda.so:/a.so:/b.so");
    settings.no_preload = true;
    check_value(inherited, &settings, "LD_PRELOAD", "/a.so /lib/inject.so::/b.so");
    settings.library = NULL;
    check_value(inherited, &settings, "CUDA_INJECTION64_PATH", "/nsys.so");
    check_value(inherited, &settings, "MEMTRACE_OUTPUT", NULL);
}

static void check_word(const char *wanted, char *a, char *b, char *c, char *d)
{
    char *command[] = {a, b, c, d, NULL}, word[16];

    mt_command_word(command, word, sizeof word);
    assert_string_equal(word, wanted);
}

TEST(commands_have_words)
{
    char python[] = "/usr/bin/python3.11", u[] = "-u", m[] = "-m", c[] = "-c", x[] = "-X",
         script[] = "./src/train.py", module[] = "pkg.main", code[] = "print()",
         option[] = "importtime", app[] = "./build/my app", dots[] = ".hidden", dash[] = "-",
         empty[] = "", longest[] = "a_name_that_is_much_too_long.py";

    check_word("train", python, script, u, NULL);
    check_word("train", python, u, script, NULL);
    check_word("train", python, x, option, script);
    check_word("pkg.main", python, m, module, script);
    check_word("python3.11", python, c, code, script);
    check_word("python3.11", python, dash, NULL, NULL);
    check_word("python3.11", python, NULL, NULL, NULL);
    check_word("my_app", app, script, NULL, NULL);
    check_word("_hidden", dots, NULL, NULL, NULL);
    check_word("run", empty, NULL, NULL, NULL);
    check_word("train", script, NULL, NULL, NULL);
    check_word("a_name_that_is_", longest, NULL, NULL, NULL);
}

static void check_kind(const char *name, enum mt_program_kind wanted)
{
    struct mt_program program;

    mt_program_look(name, &program);
    assert_int_equal(program.kind, wanted);
}

static void write_program(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

TEST(programs_have_kinds)
{
    static const char script[] = "#! /bin/bash -e\n", bare[] = "exit 3\n", loop[] = "#!./loop\n",
                      nowhere[] = "#!/no/where", cut[] = "\177ELF";
    const enum mt_program_kind of_this_system =
        getenv("MEMTRACE_EMULATED") ? MT_PROGRAM_OTHER_MACHINE : MT_PROGRAM_DYNAMIC;
    char elf[64] = "\177ELF\001\001\001";
    struct mt_program program;

    check_kind("sh", of_this_system);
    check_kind("/bin/sh", of_this_system);
    check_kind("/proc/self/exe", MT_PROGRAM_DYNAMIC);
    check_kind("no-such-program", MT_PROGRAM_MISSING);
    check_kind("/no/such/program", MT_PROGRAM_MISSING);
    check_kind("", MT_PROGRAM_MISSING);
    check_kind("/tmp", MT_PROGRAM_IS_FOLDER);
    check_kind("/proc/self/status", MT_PROGRAM_NOT_EXECUTABLE);
    write_program("./script", script, sizeof script - 1);
    mt_program_look("./script", &program);
    assert_int_equal(program.kind, of_this_system);
    assert_string_equal(program.binary, "/bin/bash");
    write_program("./script", bare, sizeof bare - 1);
    mt_program_look("./script", &program);
    assert_int_equal(program.kind, MT_PROGRAM_DYNAMIC);
    assert_string_equal(program.binary, "/bin/sh");
    write_program("./loop", loop, sizeof loop - 1);
    check_kind("./loop", MT_PROGRAM_DYNAMIC); /* the kernel returns ELOOP */
    write_program("./nowhere", nowhere, sizeof nowhere - 1);
    check_kind("./nowhere", MT_PROGRAM_NO_INTERPRETER);
    write_program("./cut", cut, sizeof cut - 1);
    check_kind("./cut", MT_PROGRAM_DYNAMIC); /* exec reports the reason */
    write_program("./elf", elf, sizeof elf);
    check_kind("./elf", MT_PROGRAM_OTHER_MACHINE); /* 32 bits */
    elf[4] = 2;
    write_program("./elf", elf, sizeof elf);
    check_kind("./elf", MT_PROGRAM_OTHER_MACHINE); /* of an unknown processor */
}

TEST(manifest_lists_each_trace_once)
{
    struct mt_arena arena = {0};
    struct mt_error error;
    char path[PATH_MAX], **traces;
    size_t count;
    int lock;

    assert_int_equal(mt_manifest_new("./", path, &lock, &error), MT_OK);
    assert_int_equal(mt_manifest_read(path, &arena, &traces, &count, &error), MT_OK);
    assert_int_equal(count, 0);
    assert_null(traces[0]);
    FILE *file = fopen(path, "a");
    fputs("/a/run.trace.zst\n\nnonsense\n/b\n/a/run.trace.zst\n/half", file);
    fclose(file);
    assert_int_equal(mt_manifest_read(path, &arena, &traces, &count, &error), MT_OK);
    assert_int_equal(count, 2);
    assert_string_equal(traces[0], "/a/run.trace.zst");
    assert_string_equal(traces[1], "/b");
    assert_null(traces[2]);
    close(lock);
    unlink(path);
    assert_int_equal(mt_manifest_read(path, &arena, &traces, &count, &error), MT_ERR_IO);
    assert_int_equal(mt_manifest_new("./no/such/folder/", path, &lock, &error), MT_ERR_OUTPUT);
    mt_arena_release(&arena);
}

struct row {
    const char *heap;
    enum mt_event_kind kind;
    uint64_t addr, size_bytes, aux_bytes;
};

static void write_trace(const char *path, const struct row *rows, size_t count)
{
    struct mt_trace_header header = {.rank = 3, .world_size = 4, .process_id = 77};
    struct mt_symbols symbols = {0};
    struct mt_writer *writer;
    struct mt_error error;
    FILE *file = fopen(path, "wb");
    uint32_t name, heap;

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_int_equal(mt_writer_new(fileno(file), &header, &symbols, NULL, &writer, &error), MT_OK);
    for (size_t i = 0; i < count; i++) {
        struct mt_event event = {.seq = i,
                                 .t_ns = 1000 + i,
                                 .kind = (uint8_t)rows[i].kind,
                                 .addr = rows[i].addr,
                                 .size_bytes = rows[i].size_bytes,
                                 .aux_bytes = rows[i].aux_bytes,
                                 .stack = MT_NO_ID,
                                 .name = MT_NO_ID};
        assert_int_equal(mt_symbols_string(&symbols, rows[i].heap, strlen(rows[i].heap), &name),
                         MT_OK);
        assert_int_equal(mt_symbols_heap(&symbols, name, &heap), MT_OK);
        event.heap = (uint16_t)heap;
        assert_int_equal(mt_writer_add(writer, &event, &error), MT_OK);
    }
    assert_int_equal(mt_writer_finish(writer, &error), MT_OK);
    mt_writer_free(writer);
    mt_symbols_release(&symbols);
    fclose(file);
}

TEST(peaks_are_of_one_kind_of_memory)
{
    static const struct row rows[] = {
        {"driver", MT_EVENT_ALLOC, 0x1000, 100, 0},
        {"pytorch", MT_EVENT_SEGMENT_ALLOC, 0x1000, 100, 0},
        {"pytorch", MT_EVENT_ALLOC, 0x1000, 30, 32},
        {"driver:virtual", MT_EVENT_ALLOC, 0x1000, 50, 0},  /* another space */
        {"driver:mapped", MT_EVENT_ALLOC, 0x9000, 50, 0},   /* the same bytes again */
        {"driver:host", MT_EVENT_ALLOC, 0x7000, 1000, 0},   /* not of the device */
        {"driver", MT_EVENT_FREE_REQUESTED, 0x1000, 0, 0},  /* peak of the device: 150 */
        {"driver", MT_EVENT_FREE_COMPLETED, 0x1000, 0, 0},  /* not a second time */
        {"driver", MT_EVENT_FREE_REQUESTED, 0x5555, 0, 0},  /* never seen */
        {"driver", MT_EVENT_ALLOC, 0x2000, 60, 0},          /* 110 in use */
        {"pytorch", MT_EVENT_FREE_REQUESTED, 0x1000, 0, 0}, /* peak of blocks: 30 */
        {"pytorch", MT_EVENT_ALLOC, 0x1000, 20, 0},
        {"pytorch", MT_EVENT_SEGMENT_FREE, 0x1000, 100, 0},
        {"pytorch", MT_EVENT_SEGMENT_MAP, 0x8000, 70, 0},
    };
    struct mt_trace_summary summary;
    struct mt_error error;

    write_trace("peaks.trace", rows, MT_ARRAY_LEN(rows));
    assert_int_equal(mt_trace_summarize("peaks.trace", &summary, &error), MT_OK);
    assert_true(summary.device_known && summary.blocks_known && summary.reserved_known);
    assert_int_equal(summary.device_peak_bytes, 150);
    assert_int_equal(summary.reserved_peak_bytes, 100);
    assert_int_equal(summary.blocks_peak_bytes, 30);
    assert_int_equal(summary.events, MT_ARRAY_LEN(rows) + 1); /* and the end */
    assert_int_equal(summary.rank, 3);
    assert_int_equal(summary.process_id, 77);
    assert_true(summary.closed);
    write_trace("peaks.trace", rows, 1);
    assert_int_equal(mt_trace_summarize("peaks.trace", &summary, &error), MT_OK);
    assert_true(summary.device_known && !summary.blocks_known && !summary.reserved_known);
    assert_int_equal(mt_trace_summarize("no.trace", &summary, &error), MT_ERR_IO);
}

/* Runs in its own temporary folder. */
static int enter_folder(void **state)
{
    static char folder[] = "/tmp/memtrace-launcher-XXXXXX";

    *state = folder;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
    static const char *const files[] = {"script", "loop", "nowhere", "cut", "elf", "peaks.trace"};

    for (size_t i = 0; i < MT_ARRAY_LEN(files); i++)
        unlink(files[i]);
    return chdir("/") == 0 ? rmdir(*state) : -1;
}

int main(void)
{
    return run_tests_of_file(enter_folder, leave_folder);
}
