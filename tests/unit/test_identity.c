/* The identity of a rank: what headers and names of files state, and hostile values that are
 * ignored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "header.h"
#include "identity.h"
#include "trace.h"
#include "util.h"

#include "cmocka_all.h"

static const struct mt_trace_header unknown = {.rank = -1, .world_size = -1};

static struct mt_identity identity_of(const struct mt_trace_header *header, const char *path)
{
    struct mt_identity identity;

    memset(&identity, 0xAA, sizeof identity); /* sets all of it */
    mt_identity_read(header, path, &identity);
    return identity;
}

TEST(an_old_trace_has_no_identity)
{
    struct mt_identity identity = identity_of(&unknown, NULL);

    assert_string_equal(identity.host, "");
    assert_string_equal(identity.boot_id, "");
    assert_string_equal(identity.job, "");
    assert_int_equal(identity.rank, -1);
    assert_int_equal(identity.local_rank, -1);
    assert_int_equal(identity.world, -1);
    assert_int_equal(identity.restart, -1);
    assert_int_equal(identity.rank_origin, MT_RANK_UNKNOWN);
    assert_int_equal(identity.ended, MT_ENDED_UNKNOWN);
    assert_int_equal(identity.ended_t_ns, 0);
    assert_int_equal(identity.mesh.count, 0);
    assert_int_equal(identity.device_count, 0);
    assert_int_equal(identity.group_count, 0);
    assert_false(identity.is_planned);
}

static const struct mt_trace_header known = {
    .host = "node12",
    .process_id = 4711,
    .rank = 11,
    .world_size = 768,
    .local_rank = "3",
    .restart = "0",
    .boot_id = "f4d2c1b0-0000-4000-8000-00805f9b34fb",
    .job = "slurm:1234_5",
    .mesh = "pp=1/8,dp=3/32,tp=0/3",
    .process_groups = "0:default_pg=0-767\n1:dp=11-761:25\n",
    .ended = "signal:9",
    .ended_t_ns = UINT64_C(1795000000123456789),
    .cgroup_limit_bytes = UINT64_C(68719476736),
    .device_uuid = {[3] = "GPU-01020304-0506-0708-090a-0b0c0d0e0f10"},
    .device_pci = {[3] = "0000:65:00.0"},
    .device_mig = {[15] = "1g.18gb"},
    .dry_run = "version=1",
};

TEST(all_is_read)
{
    struct mt_identity identity = identity_of(&known, "rank7.trace.zst");

    assert_string_equal(identity.host, known.host);
    assert_string_equal(identity.boot_id, known.boot_id);
    assert_string_equal(identity.job, known.job);
    assert_int_equal(identity.process_id, 4711);
    assert_int_equal(identity.rank, 11); /* the recorded value wins over the name */
    assert_int_equal(identity.rank_origin, MT_RANK_RECORDED);
    assert_int_equal(identity.local_rank, 3);
    assert_int_equal(identity.world, 768);
    assert_int_equal(identity.restart, 0);
    assert_true(identity.is_planned);
    assert_int_equal(identity.cgroup_limit_bytes, known.cgroup_limit_bytes);
    assert_int_equal(identity.ended, MT_ENDED_SIGNAL);
    assert_int_equal(identity.ended_number, 9);
    assert_int_equal(identity.ended_t_ns, known.ended_t_ns);
    assert_int_equal(identity.mesh.count, 3);
    assert_string_equal(identity.mesh.axes[1].name, "dp");
    assert_int_equal(identity.mesh.axes[1].coordinate, 3);
    assert_int_equal(identity.mesh.axes[1].size, 32);
    assert_int_equal(identity.device_count, 2);
    assert_int_equal(identity.devices[0].index, 3);
    assert_string_equal(identity.devices[0].uuid, known.device_uuid[3]);
    assert_string_equal(identity.devices[0].pci, "0000:65:00.0");
    assert_string_equal(identity.devices[0].mig, "");
    assert_int_equal(identity.devices[1].index, 15);
    assert_string_equal(identity.devices[1].mig, "1g.18gb");
    assert_int_equal(identity.group_count, 2);
    assert_int_equal(identity.groups[0].position, 11);
    assert_int_equal(identity.groups[1].position, 0);
    assert_int_equal(identity.groups[1].size, 31);
    assert_int_equal(identity.groups[1].stride, 25);
}

/* A trace with this header, written and read back. */
TEST(a_trace_keeps_it)
{
    FILE *file = tmpfile();
    struct mt_symbols symbols;
    struct mt_writer *writer = NULL;
    struct mt_source *source = NULL;
    struct mt_error error = {0};
    struct mt_identity wrote = identity_of(&known, NULL), read;

    assert_non_null(file);
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_int_equal(mt_writer_new(fileno(file), &known, &symbols, NULL, &writer, &error), MT_OK);
    assert_int_equal(mt_writer_finish(writer, &error), MT_OK);
    assert_int_equal(mt_trace_open_fd(fileno(file), UINT64_MAX, &source, &error), MT_OK);
    read = identity_of(&source->header, NULL);
    assert_memory_equal(&read, &wrote, sizeof read);
    mt_source_close(source);
    mt_writer_free(writer);
    mt_symbols_release(&symbols);
    fclose(file);
}

/* Space for a header that grows: used and never exceeded. */
TEST(a_header_grows_within_its_room)
{
    char path[] = "/tmp/test_identity.XXXXXX", long_text[1000];
    const struct mt_writer_options options = {.header_bytes = 512};
    struct mt_trace_header header = unknown, read;
    struct mt_symbols symbols;
    struct mt_writer *writer = NULL;
    struct mt_error error = {0};
    struct mt_arena arena = {0};
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_int_equal(mt_writer_new(fd, &header, &symbols, &options, &writer, &error), MT_OK);
    header.ended = "exit:3";
    assert_int_equal(mt_writer_set_header(writer, &header, &error), MT_OK);
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    header.job = long_text;
    assert_int_equal(mt_writer_set_header(writer, &header, &error), MT_ERR_USAGE);
    assert_int_equal(mt_writer_finish(writer, &error), MT_OK);
    assert_int_equal(mt_trace_replace_header(path, &header, &error), MT_ERR_USAGE);
    header.job = "slurm:7";
    assert_int_equal(mt_trace_replace_header(path, &header, &error), MT_OK);
    assert_int_equal(mt_trace_read_header(path, &arena, &read, &error), MT_OK);
    assert_string_equal(read.ended, "exit:3");
    assert_string_equal(read.job, "slurm:7");
    mt_arena_release(&arena);
    mt_writer_free(writer);
    mt_symbols_release(&symbols);
    close(fd);
    unlink(path);
}

TEST(what_is_out_of_range_is_unknown)
{
    char long_text[1000];
    struct mt_trace_header header = {.rank = INT32_MAX,
                                     .world_size = INT32_MAX,
                                     .local_rank = "-1",
                                     .restart = "99999999999999999999999",
                                     .host = long_text,
                                     .job = long_text,
                                     .ended = "exit:256",
                                     .mesh = "pp=8/8",
                                     .process_groups = "=1\n",
                                     .device_uuid = {long_text},
                                     .device_pci = {"0000:65:00.0"}};

    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    struct mt_identity identity = identity_of(&header, NULL);
    assert_int_equal(identity.rank, -1);
    assert_int_equal(identity.local_rank, -1);
    assert_int_equal(identity.restart, -1);
    assert_string_equal(identity.host, "");
    assert_string_equal(identity.job, "");
    assert_int_equal(identity.ended, MT_ENDED_UNKNOWN);
    assert_int_equal(identity.mesh.count, 0);
    assert_int_equal(identity.group_count, 0);
    assert_int_equal(identity.groups_left_out, 1);
    assert_int_equal(identity.device_count, 1);
    assert_string_equal(identity.devices[0].uuid, "");
    assert_string_equal(identity.devices[0].pci, "0000:65:00.0");
    header.rank = 4;
    header.world_size = 4; /* they contradict each other */
    identity = identity_of(&header, NULL);
    assert_int_equal(identity.rank, 4);
    assert_int_equal(identity.world, -1);
}

TEST(texts_of_the_largest_length_fit)
{
    char text[MT_IDENTITY_TEXT + 1];
    struct mt_trace_header header = unknown;

    memset(text, 'x', sizeof text);
    text[MT_IDENTITY_TEXT - 1] = '\0';
    header.host = text;
    assert_string_equal(identity_of(&header, NULL).host, text);
    text[MT_IDENTITY_TEXT - 1] = 'x';
    text[MT_IDENTITY_TEXT] = '\0';
    assert_string_equal(identity_of(&header, NULL).host, "");
}

TEST(a_name_has_the_rank)
{
    static const struct {
        const char *path;
        int32_t rank;
    } cases[] = {
        {"node12-77-rank3.trace.zst", 3},
        {"iteration_5/rank12_memory_snapshot.pickle", 12},
        {"rank_003.pickle", 3},
        {"x_oom_rank-7_2.pickle", 7},
        {"oom_rank_0.pickle", 0},
        {"RANK=5.trace.zst", 5},
        {"snapshot-r31.pickle", 31},
        {"r3", 3},
        {"rank2.17.pt.trace.zst", 2},
        {"rank0-of-r9.pickle", 0}, /* the longer word wins */
        {"rank2_rank2.pickle", 2},
        {"rank2147483646", INT32_MAX - 1},
        {"/r1/rank2/plain.pickle", -1}, /* folders have no effect */
        {"frank3.pickle", -1},
        {"rank.pickle", -1},
        {"rank_.pickle", -1},
        {"rank--3.pickle", -1},
        {"rank3a.pickle", -1},
        {"err3or.pickle", -1},
        {"local_rank3.pickle", -1},
        {"node_rank3.pickle", -1},
        {"rank1_rank2.pickle", -1},
        {"rank1_rank2_r3.pickle", -1},
        {"r1_r2.pickle", -1},
        {"rank2147483647", -1},
        {"rank99999999999999999999999", -1},
        {"", -1},
    };
    struct mt_identity identity = identity_of(&unknown, "a/rank3.pickle");

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++)
        if (mt_rank_of_name(cases[i].path) != cases[i].rank)
            fail_msg("'%s': %d", cases[i].path, mt_rank_of_name(cases[i].path));
    assert_int_equal(identity.rank, 3);
    assert_int_equal(identity.rank_origin, MT_RANK_OF_NAME);
}

TEST(a_killed_run_may_need_more)
{
    assert_null(mt_ending_doubt(MT_ENDED_UNKNOWN, 0));
    assert_null(mt_ending_doubt(MT_ENDED_EXIT, 0));
    assert_string_equal(mt_ending_doubt(MT_ENDED_EXIT, 3), "the command failed");
    assert_string_equal(mt_ending_doubt(MT_ENDED_SIGNAL, 11), "a signal ended the command");
    assert_string_equal(mt_ending_doubt(MT_ENDED_OOM_KILLED, 0), "a signal ended the command");
    assert_string_equal(mt_ending_doubt(MT_ENDED_TIMEOUT, 0), "a timeout ended the run");
}

TEST(endings_are_read_as_written)
{
    static const struct {
        enum mt_ending ending;
        int32_t number;
        const char *text;
    } cases[] = {
        {MT_ENDED_EXIT, 0, "exit:0"},     {MT_ENDED_EXIT, 255, "exit:255"},
        {MT_ENDED_SIGNAL, 9, "signal:9"}, {MT_ENDED_SIGNAL, 127, "signal:127"},
        {MT_ENDED_TIMEOUT, 0, "timeout"}, {MT_ENDED_OOM_KILLED, 0, "oom-killed"},
        {MT_ENDED_UNKNOWN, 0, "unknown"},
    };
    static const char *const wrong[] = {
        "exit:",      "exit:256", "exit:-1", "exit:1 ", "signal:0", "EXIT:0",
        "signal:128", "timeout1", "",        "exit",    "signal:",  "exit:18446744073709551617"};
    char text[MT_ENDING_TEXT];
    enum mt_ending ending;
    int32_t number;

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        assert_string_equal(mt_ending_text(cases[i].ending, cases[i].number, text), cases[i].text);
        assert_true(mt_ending_read(text, &ending, &number));
        assert_int_equal(ending, cases[i].ending);
        assert_int_equal(number, cases[i].number);
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(wrong); i++) {
        ending = MT_ENDED_TIMEOUT;
        assert_false(mt_ending_read(wrong[i], &ending, &number));
        assert_int_equal(ending, MT_ENDED_UNKNOWN);
        assert_int_equal(number, 0);
    }
    assert_false(mt_ending_read(NULL, &ending, &number));
    assert_string_equal(mt_ending_text(MT_ENDED_EXIT, 256, text), "unknown");
    assert_string_equal(mt_ending_text(MT_ENDED_SIGNAL, 0, text), "unknown");
}

TEST(a_mesh_is_checked)
{
    static const char *const right[] = {
        "pp=1/8,dp=3/32,tp=0/8", "a=0/1", "abcdefghijklmnop=2147483647/2147483648",
        "a=0/1,b=0/1,c=0/1,d=0/1,e=0/1,f=0/1,g=0/1,h=0/1", "context_parallel=1/2"};
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"pp", "such as"},
        {"pp=", "such as"},
        {"pp=1", "such as"},
        {"pp=1/", "such as"},
        {"pp=/8", "such as"},
        {"pp=1/8,", "such as"},
        {"pp=1/8;dp=0/1", "such as"},
        {"pp=-1/8", "such as"},
        {"pp=1/8 ", "such as"},
        {"pp:1/8", "characters"},
        {"PP=1/8", "characters"},
        {"=1/8", "characters"},
        {",pp=1/8", "characters"},
        {"abcdefghijklmnopq=1/8", "characters"},
        {"p2=1/8", "characters"},
        {"pp=8/8", "not below"},
        {"pp=0/0", "not below"},
        {"pp=0/2147483649", "2^31"},
        {"pp=0/65536,dp=0/65536", "2^31"},
        {"pp=0/18446744073709551617", "such as"},
        {"pp=0/2,pp=1/2", "twice"},
        {"a=0/1,b=0/1,c=0/1,d=0/1,e=0/1,f=0/1,g=0/1,h=0/1,i=0/1", "8 axes"},
    };
    struct mt_mesh mesh;

    for (size_t i = 0; i < MT_ARRAY_LEN(right); i++) {
        struct mt_buf out = {0};
        assert_null(mt_mesh_read(right[i], &mesh));
        mt_mesh_write(&mesh, &out);
        assert_string_equal(out.data, right[i]);
        mt_buf_release(&out);
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(wrong); i++) {
        const char *why = mt_mesh_read(wrong[i].text, &mesh);
        if (!why || !strstr(why, wrong[i].why))
            fail_msg("'%s': %s", wrong[i].text, why ? why : "nothing is wrong with it");
        assert_int_equal(mesh.count, 0);
    }
    assert_null(mt_mesh_read(NULL, &mesh));
    assert_null(mt_mesh_read("", &mesh));
    assert_int_equal(mesh.count, 0);
}

static void expect_group(const uint32_t *ranks, size_t count, const char *text)
{
    struct mt_identity_group groups[MT_IDENTITY_GROUPS];
    uint32_t group_count, left_out;
    struct mt_buf out = {0};

    mt_process_group_write("g", ranks, count, &out);
    assert_string_equal(out.data, text);
    for (size_t i = 0; i < count; i++) {
        mt_process_groups_read(out.data, (int32_t)ranks[i], groups, &group_count, &left_out);
        assert_int_equal(group_count, 1);
        assert_int_equal(left_out, 0);
        assert_int_equal(groups[0].size, count);
        assert_int_equal(groups[0].position, i);
        assert_int_equal(groups[0].first, ranks[0]);
    }
    mt_process_groups_read(out.data, 5000, groups, &group_count, &left_out);
    assert_int_equal(groups[0].position, -1);
    mt_buf_release(&out);
}

TEST(groups_are_written_as_ranges)
{
    expect_group((const uint32_t[]){7}, 1, "g=7\n");
    expect_group((const uint32_t[]){0, 1}, 2, "g=0-1\n");
    expect_group((const uint32_t[]){0, 8}, 2, "g=0-8:8\n");
    expect_group((const uint32_t[]){0, 1, 2, 3}, 4, "g=0-3\n");
    expect_group((const uint32_t[]){1, 9, 17, 25}, 4, "g=1-25:8\n");
    expect_group((const uint32_t[]){1, 2, 9}, 3, "g=1-2,9\n");
    expect_group((const uint32_t[]){1, 4, 9, 10, 11}, 5, "g=1,4,9-11\n");
    expect_group((const uint32_t[]){0, 1, 4, 5}, 4, "g=0-1,4-5\n");
}

TEST(equal_members_have_equal_hashes)
{
    struct mt_identity_group groups[MT_IDENTITY_GROUPS];
    uint32_t count, left_out;

    mt_process_groups_read("a=0-7\nb=0-7\nc=0-6\n", 0, groups, &count, &left_out);
    assert_int_equal(count, 3);
    assert_true(groups[0].members_hash == groups[1].members_hash);
    assert_true(groups[0].members_hash != groups[2].members_hash);
}

TEST(hostile_groups_are_omitted)
{
    static const char *const wrong[] = {
        "g",
        "g=",
        "=0",
        "g=x",
        "g=1,",
        "g=,1",
        "g=1-",
        "g=3-1",
        "g=1-3:",
        "g=1-3:0",
        "g=0-7:2",
        "g=1,1",
        "g=0-4,2",
        "g=2,1",
        "g=-1",
        "g=1 ",
        "g=2147483647",
        "g=0-99999999999999999999",
        "g=0-4:99999999999",
        "0123456789012345678901234567890123456789012345678901234567890123=1"};
    struct mt_identity_group groups[MT_IDENTITY_GROUPS];
    uint32_t count, left_out;
    struct mt_buf many = {0};

    for (size_t i = 0; i < MT_ARRAY_LEN(wrong); i++) {
        mt_process_groups_read(wrong[i], 1, groups, &count, &left_out);
        if (count || left_out != 1)
            fail_msg("'%s' is read", wrong[i]);
    }
    mt_process_groups_read("g=0-2147483646\n\n\n", 2147483646, groups, &count, &left_out);
    assert_int_equal(count, 1);
    assert_int_equal(left_out, 0);
    assert_int_equal(groups[0].size, INT32_MAX);
    assert_int_equal(groups[0].position, 2147483646);
    for (int i = 0; i < 40; i++)
        mt_buf_printf(&many, "%d=0-1\n", i);
    mt_process_groups_read(many.data, 1, groups, &count, &left_out);
    assert_int_equal(count, MT_IDENTITY_GROUPS);
    assert_int_equal(left_out, 8);
    mt_buf_release(&many);
    mt_process_group_write("a=b\nc", (const uint32_t[]){3}, 1, &many);
    assert_string_equal(many.data, "a_b_c=3\n");
    mt_buf_release(&many);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
