/* The command of one rank, which ranks run, and their environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "cmocka_all.h"
#include "rank.h"
#include "util.h"

#define WORDS(...) ((char *const *)(const char *const[]){__VA_ARGS__, NULL})

static void assert_words(char *const *words, char *const *expected)
{
    while (*expected) {
        assert_non_null(*words);
        assert_string_equal(*words++, *expected++);
    }
    assert_null(*words);
}

static void assert_read(char *const *command, char *const *expected, uint64_t nodes,
                        uint64_t local_world)
{
    struct mt_arena arena = {0};
    struct mt_rank_command read;

    assert_int_equal(mt_rank_command_read(&read, command, &arena), -1);
    assert_words(read.words, expected);
    assert_int_equal(read.nodes, nodes);
    assert_int_equal(read.local_world, local_world);
    assert_int_equal(read.is_launched, expected[0] != command[0] || read.words != command);
    mt_arena_release(&arena);
}

static void assert_refused(char *const *command)
{
    struct mt_arena arena = {0};
    struct mt_rank_command read;

    assert_int_equal(mt_rank_command_read(&read, command, &arena), MT_EXIT_USAGE);
    mt_arena_release(&arena);
}

TEST(without_a_launcher)
{
    char *const *command = WORDS("python", "-m", "train", "--nnodes", "3");

    assert_read(command, command, 0, 0);
    command = WORDS("./train.sh", "torchrun");
    assert_read(command, command, 0, 0);
    command = WORDS("python", "-c", "torchrun");
    assert_read(command, command, 0, 0);
}

TEST(the_module_of_torchrun)
{
    assert_read(WORDS("python3", "-X", "dev", "-m", "torch.distributed.run", "--nproc-per-node",
                      "8", "train.py", "--nnodes", "3"),
                WORDS("python3", "-X", "dev", "-u", "train.py", "--nnodes", "3"), 0, 8);
    assert_read(WORDS("python", "-m", "torch.distributed.run", "--standalone", "--nnodes=1:4",
                      "--nproc_per_node=gpu", "--rdzv_endpoint", "host:29500", "--tee", "3", "-m",
                      "pkg.train", "-m"),
                WORDS("python", "-u", "-m", "pkg.train", "-m"), 4, 0);
    assert_read(WORDS("python", "-X", "dev", "-mtorch.distributed.run", "--nnodes=2", "train.py"),
                WORDS("python", "-X", "dev", "-u", "train.py"), 2, 0);
    assert_read(WORDS("python", "/opt/bin/torchrun", "--no-python", "-r", "3", "./app", "x"),
                WORDS("./app", "x"), 0, 0);
}

/* The Python of the script's first line. */
TEST(torchrun_itself)
{
    char folder[] = "/tmp/memtrace-rank-XXXXXX", path[64];

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/torchrun", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("#!/usr/bin/env python3\n", file);
    assert_int_equal(fclose(file), 0);
    chmod(path, 0755);
    struct mt_arena arena = {0};
    struct mt_rank_command read;

    assert_int_equal(
        mt_rank_command_read(&read, WORDS(path, "--nproc-per-node=2", "train.py", "--x"), &arena),
        -1);
    assert_non_null(strstr(read.words[0], "python3"));
    assert_words(read.words + 1, WORDS("-u", "train.py", "--x"));
    mt_arena_release(&arena);
    unlink(path);
    rmdir(folder);
}

TEST(unknown_commands)
{
#define RUN "python", "-m", "torch.distributed.run"
    assert_refused(WORDS(RUN));
    assert_refused(WORDS(RUN, "--nproc-per-node"));
    assert_refused(WORDS(RUN, "--nproc-per-node", "many", "train.py"));
    assert_refused(WORDS(RUN, "--nproc-per-node", "0", "train.py"));
    assert_refused(WORDS(RUN, "--nnodes", "1:x", "train.py"));
    assert_refused(WORDS(RUN, "--virtual-local-rank", "train.py"));
    assert_refused(WORDS(RUN, "--nproc", "2", "train.py"));
    assert_refused(WORDS(RUN, "-q", "train.py"));
}

/* They start ranks themselves, so a rank of them cannot run alone. */
TEST(other_launchers)
{
    char *const *const commands[] = {WORDS("python", "-m", "torch.distributed.launch", "train.py"),
                                     WORDS("python", "-mtorch.distributed.launch", "train.py"),
                                     WORDS("/usr/bin/deepspeed", "train.py"),
                                     WORDS("accelerate", "launch", "train.py")};
    static const char *const names[] = {"python", "python", "deepspeed", "accelerate"};
    struct mt_arena arena = {0};
    struct mt_rank_command read;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(mt_rank_command_read(&read, commands[i], &arena), -1);
        assert_string_equal(read.other_launcher, names[i]);
    }
    mt_arena_release(&arena);
}

static void assert_ranks(const char *text, uint64_t world, const uint64_t *expected, size_t length)
{
    uint64_t ranks[MT_MAX_RANKS];
    size_t count;

    assert_int_equal(mt_ranks_read(text, world, ranks, &count), -1);
    assert_int_equal(count, length);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(ranks[i], expected[i]);
}
#define RANKS(text, world, ...)                                                                    \
    assert_ranks(text, world, (const uint64_t[]){__VA_ARGS__},                                     \
                 sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

TEST(which_ranks)
{
    static const char *const wrong[] = {
        "",    ",",   "0,", "0-",  "-1",    "3-1",  "a",
        "0 1", "0,0", "8",  "0-8", "all,1", "0,,1", "99999999999999999999"};
    uint64_t ranks[MT_MAX_RANKS];
    size_t count;

    RANKS("0,1,7", 8, 0, 1, 7);
    RANKS("7,2-4", 8, 7, 2, 3, 4);
    RANKS("all", 3, 0, 1, 2);
    RANKS("1048575", MT_MAX_WORLD, 1048575);
    for (size_t i = 0; i < MT_ARRAY_LEN(wrong); i++)
        assert_int_equal(mt_ranks_read(wrong[i], 8, ranks, &count), MT_EXIT_USAGE);
    assert_int_equal(mt_ranks_read("all", 64, ranks, &count), -1);
    assert_int_equal(mt_ranks_read("all", 65, ranks, &count), MT_EXIT_USAGE);
    assert_int_equal(mt_ranks_read("0-63,64", 65, ranks, &count), MT_EXIT_USAGE);
}

TEST(the_environment_of_a_rank)
{
    static const struct {
        const char *name, *value;
    } expected[] = {{"RANK", "13"},
                    {"LOCAL_RANK", "5"},
                    {"WORLD_SIZE", "16"},
                    {"LOCAL_WORLD_SIZE", "8"},
                    {"GROUP_RANK", "1"},
                    {"GROUP_WORLD_SIZE", "2"},
                    {"ROLE_RANK", "13"},
                    {"MASTER_ADDR", "127.0.0.1"},
                    {"MASTER_PORT", "29500"},
                    {"TORCHELASTIC_RUN_ID", "none"},
                    {"MEMTRACE_DRY_RUN_ALONE", "1"}};
    const struct mt_rank rank = {.rank = 13, .world = 16, .local_world = 8, .is_launched = true};

    assert_true(mt_rank_set_environment(&rank));
    for (size_t i = 0; i < MT_ARRAY_LEN(expected); i++)
        assert_string_equal(getenv(expected[i].name), expected[i].value);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
