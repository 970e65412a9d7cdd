/* NVTX with another tool that was there before memtrace. */
#include "nvtx_copies.h"

static char *next_story;
static int *next_mood;

static void chain(int mood)
{
    void *tool = dlopen(NVTX_TOOL, RTLD_NOW);

    assert_non_null(tool);
    next_story = dlsym(tool, "nvtx_tool_story");
    next_mood = dlsym(tool, "nvtx_tool_mood");
    *next_story = 0;
    *next_mood = mood;
    snprintf(recorded_settings.next_nvtx, sizeof recorded_settings.next_nvtx, "%s", NVTX_TOOL);
    memset(&mt_nvtx_next_core, 0, sizeof mt_nvtx_next_core);
    memset(&mt_nvtx_next_core2, 0, sizeof mt_nvtx_next_core2);
    fresh_copy(&copies[0]);
    fresh_copy(&copies[1]);
}

TEST_WITH(both_tools_hear, two_copies, NULL)
{
    struct nvtx_attributes a = ascii("a");
    void *one, *many[100];

    chain(0);
    assert_int_equal(InitializeInjectionNvtx2(get_0), 1);
    assert_int_equal(InitializeInjectionNvtx2(get_1), 1);
    one = domain("theirs");
    assert_string_equal(one, "theirs"); /* the program has the other tool's handle */
    assert_int_equal(push("x"), 100);
    assert_int_equal(push_in(one, &a), 101);
    a.message_type = NVTX_MESSAGE_IS_REGISTERED;
    a.message.registered = string(one, "hello");
    assert_int_equal(push_in(one, &a), 102);
    assert_int_equal(pop_in(one), 102);
    assert_int_equal(pop_in(one), 101);
    assert_int_equal(CALL(1, core, 11, int, (void))(), 100);
    assert_int_equal(start("s"), 4242);
    end(4242);
    assert_string_equal(next_story, "push x|push theirs/a|push theirs/hello|pop theirs/|"
                                    "pop theirs/|pop |start s|end 4242");
    assert_string_equal(recorded_story(),
                        "push x|push theirs: a|push theirs: hello|pop theirs: hello|"
                        "pop theirs: a|pop x|push s|pop s");
    for (int i = 0; i < 100; i++) /* more handles than fit into the first table */
        many[i] = mt_nvtx_string_register(mt_nvtx_domain(one), (struct mt_nvtx_text){"z", 1},
                                          (char *)next_story + 1 + i);
    for (int i = 0; i < 100; i++)
        assert_string_equal(mt_nvtx_string(many[i]).bytes, "theirs: z");
}

TEST_WITH(a_tool_that_declines, two_copies, NULL)
{
    chain(1);
    assert_int_equal(InitializeInjectionNvtx2(get_0), 1);
    assert_int_equal(push("x"), 0);
    assert_int_equal(pop(), 0);
    assert_string_equal(next_story, "");
    assert_string_equal(recorded_story(), "push x|pop x");
    recorded_settings.phases_nvtx = false;
    fresh_copy(&copies[0]);
    assert_int_equal(InitializeInjectionNvtx2(get_0), 0);
}

/* Handles that we made are kept from it. */
TEST_WITH(a_tool_without_domains, two_copies, NULL)
{
    struct nvtx_attributes a = {.size = sizeof a, .message_type = NVTX_MESSAGE_IS_REGISTERED};
    void *one;

    chain(2);
    assert_int_equal(InitializeInjectionNvtx2(get_0), 1);
    one = domain("ours");
    a.message.registered = string(one, "hello");
    push_in(one, &a);
    pop_in(one);
    assert_string_equal(next_story, "push ours: hello|pop ");
    assert_string_equal(recorded_story(), "push ours: hello|pop ours: hello");
}

/* ... and each copy has functions of its own: the second is left to it. */
TEST_WITH(a_tool_that_tells_copies_apart, two_copies, NULL)
{
    chain(3);
    assert_int_equal(InitializeInjectionNvtx2(get_0), 1);
    assert_int_equal(InitializeInjectionNvtx2(get_1), 1);
    push("x");
    CALL(1, core, 9, int, (const char *))("y");
    CALL(1, core, 11, int, (void))();
    pop();
    assert_string_equal(next_story, "push x|push y|pop |pop ");
    assert_non_null(strstr(recorded.said, "not recorded"));
    assert_string_equal(recorded_story(), "push x|pop x");
}

/* The refusal is in the trace of the process, and of each child: it has the same tables. */
TEST_WITH(a_refusal_is_told_again_after_a_fork, two_copies, NULL)
{
    chain(3);
    assert_int_equal(InitializeInjectionNvtx2(get_0), 1);
    assert_int_equal(InitializeInjectionNvtx2(get_1), 1);
    mt_nvtx_source.poll();
    mt_nvtx_source.poll();
    const char *first = strstr(recorded.facts, "not_recorded=");
    assert_non_null(first);
    assert_null(strstr(first + 1, "not_recorded="));
    recorded_clear();
    mt_nvtx_source.forked();
    mt_nvtx_source.poll();
    assert_non_null(strstr(recorded.facts, "not_recorded="));
    assert_non_null(strstr(recorded.facts, "sources=nvtx"));
}

TEST_WITH(only_the_tool_before, two_copies, NULL)
{
    chain(0);
    recorded_settings.phases_nvtx = false;
    assert_int_equal(InitializeInjectionNvtx2(get_0), 1);
    push("x");
    assert_string_equal(next_story, "push x");
    assert_int_equal(recorded.count, 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
