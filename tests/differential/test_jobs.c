/* Several policies in parallel print the same bytes as one after the other. So does the first of
 * several that fail. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "util.h"

#define CAPTURE "'" MEMTRACE_FIXTURES "/captures/streams_cap.pickle.zst'"

/* What the command prints on both streams, and its exit code. */
static void say(const char *arguments, unsigned jobs, struct mt_buf *said)
{
    struct mt_buf command = {0};
    char bytes[4096];
    size_t count;

    mt_buf_printf(&command, "exec 2>&1; '%s' %s --jobs %u; echo \"exit $?\"", MEMTRACE_PROGRAM,
                  arguments, jobs);
    assert_false(command.failed);
    FILE *pipe = popen(command.data, "r");
    assert_non_null(pipe);
    while ((count = fread(bytes, 1, sizeof bytes, pipe)) > 0)
        mt_buf_add(said, bytes, count);
    assert_int_equal(pclose(pipe), 0);
    assert_false(said->failed);
    mt_buf_release(&command);
}

TEST(jobs_do_not_change_the_answer)
{
    static const struct {
        const char *arguments, *end; /* of what is said */
    } commands[] = {
        {"replay " CAPTURE " -p pytorch -p bfc -p recorded -p cupy -p tlsf --limit 2GiB",
         "exit 0\n"},
        {"replay " CAPTURE " -p none -p pytorch:expandable_segments:True -p buddy --verify --json",
         "exit 1\n"},
        {"fit " CAPTURE " -p pytorch -p best-fit -p ort -p paged", "exit 0\n"},
        {"replay " CAPTURE " -p none -p buddy:nothing=1 -p nobody -p paged",
         "'buddy:nothing=1': it has no option 'nothing'\nexit 2\n"},
        {"fit " CAPTURE " -p bfc -p recorded -p bfc:x=1",
         "'recorded': simulates nothing, so it has no smallest limit\nexit 2\n"},
        {"replay - -p none -p pytorch -p paged < " CAPTURE, "exit 0\n"},
        {"replay nowhere.trace -p none -p paged", "exit 3\n"},
    };
    static const unsigned jobs[] = {2, 3, 32, 1000};

    for (size_t i = 0; i < MT_ARRAY_LEN(commands); i++) {
        struct mt_buf one = {0};
        say(commands[i].arguments, 1, &one);
        assert_true(one.length > strlen(commands[i].end));
        assert_string_equal(one.data + one.length - strlen(commands[i].end), commands[i].end);
        for (size_t j = 0; j < MT_ARRAY_LEN(jobs); j++) {
            struct mt_buf several = {0};
            say(commands[i].arguments, jobs[j], &several);
            assert_string_equal(several.data, one.data);
            mt_buf_release(&several);
        }
        mt_buf_release(&one);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
