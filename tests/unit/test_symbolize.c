/* Resolves addresses of this program to functions and lines, with complete, partial and no debug
 * information, and from other files. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <dlfcn.h>
#include <link.h>
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demangle.h"
#include "symbolize.h"
#include "symbols.h"

struct place {
    uintptr_t address; /* of the call, in memory */
    uint32_t lines[3]; /* outermost first */
};

static volatile int sink;

__attribute__((noinline)) static void note(struct place *place)
{
    place->address = (uintptr_t)__builtin_return_address(0) - 1;
    sink++;
}

__attribute__((always_inline)) static inline void inlined_inner(struct place *place)
{
    note(place), place->lines[2] = __LINE__;
    sink++;
}

__attribute__((always_inline)) static inline void inlined_outer(struct place *place)
{
    inlined_inner(place), place->lines[1] = __LINE__;
    sink++;
}

__attribute__((noinline)) static void calls_inlined(struct place *place)
{
    inlined_outer(place), place->lines[0] = __LINE__;
    sink++;
}

__attribute__((noinline)) static void calls_plainly(struct place *place)
{
    note(place), place->lines[0] = __LINE__;
    sink++;
}

static struct mt_demangler demangler;
static char program[4096], folder[] = "/tmp/test_symbolize_XXXXXX";

static struct {
    uintptr_t bias;
    const uint8_t *build_id;
    size_t build_id_bytes;
} self;

static int look_at_self(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    self.bias = info->dlpi_addr;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uint8_t *at = (const uint8_t *)(info->dlpi_addr + part->p_vaddr);
        const uint8_t *end = at + part->p_memsz;
        while (part->p_type == PT_NOTE && at + 16 <= end) {
            uint32_t words[3];
            memcpy(words, at, sizeof words);
            if (words[2] == NT_GNU_BUILD_ID) {
                self.build_id = at + 16;
                self.build_id_bytes = words[1];
            }
            at += 12 + (words[0] + 3) / 4 * 4 + (words[1] + 3) / 4 * 4;
        }
    }
    return 1;
}

static struct mt_code_file_id wanted(const char *path)
{
    return (struct mt_code_file_id){path, self.build_id, self.build_id_bytes, INT64_MAX};
}

static struct mt_code_file *open_file(struct mt_code_file_id id, enum mt_code_file_state expected)
{
    struct mt_code_file *file;
    enum mt_code_file_state state;

    assert_int_equal(mt_code_file_open(&id, &demangler, &file, &state), MT_OK);
    assert_int_equal(state, expected);
    assert_true((file != NULL) == (expected == MT_CODE_FOUND));
    return file;
}

/* Runs `command`, replacing paths of this program and of the test's folder. */
static const char *make_file(const char *name, const char *command)
{
    static char path[4096];
    char line[16384];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(line, sizeof line, "P='%s' F='%s' O='%s'; %s", program, folder, path, command);
    assert_int_equal(system(line), 0);
    return path;
}

static bool ends_with(const char *text, const char *end)
{
    return text && strlen(text) >= strlen(end) &&
           strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static void expect_all(struct mt_code_file *file)
{
    struct mt_code_position places[MT_MAX_CODE_POSITIONS];
    static const char *const functions[] = {"calls_inlined", "inlined_outer", "inlined_inner"};
    struct place place;

    calls_inlined(&place);
    assert_int_equal(mt_code_file_positions(file, place.address - self.bias, places), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(places[i].function, functions[i]);
        assert_int_equal(places[i].line, place.lines[i]);
        assert_true(ends_with(places[i].file, "/tests/unit/test_symbolize.c"));
        assert_int_equal(places[i].file[0], '/');
    }
    calls_plainly(&place);
    assert_int_equal(mt_code_file_positions(file, place.address - self.bias, places), 1);
    assert_string_equal(places[0].function, "calls_plainly");
    assert_int_equal(places[0].line, place.lines[0]);
    assert_int_equal(mt_code_file_positions(file, 1, places), 0);
    assert_int_equal(mt_code_file_positions(file, UINT64_MAX, places), 0);
}

TEST(test_functions_lines_and_inlined_calls)
{
    if (!mt_symbolize_available(NULL))
        skip();
    struct mt_code_file *file = open_file(wanted(program), MT_CODE_FOUND);
    expect_all(file);
    expect_all(file);
    mt_code_file_close(file);
}

/* Replaces libdw's function, which is called last. */
static unsigned units_asked;

void *dwfl_module_nextcu(void *module, void *last, uint64_t *bias);

void *dwfl_module_nextcu(void *module, void *last, uint64_t *bias)
{
    static void *(*real)(void *module, void *last, uint64_t *bias);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dwfl_module_nextcu");
    units_asked++;
    return real(module, last, bias);
}

/* clang writes no table from addresses to units, so the units are listed once. */
TEST(test_without_the_table_of_addresses)
{
    if (!mt_symbolize_available(NULL))
        skip();
    struct mt_code_file *file = open_file(
        wanted(make_file("units", "objcopy --remove-section=.debug_aranges \"$P\" \"$O\"")),
        MT_CODE_FOUND);
    expect_all(file);
    assert_int_not_equal(units_asked, 0);
    units_asked = 0;
    expect_all(file);
    assert_int_equal(units_asked, 0);
    mt_code_file_close(file);
}

TEST(test_without_lines_there_are_names)
{
    struct mt_code_position places[MT_MAX_CODE_POSITIONS];
    struct mt_code_file *file;
    struct place place;

    if (!mt_symbolize_available(NULL))
        skip();
    file =
        open_file(wanted(make_file("names", "objcopy --strip-debug \"$P\" \"$O\"")), MT_CODE_FOUND);
    calls_inlined(&place);
    assert_int_equal(mt_code_file_positions(file, place.address - self.bias, places), 1);
    assert_string_equal(places[0].function, "calls_inlined");
    assert_null(places[0].file);
    assert_int_equal(places[0].line, 0);
    mt_code_file_close(file);
}

TEST(test_without_names_there_is_nothing)
{
    struct mt_code_position places[MT_MAX_CODE_POSITIONS];
    struct place place;

    if (!mt_symbolize_available(NULL))
        skip();
    struct mt_code_file *file =
        open_file(wanted(make_file("stripped", "strip -o \"$O\" \"$P\"")), MT_CODE_FOUND);
    calls_plainly(&place);
    assert_int_equal(mt_code_file_positions(file, place.address - self.bias, places), 0);
    mt_code_file_close(file);
}

TEST(test_debug_information_in_a_file_beside)
{
    if (!mt_symbolize_available(NULL))
        skip();
    unsetenv("DEBUGINFOD_URLS");
    struct mt_code_file *file = open_file(
        wanted(make_file("apart", "objcopy --only-keep-debug \"$P\" \"$F/apart.debug\" && "
                                  "objcopy --strip-all "
                                  "--add-gnu-debuglink=\"$F/apart.debug\" \"$P\" \"$O\"")),
        MT_CODE_FOUND);
    expect_all(file);
    mt_code_file_close(file);
}

TEST(test_another_file_is_not_taken_for_the_one)
{
    uint8_t other_id[64];
    struct mt_code_file_id id = wanted(program);
    struct stat info;

    if (!mt_symbolize_available(NULL))
        skip();
    assert_in_range(self.build_id_bytes, 8, sizeof other_id);
    memcpy(other_id, self.build_id, self.build_id_bytes);
    other_id[self.build_id_bytes - 1] ^= 1;
    id.build_id = other_id;
    open_file(id, MT_CODE_CHANGED);
    id.build_id_bytes--;
    open_file(id, MT_CODE_CHANGED);
    id.build_id_bytes = 0; /* unknown: its age shows */
    assert_int_equal(stat(program, &info), 0);
    id.not_after_unix_s = info.st_mtime;
    mt_code_file_close(open_file(id, MT_CODE_FOUND));
    id.not_after_unix_s--;
    open_file(id, MT_CODE_CHANGED);
}

TEST(test_what_is_no_file_of_code_is_missing)
{
    if (!mt_symbolize_available(NULL))
        skip();
    open_file(wanted("/nonexistent/lib.so"), MT_CODE_MISSING);
    open_file(wanted("relative/lib.so"), MT_CODE_MISSING);
    open_file(wanted(""), MT_CODE_MISSING);
    open_file(wanted("/dev/zero"), MT_CODE_MISSING);
    open_file(wanted(folder), MT_CODE_MISSING);
    open_file(wanted(make_file("fifo", "mkfifo \"$O\"")), MT_CODE_MISSING);
    open_file(wanted(make_file("text", "echo text >\"$O\"")), MT_CODE_MISSING);
    open_file(wanted(make_file("empty", ": >\"$O\"")), MT_CODE_MISSING);
}

TEST(test_names_of_cxx)
{
    struct mt_demangler one = {0};
    char *long_name = calloc(1, 20000);

    assert_string_equal(mt_demangle(&one, "main"), "main");
    assert_string_equal(mt_demangle(&one, "_Znonsense"), "_Znonsense");
    assert_string_equal(mt_demangle(&one, "_Z"), "_Z");
    memset(long_name, 'P', 19999);
    memcpy(long_name, "_Z1f", 4);
    assert_ptr_equal(mt_demangle(&one, long_name), long_name);
    if (one.demangle) {
        assert_string_equal(mt_demangle(&one, "_ZN3c104cuda4freeEPvl"),
                            "c10::cuda::free(void*, long)");
        assert_string_equal(mt_demangle(&one, "_ZN2at4_ops3add4callEv.cold"),
                            "at::_ops::add::call() [clone .cold]");
    }
    mt_demangler_release(&one);
    mt_demangler_release(&one);
    free(long_name);
}

TEST(test_symbols_by_address)
{
    struct mt_symbol_index index = {0};
    const struct mt_symbol symbols[] = {
        {0x300, 0x180, "assembly", 1, true}, {0x100, 0x40, "big", 4, false},
        {0x110, 0x10, "nested", 4, false},   {0x200, 0x10, "weak", 5, false},
        {0x200, 0x10, "global", 6, false},   {0x200, 0x10, "_global", 6, false},
        {0x400, 0x10, "last", 4, false},     {0x500, 0x20, "open", 1, true},
    };

    assert_null(mt_symbol_index_find(&index, 0x100));
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        assert_int_equal(mt_symbol_index_add(&index, symbols[i]), MT_OK);
    mt_symbol_index_sort(&index);
    assert_null(mt_symbol_index_find(&index, 0xFF));
    assert_string_equal(mt_symbol_index_find(&index, 0x100), "big");
    assert_string_equal(mt_symbol_index_find(&index, 0x11F), "nested");
    assert_string_equal(mt_symbol_index_find(&index, 0x120), "big");
    assert_string_equal(mt_symbol_index_find(&index, 0x13F), "big");
    assert_null(mt_symbol_index_find(&index, 0x140));
    assert_string_equal(mt_symbol_index_find(&index, 0x200), "global");
    assert_null(mt_symbol_index_find(&index, 0x210));
    assert_string_equal(mt_symbol_index_find(&index, 0x300), "assembly");
    assert_string_equal(mt_symbol_index_find(&index, 0x3FF), "assembly");
    assert_string_equal(mt_symbol_index_find(&index, 0x40F), "last");
    assert_null(mt_symbol_index_find(&index, 0x410));
    assert_string_equal(mt_symbol_index_find(&index, 0x51F), "open");
    assert_null(mt_symbol_index_find(&index, 0x520));
    assert_null(mt_symbol_index_find(&index, UINT64_MAX));
    mt_symbol_index_release(&index);
}

static int set_up(void **state)
{
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    (void)state;
    dl_iterate_phdr(look_at_self, NULL);
    return length <= 0 || !mkdtemp(folder);
}

static int tear_down(void **state)
{
    char line[128];

    (void)state;
    mt_demangler_release(&demangler);
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    return system(line);
}

int main(void)
{
    return run_tests_of_file(set_up, tear_down);
}
