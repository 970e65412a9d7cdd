#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_hash.h"
#include "sha256.h"

/* FIPS 180-4 examples, and sizes around the ends of blocks (sha256sum). */
static const struct {
    const char *text;
    size_t repeats;
    const char *hash;
} known[] = {
    {"", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
    {"a", 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
    {"a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
    {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

static void hash_of(const char *text, size_t repeats, int portable, char out[MT_SHA256_TEXT])
{
    struct mt_sha256 sha;

    mt_sha256_init(&sha);
    sha.portable |= portable;
    for (size_t i = 0; i < repeats; i++)
        mt_sha256_add(&sha, text, strlen(text));
    mt_sha256_finish(&sha, out);
}

TEST(vectors)
{
    char hash[MT_SHA256_TEXT];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        for (int portable = 0; portable < 2; portable++) {
            hash_of(known[i].text, known[i].repeats, portable, hash);
            assert_string_equal(hash, known[i].hash);
        }
    }
}

/* Both functions agree, for every division of the input. */
TEST(pieces)
{
    unsigned char bytes[1000];
    char whole[MT_SHA256_TEXT], parts[MT_SHA256_TEXT];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    for (size_t length = 0; length <= sizeof bytes; length += 37) {
        struct mt_sha256 sha;

        mt_sha256_init(&sha);
        mt_sha256_add(&sha, bytes, length);
        mt_sha256_finish(&sha, whole);
        mt_sha256_init(&sha);
        sha.portable = true;
        for (size_t at = 0, step = 1; at < length; at += step, step = step % 129 + 1) {
            if (step > length - at)
                step = length - at;
            mt_sha256_add(&sha, bytes + at, step);
        }
        mt_sha256_finish(&sha, parts);
        assert_string_equal(whole, parts);
    }
}

/* Its writer would end, since nobody reads after that. */
TEST(a_pipe_is_not_opened)
{
    char folder[] = "/tmp/memtrace-hash-XXXXXX", path[64], text[MT_SHA256_TEXT] = "x";
    struct inotify_event opened;
    struct mt_error error = {0};
    int watch = inotify_init1(IN_NONBLOCK);

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    assert_int_equal(mt_file_hash(path, text, &error), MT_OK);
    assert_string_equal(text, "");
    assert_int_equal(read(watch, &opened, sizeof opened), -1);
    assert_int_equal(close(watch), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
