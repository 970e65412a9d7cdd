/* Which PyTorch is it, and which of its facts are known. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "torch_parts.h"

TEST(test_releases_are_known)
{
    const struct mt_torch_version *version = mt_torch_version_find("2.11.0+cu130");

    assert_non_null(version);
    assert_int_equal(version->minor, 11);
    assert_int_equal(version->functions, 50);
    assert_int_equal(version->attach_tracker, 44);
    assert_true(version->has_pool);
    assert_ptr_equal(mt_torch_version_find("2.11.0"), version);
    assert_ptr_equal(mt_torch_version_find("2.11.7"), version);
    assert_ptr_equal(mt_torch_version_find("2.11.0.post303"), version);
    assert_false(mt_torch_version_find("2.7.1+cu118")->has_pool);
    assert_true(mt_torch_version_has_pool("2.8.0a0+git") && mt_torch_version_has_pool(""));
    assert_false(mt_torch_version_has_pool("2.7.0a0+git"));
}

TEST(test_what_nobody_looked_at_is_unknown)
{
    static const char *const texts[] = {
        "",      "2",      "2.11",   "2.11.",   "2.11.0a0", "2.11.0rc1", "2.1.2",     "2.16.0",
        "3.0.0", "1.13.1", "2.11.x", "12.11.0", "2..11.0",  "-2.11.0",   "2.00011.0", "2.11.0 "};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_null(mt_torch_version_find(texts[i]));
}

TEST(test_scopes_are_older_than_trackers)
{
    assert_true(mt_torch_version_has_scopes("1.13.1"));
    assert_true(mt_torch_version_has_scopes("2.0.1+cu117"));
    assert_true(mt_torch_version_has_scopes("2.10.0a0+b4e4ee81d3.nv25.11"));
    assert_true(mt_torch_version_has_scopes("2.15.0"));
    assert_false(mt_torch_version_has_scopes("1.10.2"));
    assert_false(mt_torch_version_has_scopes("2.16.0"));
    assert_false(mt_torch_version_has_scopes(""));
}

struct folder {
    char path[64], library[96], version_py[96], build_version[96];
};

static void folder_make(struct folder *folder)
{
    char lib[80];

    strcpy(folder->path, "/tmp/memtrace-torch-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(lib, sizeof lib, "%s/lib", folder->path);
    assert_int_equal(mkdir(lib, 0700), 0);
    snprintf(folder->library, sizeof folder->library, "%s/libc10_cuda.so", lib);
    snprintf(folder->version_py, sizeof folder->version_py, "%s/version.py", folder->path);
    snprintf(folder->build_version, sizeof folder->build_version, "%s/build-version", folder->path);
}

static void folder_remove(const struct folder *folder)
{
    char lib[80];

    unlink(folder->version_py);
    unlink(folder->build_version);
    snprintf(lib, sizeof lib, "%s/lib", folder->path);
    rmdir(lib);
    rmdir(folder->path);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

TEST(test_version_is_read_beside_the_library)
{
    struct folder folder;
    char text[64];

    folder_make(&folder);
    assert_false(mt_torch_version_read(folder.library, text, sizeof text));
    write_file(folder.build_version, "2.9.1+cpu\n");
    assert_true(mt_torch_version_read(folder.library, text, sizeof text));
    assert_string_equal(text, "2.9.1+cpu");
    write_file(folder.version_py, "from typing import Optional\n\n__all__ = ['__version__']\n"
                                  "__version__ = '2.11.0+cu130'\ndebug = False\n");
    assert_true(mt_torch_version_read(folder.library, text, sizeof text));
    assert_string_equal(text, "2.11.0+cu130");
    folder_remove(&folder);
}

TEST(test_odd_files_are_no_version)
{
    struct folder folder;
    char text[8];

    folder_make(&folder);
    write_file(folder.version_py, "__version__ = None\n");
    assert_false(mt_torch_version_read(folder.library, text, sizeof text));
    write_file(folder.version_py, "__version__ = '2.11.0+longer-than-there-is-room'\n");
    assert_false(mt_torch_version_read(folder.library, text, sizeof text));
    write_file(folder.version_py, "__version__ = ''\n");
    assert_false(mt_torch_version_read(folder.library, text, sizeof text));
    assert_false(mt_torch_version_read("no-folder.so", text, sizeof text));
    folder_remove(&folder);
}

static unsigned char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*length);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    fclose(file);
    return bytes;
}

static bool find_in(const char *path, const unsigned char *bytes, size_t length)
{
    static const uintptr_t functions[4] = {1, 2, 3, 4};
    struct mt_torch_version version = {.functions = 4};
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    fwrite(bytes, 1, length, file);
    fclose(file);
    return mt_torch_symbols_find(path, 0, functions, &version);
}

/* Whatever the file is: no crash, and no places for a table that is elsewhere. */
TEST(test_damaged_libraries_have_no_places)
{
    char path[] = "/tmp/memtrace-torch-XXXXXX";
    int fd = mkstemp(path);
    unsigned i, seed = 7;
    size_t length;
    unsigned char *bytes = read_file(STANDIN_TORCH "/named/libc10_cuda.so", &length);

    assert_true(fd >= 0);
    close(fd);
    assert_false(find_in(path, bytes, 0));
    assert_false(find_in(path, bytes, length));
    for (i = 0; i < 400; i++) {
        /* half of the damage goes to the header, the rest to the table of sections */
        size_t range = i % 2 ? 64 : 2400, at;
        seed = seed * 1103515245u + 12345u;
        at = (seed >> 8) % range;
        at = i % 2 ? at : length - 1 - at;
        unsigned char old = bytes[at];
        bytes[at] = (unsigned char)(seed >> 3);
        assert_false(find_in(path, bytes, i % 5 ? length : length - seed % 4000));
        bytes[at] = old;
    }
    unlink(path);
    free(bytes);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
