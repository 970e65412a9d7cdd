/* Finds layers among parameters, and the owner of an optimizer's state, on constructed models. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "parameter_layers.h"
#include "symbols.h"

/* A letter is a token. */
static void expect_repeats(const char *text, const char *wanted)
{
    uint64_t tokens[256];
    char got[256] = "";
    struct mt_repeats repeats;
    size_t count = strlen(text), used = 0;

    for (size_t i = 0; i < count; i++)
        tokens[i] = (uint64_t)text[i];
    mt_repeats_find(tokens, count, &repeats);
    for (uint32_t i = 0; i < repeats.count; i++) {
        const struct mt_repeat *repeat = &repeats.list[i];

        used += (size_t)snprintf(got + used, sizeof got - used, "%s%zu+%zux%zu/%zu", i ? " " : "",
                                 repeat->begin, repeat->times, repeat->period, repeat->more);
    }
    assert_string_equal(got, wanted);
}

TEST(repeats)
{
    expect_repeats("", "");
    expect_repeats("abc", "");
    expect_repeats("eabcabcabcn", "1+3x3/0");
    expect_repeats("eabcabcabca", "1+3x3/1"); /* the last one continues */
    expect_repeats("aaaaaaaa", "");           /* one size is no evidence */
    expect_repeats("abababab", "0+4x2/0");    /* not twice abab */
    expect_repeats("eababxcdcdcdy", "1+2x2/0 6+3x2/0");
    expect_repeats("qqqqfqqqqfqqqqfn", "0+3x5/0");
}

/* The order of the gradients: that of backward, that of the parameters' allocation, or unknown. */
static enum { BACKWARDS, FORWARDS, NONE } gradients;

/* A letter is a size in KiB and a module depth: capitals are less deep. */
static size_t make(const char *text, struct mt_parameter *parameters)
{
    size_t count = strlen(text);

    for (size_t i = 0; i < count; i++) {
        bool is_outer = text[i] < 'a';

        parameters[i] =
            (struct mt_parameter){.requested_bytes = (uint64_t)text[i] * 1024,
                                  .node = is_outer ? 1 : 2,
                                  .depth = is_outer ? 5 : 7,
                                  .has_gradient = gradients != NONE,
                                  .gradient_event = gradients == BACKWARDS ? count - i : i};
    }
    return count;
}

/* Repetitions of groups, plus CUT if their call did not end. Layers are a digit each, '.' = none.
 * Those of the second group are letters from 'a'. */
#define CUT 100
static uint32_t expect_layers(const char *text, const uint32_t *times, uint32_t count,
                              const char *wanted)
{
    struct mt_parameter parameters[256];
    struct mt_layer_group groups[4] = {{0}};
    char got[257] = "";
    size_t parameter_count = make(text, parameters);
    uint32_t own;

    for (uint32_t i = 0; i < count; i++)
        groups[i] = (struct mt_layer_group){.times = times[i] % 100, .is_cut = times[i] > 100};
    mt_parameter_layers_find(parameters, parameter_count, groups, count, &own);
    for (size_t i = 0; i < parameter_count; i++) {
        const struct mt_parameter *one = &parameters[i];

        got[i] = one->layer == MT_NO_LAYER ? '.' : (char)((one->group ? 'a' : '0') + one->layer);
        assert_int_equal(one->layer == MT_NO_LAYER, one->group == MT_NO_LAYER);
        if (one->layer != MT_NO_LAYER && one->group < count)
            assert_true(groups[one->group].is_confirmed);
    }
    assert_string_equal(got, wanted);
    return own;
}

TEST(equal_layers)
{
    static const uint32_t three = 3, two_groups[] = {2, 3}, twice[] = {3, 3};

    expect_layers("EabcabcabcN", &three, 1, ".000111222.");
    expect_layers("Eabcabcabca", &three, 1,
                  ".000111222."); /* a norm as large as the layers' first */
    expect_layers("EababNcdcdcdN", two_groups, 2, ".0011.aabbcc.");
    expect_layers("EabababNcdcdcdN", twice, 2, ".001122.aabbcc.");
    expect_layers("EabababNcdcdcdN", &three, 1, "...............");     /* ambiguous */
    expect_layers("EabcabcabcNdedede", &three, 1, "................."); /* also ambiguous */
    expect_layers("EFGHIJKabababN", &three, 1, "..............");       /* less than half */
}

/* The program may have allocated first what it calls last. */
TEST(order_of_groups)
{
    static const uint32_t twice[] = {3, 3}, stages[] = {3, 2, 3};

    gradients = NONE;
    expect_layers("EabababNcdcdcdN", twice, 2, "...............");
    expect_layers("abababefefcdcdcd", stages, 3, "001122aabbaabbcc");
    gradients = FORWARDS;
    expect_layers("EabababNcdcdcdN", twice, 2, "...............");
    gradients = BACKWARDS;
    expect_layers("EabababNcdcdcdN", twice, 2, ".001122.aabbcc.");
}

/* Parameters that repeat in no known group are unknown layers, not parameters outside of layers. */
TEST(repeats_of_no_group)
{
    struct mt_parameter parameters[64];
    struct mt_layer_group group = {.times = 3};
    const char *text = "EabcabcabcNdedeF", *wanted = "...........????.";
    size_t count = make(text, parameters);
    uint32_t own;

    mt_parameter_layers_find(parameters, count, &group, 1, &own);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(parameters[i].is_repeated, wanted[i] == '?');
}

TEST(first_layers_that_differ)
{
    static const uint32_t three = 3, stages[] = {3, 4};

    expect_layers("EabcabcN", &three, 1, "........"); /* nothing precedes them */
    expect_layers("EabxababN", &three, 1, ".0001122.");
    /* the last tokens of the first layer continue as in the others */
    expect_layers("EqxabqabqabN", &three, 1, ".0000111222.");
    /* the first layer of the next stage begins where the repetition of a stage ends */
    expect_layers("EabxababcdxcdcdcdN", stages, 2, ".0001122aaabbccdd.");
}

TEST(calls_that_did_not_end)
{
    static const uint32_t two = CUT + 2, four = CUT + 4, second[] = {4, CUT + 2};

    expect_layers("EabcabcabcN", &two, 1, ".000111222.");
    expect_layers("EabcabcabcN", &four, 1, "...........");
    expect_layers("EabababNcdcdcdN", &two, 1, "..............."); /* ambiguous */
    expect_layers("EababababNcdcdcdN", second, 2, ".00112233.aabbcc.");
}

TEST(without_calls)
{
    assert_int_equal(expect_layers("EabcabcabcN", NULL, 0, ".000111222."), 3);
    assert_int_equal(expect_layers("EabcabcN", NULL, 0, "........"), 0);
    assert_int_equal(expect_layers("ZYXWVUTabababN", NULL, 0, ".............."), 0);
}

/* States "1a1b2a2b" are stack and size. Owners are an index each. */
static void expect_owners(const char *text, const char *parameters, const char *wanted)
{
    struct mt_parameter owners[64];
    struct mt_state_block states[64];
    char got[65] = "";
    size_t parameter_count = make(parameters, owners), count = strlen(text) / 2;

    for (size_t i = 0; i < parameter_count; i++)
        owners[i].has_gradient = parameters[i] != 'f';
    for (size_t i = 0; i < count; i++)
        states[i] = (struct mt_state_block){.requested_bytes = (uint64_t)text[2 * i + 1] * 1024,
                                            .node = (uint32_t)(text[2 * i] - '0')};
    mt_state_owners_find(states, count, owners, parameter_count);
    for (size_t i = 0; i < count; i++)
        got[i] = states[i].parameter == MT_NO_LAYER ? '.' : (char)('0' + states[i].parameter);
    assert_string_equal(got, wanted);
}

TEST(state_of_optimizers)
{
    expect_owners("1a2a1b2b1a2a", "aba", "001122");
    expect_owners("1a1a1b", "aba", "021");          /* groups of parameters: decayed ones first */
    expect_owners("1a2a1b2b", "afb", "0022");       /* f is frozen */
    expect_owners("3s1a3s1b3s1a", "aba", "001122"); /* a counter for each */
    expect_owners("1a1a", "aba", "02");
    expect_owners("1a1b", "aba", ".1"); /* the optimizer has one of the two: ambiguous */
    expect_owners("1z", "aba", ".");
    expect_owners("", "aba", "");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
