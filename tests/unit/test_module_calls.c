/* Finds the function that a model's call enters repeatedly, on constructed stacks. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "forward_logs.h"

struct program {
    struct mt_symbols symbols;
    uint32_t nodes[256];
    size_t count;
};

/* "model:3 layer:7" is a stack below the call; a function's file is its own. */
static uint32_t stack_of(struct program *program, const char *text)
{
    uint32_t stack = MT_NO_ID, function, file, frame;
    char name[32], path[64], words[256];

    snprintf(words, sizeof words, "main:1 %s", text);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        unsigned line;

        assert_int_equal(sscanf(word, "%31[a-z]:%u", name, &line), 2);
        snprintf(path, sizeof path, "/home/me/%s.py", name);
        assert_int_equal(mt_symbols_string(&program->symbols, name, strlen(name), &function), 0);
        assert_int_equal(mt_symbols_string(&program->symbols, path, strlen(path), &file), 0);
        assert_int_equal(mt_symbols_frame(&program->symbols, function, file, line, &frame), 0);
        assert_int_equal(mt_symbols_stack(&program->symbols, stack, frame, &stack), 0);
    }
    return stack;
}

/* Allocations, with one stack each, NULL at the end; and the entry of each, '.' = none. */
static void expect_of(bool is_cut, const char *const *stacks, const char *wanted)
{
    struct program program = {.count = 0};
    struct mt_module_call calls[256];
    struct mt_python_tree tree = {0};
    char got[257] = "";

    assert_int_equal(mt_symbols_init(&program.symbols), MT_OK);
    uint32_t root = stack_of(&program, "");
    for (; stacks[program.count]; program.count++)
        program.nodes[program.count] = stack_of(&program, stacks[program.count]);
    mt_python_tree_update(&tree, &program.symbols);
    for (size_t i = 0; i < program.count; i++)
        program.nodes[i] = mt_python_node_of(&tree, program.nodes[i]);
    struct mt_module_sequence sequence = {root, program.nodes, program.count, is_cut};
    assert_int_equal(mt_module_calls_find(&tree, &program.symbols, &sequence, calls), MT_OK);
    for (size_t i = 0; i < program.count; i++) {
        uint32_t times = 0;

        for (size_t j = 0; j < program.count; j++)
            if (calls[j].body == calls[i].body && calls[j].entry >= times)
                times = calls[j].entry + 1;
        assert_int_equal(calls[i].times, calls[i].body == MT_NO_ID ? 0 : times);
    }
    for (size_t i = 0; i < program.count; i++)
        got[i] = calls[i].body == MT_NO_ID ? '.' : (char)('0' + calls[i].entry);
    assert_string_equal(got, wanted);
    mt_python_tree_release(&tree);
    mt_symbols_release(&program.symbols);
}

static void expect(const char *const *stacks, const char *wanted)
{
    expect_of(false, stacks, wanted);
}

#define STACKS(...) ((const char *const[]){__VA_ARGS__, NULL})

#define LAYER "model:4 layer:10 norm:2", "model:4 layer:11 attention:5", "model:4 layer:12"

TEST(layers)
{
    expect(STACKS("model:2", LAYER, LAYER, LAYER, "model:5 norm:2"), ".000111222.");
    expect(STACKS("model:2", LAYER, "model:5"), ".....");
    /* one layer allocates more than the others */
    expect(STACKS("model:4 layer:9", LAYER, LAYER, "model:4 layer:13", LAYER), ".0001111222");
    /* the lines of one expression run backwards */
    expect(STACKS("model:4 layer:12", "model:4 layer:11", "model:4 layer:10", "model:4 layer:12",
                  "model:4 layer:11", "model:4 layer:10"),
           "000111");
    expect(STACKS("model:4"), ".");
}

/* A loop over lines of one function: its prologue and epilogue are in no iteration. */
TEST(iterations_of_a_loop)
{
    expect(STACKS("model:2", "model:4 a:1", "model:5 b:1", "model:4 a:1", "model:5 b:1", "model:7"),
           ".0011.");
    /* it ends in the middle: three and two */
    expect(STACKS("model:4 a:1", "model:5 b:1", "model:6 c:1", "model:4 a:1", "model:5 b:1",
                  "model:6 c:1", "model:4 a:1"),
           ".......");
}

/* The program fails in the third layer. */
TEST(calls_that_did_not_end)
{
    expect_of(true, STACKS("model:2", LAYER, LAYER, "model:4 layer:10 norm:2"), ".0001112");
    expect(STACKS("model:2", LAYER, LAYER, "model:4 layer:10 norm:2"), "........");
    expect_of(true, STACKS("model:2", LAYER, LAYER), ".000111");
}

/* Loops inside of each layer are ignored. */
TEST(loops_within)
{
#define HEADS                                                                                      \
    "model:4 layer:10", "model:4 layer:11 head:1", "model:4 layer:11 head:2",                      \
        "model:4 layer:11 head:1", "model:4 layer:11 head:2", "model:4 layer:12"
    expect(STACKS(HEADS, HEADS), "000000111111");
    expect(STACKS(HEADS), ".0011.");
    expect(STACKS("model:4 layer:10", "model:4 layer:11 a:1", "model:4 layer:12 a:1",
                  "model:4 layer:11 a:1", "model:4 layer:12 a:1", "model:4 layer:10",
                  "model:4 layer:11 a:1", "model:4 layer:12 a:1", "model:4 layer:11 a:1",
                  "model:4 layer:12 a:1"),
           ".001112233"); /* most lines are in the loop: the parameters will not match */
}

/* One line that allocates twice looks like two calls. */
TEST(one_line_shows_nothing)
{
    expect(STACKS("model:4 linear:1", "model:4 linear:1", "model:4 linear:1"), "...");
    expect(STACKS("model:4 linear:1", "model:4 relu:1", "model:4 linear:1", "model:4 relu:1"),
           "....");
}

TEST(stages)
{
    expect(STACKS("model:4 block:1", "model:4 block:2", "model:4 block:1", "model:4 block:2",
                  "model:5 block:1", "model:5 block:2", "model:5 block:1", "model:5 block:2",
                  "model:5 block:1", "model:5 block:2"),
           "0011001122");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
