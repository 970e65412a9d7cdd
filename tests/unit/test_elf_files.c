/* elf_writer.h and elf_reader.h: the loader accepts written files, the reader reads them, and
 * damage is detected. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "elf_reader.h"
#include "elf_writer.h"

static char folder[] = "/tmp/memtrace-elf-XXXXXX";
static char target_path[PATH_MAX], library_path[PATH_MAX], preload_path[PATH_MAX];

static void write_bytes(const char *path, const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
}

static void write_recipe(const char *path, const struct mt_elf_recipe *recipe)
{
    struct mt_buf bytes = {0};

    assert_int_equal(mt_elf_write(recipe, &bytes, NULL), MT_OK);
    write_bytes(path, bytes.data, bytes.length);
    mt_buf_release(&bytes);
}

static void in_folder(char path[PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

/* The target defines `twice` with its own version. The stub library of the same name jumps to it.
 */
static int write_libraries(void **state)
{
    static const struct mt_stub inner[] = {{"twice", "INNER", MT_STUB_ANSWER, 77}};
    static const struct mt_stub outer[] = {{"answer", "libouter.so.1", MT_STUB_ANSWER, -5},
                                           {"created", "libouter.so.1", MT_STUB_COUNTER, 0},
                                           {"other", "OTHER_2.0", MT_STUB_ANSWER, 9},
                                           {"twice", NULL, MT_STUB_JUMP, 0}};
    static const char *const needed[] = {"libouter.so.1"};
    const char *target = target_path;
    (void)state;

    if (!mkdtemp(folder))
        return -1;
    in_folder(target_path, "libinner.so");
    in_folder(library_path, "libouter.so.1");
    in_folder(preload_path, "libpreload.so");
    write_recipe(target_path,
                 &(struct mt_elf_recipe){.soname = "libinner.so", .stubs = inner, .stub_count = 1});
    write_recipe(library_path, &(struct mt_elf_recipe){.soname = "libouter.so.1",
                                                       .needed = &target,
                                                       .needed_count = 1,
                                                       .target = target,
                                                       .target_version = "INNER",
                                                       .stubs = outer,
                                                       .stub_count = 4});
    write_recipe(preload_path, &(struct mt_elf_recipe){.soname = "libpreload.so",
                                                       .needed = needed,
                                                       .needed_count = 1,
                                                       .search = "$ORIGIN"});
    return 0;
}

static int remove_libraries(void **state)
{
    (void)state;
    unlink(target_path);
    unlink(library_path);
    unlink(preload_path);
    return rmdir(folder);
}

TEST(test_loader_accepts_it)
{
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    int (*answer)(void), (*twice)(void), (*create)(uint32_t *);
    uint32_t made[2] = {0, 12345};

    assert_non_null(library);
    *(void **)&answer = dlsym(library, "answer");
    *(void **)&create = dlsym(library, "created");
    *(void **)&twice = dlsym(library, "twice");
    assert_int_equal(answer(), -5);
    assert_int_equal(twice(), 77);
    assert_int_equal(create(made), 0);
    assert_int_equal(made[0], 1);
    assert_int_equal(create(made), 0);
    assert_int_equal(made[0], 2);
    assert_int_equal(made[1], 12345); /* four bytes, no more */
    assert_int_equal(create(NULL), 0);
    dlclose(library);
}

/* If the search covers the whole process, the first function of this name is the stub: it must not
 * jump to itself. */
TEST(test_jump_does_not_find_itself)
{
    void *library = dlopen(library_path, RTLD_NOW | RTLD_GLOBAL);
    int (*twice)(void);

    assert_non_null(library);
    *(void **)&twice = dlsym(RTLD_DEFAULT, "twice");
    assert_non_null(twice);
    assert_int_equal(twice(), 77);
    dlclose(library);
}

TEST(test_versions)
{
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);

    assert_non_null(library);
    assert_non_null(dlvsym(library, "answer", "libouter.so.1"));
    assert_null(dlvsym(library, "answer", "OTHER_2.0"));
    assert_non_null(dlvsym(library, "other", "OTHER_2.0"));
    dlclose(library);
}

TEST(test_needed_libraries_are_found_beside_it)
{
    void *preload = dlopen(preload_path, RTLD_NOW | RTLD_LOCAL), *library;

    assert_non_null(preload);
    library = dlopen("libouter.so.1", RTLD_NOW | RTLD_NOLOAD); /* by its name only */
    assert_non_null(library);
    dlclose(library);
    dlclose(preload);
}

static const struct mt_elf_symbol *find(const struct mt_elf *elf, const char *name, bool defined)
{
    for (size_t i = 0; i < elf->symbol_count; i++)
        if (!strcmp(elf->symbols[i].name, name) && elf->symbols[i].is_defined == defined)
            return &elf->symbols[i];
    fail_msg("no symbol %s", name);
    return NULL;
}

TEST(test_reader_reads_it)
{
    struct mt_elf elf;

    assert_int_equal(mt_elf_read(library_path, &elf, NULL), MT_OK);
    assert_string_equal(elf.soname, "libouter.so.1");
    assert_int_equal(elf.needed_count, 1);
    assert_string_equal(elf.needed[0], target_path);
    assert_int_equal(elf.symbol_count, 5);
    assert_string_equal(find(&elf, "other", true)->version, "OTHER_2.0");
    assert_null(find(&elf, "other", true)->library);
    assert_null(find(&elf, "twice", true)->version);
    assert_string_equal(find(&elf, "twice", false)->version, "INNER");
    assert_string_equal(find(&elf, "twice", false)->library, target_path);
    mt_elf_release(&elf);
}

/* A library from another linker: the C library of this process. */
TEST(test_reader_reads_others)
{
    Dl_info info;
    struct mt_elf elf;

    assert_true(dladdr((void *)(uintptr_t)&_fail, &info));
    assert_int_equal(mt_elf_read(info.dli_fname, &elf, NULL), MT_OK);
    assert_true(find(&elf, "_fail", true)->is_defined);
    assert_string_equal(find(&elf, "malloc", false)->library, "libc.so.6");
    mt_elf_release(&elf);
}

static struct mt_buf read_bytes(const char *path)
{
    struct mt_buf bytes = {0};
    char part[4096];
    int fd = open(path, O_RDONLY);
    ssize_t got;

    while ((got = read(fd, part, sizeof part)) > 0)
        mt_buf_add(&bytes, part, (size_t)got);
    close(fd);
    return bytes;
}

TEST(test_cut_anywhere)
{
    struct mt_buf bytes = read_bytes(library_path);
    char path[PATH_MAX];
    struct mt_elf elf;

    in_folder(path, "cut.so");
    for (size_t length = 0; length < bytes.length; length += length < 512 ? 1 : 61) {
        struct mt_error error = {0};
        write_bytes(path, bytes.data, length);
        assert_int_equal(mt_elf_read(path, &elf, &error), MT_ERR_FORMAT);
        assert_true(*error.text);
    }
    unlink(path);
    mt_buf_release(&bytes);
}

/* Sets every fifth byte of the headers and tables to its largest value (fields have 2, 4 or 8
 * bytes). The result is an answer or an error, and never more than the file holds. */
TEST(test_wild_bytes)
{
    struct mt_buf bytes = read_bytes(library_path);
    char path[PATH_MAX];
    size_t refused = 0;

    in_folder(path, "wild.so");
    for (size_t i = 0; i < bytes.length; i += 5) {
        char was = bytes.data[i];
        struct mt_elf elf;
        if (!was && i > 2048 && i < bytes.length - 2048)
            continue; /* between the segments */
        bytes.data[i] = (char)(was == '\xff' ? 0x7f : 0xff);
        write_bytes(path, bytes.data, bytes.length);
        bytes.data[i] = was;
        if (mt_elf_read(path, &elf, NULL) != MT_OK)
            refused++;
        else
            mt_elf_release(&elf);
    }
    assert_true(refused > 20);
    unlink(path);
    mt_buf_release(&bytes);
}

/* Records that are both list heads and list members: the number of lists equals the number of
 * records. */
TEST(test_lists_that_overlap)
{
    enum { RECORDS = 32768 };
    Elf64_Verneed record = {VER_NEED_CURRENT, 0xffff, 0, sizeof record, sizeof record};
    struct mt_buf bytes = read_bytes(library_path);
    const Elf64_Ehdr *header = (const void *)bytes.data;
    char path[PATH_MAX];
    struct mt_elf elf;

    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr *section = (Elf64_Shdr *)(void *)(bytes.data + header->e_shoff) + i;
        if (section->sh_type != SHT_GNU_verneed)
            continue;
        section->sh_offset = bytes.length;
        section->sh_size = RECORDS * sizeof record;
    }
    for (unsigned left = RECORDS; left--;) {
        record.vn_next = left ? sizeof record : 0;
        mt_buf_add(&bytes, &record, sizeof record);
    }
    in_folder(path, "overlap.so");
    write_bytes(path, bytes.data, bytes.length);
    assert_int_equal(mt_elf_read(path, &elf, NULL), MT_ERR_FORMAT);
    unlink(path);
    mt_buf_release(&bytes);
}

TEST(test_other_files)
{
    struct mt_elf elf;

    assert_int_equal(mt_elf_read("/nowhere/libx.so", &elf, NULL), MT_ERR_IO);
    assert_int_equal(mt_elf_read(folder, &elf, NULL), MT_ERR_UNSUPPORTED);
    assert_int_equal(mt_elf_read("/dev/zero", &elf, NULL), MT_ERR_UNSUPPORTED);
}

TEST(test_invalid_recipes)
{
    static const struct mt_stub jump = {"f", NULL, MT_STUB_JUMP, 0};
    struct mt_buf bytes = {0};

    assert_int_equal(
        mt_elf_write(&(struct mt_elf_recipe){.soname = "libx.so", .stubs = &jump, .stub_count = 1},
                     &bytes, NULL),
        MT_ERR_USAGE);
    mt_buf_release(&bytes);
}

int main(void)
{
    alarm(60); /* a stub that jumps to itself does not end */
    return run_tests_of_file(write_libraries, remove_libraries);
}
