/* A small snapshot, cut at every byte and with every byte changed, gives a valid result or an error
 * with a position in the file. The result is the same with and without the pickle reader's fast
 * path. All undamaged captures are also read both ways. */
#include <dirent.h>
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fuzz/snapshot_digest.h"
#include "buf.h"

static void read_file(const char *path, struct mt_buf *bytes)
{
    struct mt_error error = {.text = ""};
    struct mt_feed *feed = NULL;
    size_t got = 1;

    if (mt_feed_open(path, &feed, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    while (got) {
        void *room = mt_buf_reserve(bytes, 1 << 16);
        assert_non_null(room);
        assert_int_equal(mt_feed_read(feed, room, 1 << 16, &got, &error), MT_OK);
        bytes->length += got;
    }
    mt_feed_close(feed);
}

/* An exact copy, so that reading past the end is seen. */
static struct snapshot_digest digest_copy(const char *bytes, size_t length, bool no_short_cuts)
{
    char *copy = malloc(length ? length : 1);

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    struct snapshot_digest digest = digest_snapshot(copy, length, no_short_cuts);
    free(copy);
    return digest;
}

static void check(const char *bytes, size_t length)
{
    struct snapshot_digest quick = digest_copy(bytes, length, false);

    if (quick.status != MT_OK) {
        assert_true(quick.status == MT_ERR_FORMAT || quick.status == MT_ERR_UNSUPPORTED);
        assert_true(quick.error.text[0] != '\0');
        assert_true(quick.error.offset <= length || quick.error.offset == MT_NO_OFFSET);
        return;
    }
    struct snapshot_digest slow = digest_copy(bytes, length, true);
    assert_int_equal(slow.status, MT_OK);
    assert_int_equal(slow.events, quick.events);
    assert_true(slow.hash == quick.hash);
}

static void check_damage(const char *name)
{
    static const unsigned char flips[] = {0x01, 0x10, 0x80, 0xff};
    struct mt_buf bytes = {0};
    char path[512];

    snprintf(path, sizeof path, "%s/../tests/fuzz/seeds/%s", MEMTRACE_FIXTURES, name);
    read_file(path, &bytes);
    for (size_t i = 0; i < bytes.length; i++) {
        assert_int_not_equal(digest_copy(bytes.data, i, false).status, MT_OK);
        for (size_t j = 0; j < sizeof flips; j++) {
            bytes.data[i] = (char)(bytes.data[i] ^ (char)flips[j]);
            check(bytes.data, bytes.length);
            bytes.data[i] = (char)(bytes.data[i] ^ (char)flips[j]);
        }
    }
    mt_buf_release(&bytes);
}

TEST(test_damage)
{
    check_damage("input_protocol0.pickle");
    check_damage("input_protocol2.pickle");
    check_damage("input_protocol4.pickle");
    check_damage("pickle_tags");
    check_damage("pickle_host");
    check_damage("pickle_lacks");
    check_damage("pickle_origin");
}

/* A capture is larger than the window, so that short cuts are taken. How many were read. */
static size_t check_folder(const char *name)
{
    char path[768];
    struct dirent *entry;
    size_t files = 0;
    DIR *folder;

    snprintf(path, sizeof path, "%s/%s", MEMTRACE_FIXTURES, name);
    folder = opendir(path);
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        struct mt_buf bytes = {0};
        if (!strstr(entry->d_name, ".pickle.zst"))
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", MEMTRACE_FIXTURES, name, entry->d_name);
        read_file(path, &bytes);
        check(bytes.data, bytes.length);
        mt_buf_release(&bytes);
        files++;
    }
    closedir(folder);
    return files;
}

TEST(test_fast_path)
{
    assert_true(check_folder("captures") >= 18);
    assert_true(check_folder("tags") >= 4);
    assert_true(check_folder("skipped") >= 4);
    assert_true(check_folder("versions") >= 5);
}

/* Bytes of a large capture changed here and there, where the short cuts read. */
TEST(test_damaged_capture)
{
    struct mt_buf bytes = {0};
    size_t at, tries = 0;

    read_file(MEMTRACE_FIXTURES "/captures/graph.pickle.zst", &bytes);
    for (at = 700; at < bytes.length; at += 977) {
        char kept = bytes.data[at];
        bytes.data[at] = (char)(kept + 1 + (int)(tries++ % 255));
        check(bytes.data, bytes.length);
        bytes.data[at] = kept;
    }
    assert_true(tries > 50);
    mt_buf_release(&bytes);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
