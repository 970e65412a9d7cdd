/* Rules of frames: instructions as compilers write them, and as nobody should. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"

#define BEGIN 0x1000u

/* At the entry of x86-64: CFA = rsp + 8, the return address below it. */
static const uint8_t entry_state[] = {0x0C, 7, 8, 0x90, 1};
/* At that of aarch64: CFA = sp, the return address is in x30. */
static const uint8_t arm_entry_state[] = {0x0C, 31, 0};

static struct mt_cfi_program program_of(const uint8_t *own, size_t length)
{
    return (struct mt_cfi_program){
        .registers = &mt_cfi_x86_64,
        .initial = {entry_state, entry_state + sizeof entry_state, false},
        .own = {own, own + length, false},
        .begin = BEGIN,
        .code_align = 1,
        .data_align = -8};
}

static struct mt_cfi_program arm_program_of(const uint8_t *own, size_t length)
{
    return (struct mt_cfi_program){
        .registers = &mt_cfi_aarch64,
        .initial = {arm_entry_state, arm_entry_state + sizeof arm_entry_state, false},
        .own = {own, own + length, false},
        .begin = BEGIN,
        .code_align = 4,
        .data_align = -8};
}

static void expect(struct mt_cfi_program program, uint64_t at, struct mt_cfi_rule expected)
{
    struct mt_cfi_rule rule = mt_cfi_execute(&program, BEGIN + at);

    assert_int_equal(rule.base, expected.base);
    if (rule.base < MT_CFI_SP)
        return;
    assert_int_equal(rule.cfa_offset, expected.cfa_offset);
    assert_int_equal(rule.return_words, expected.return_words);
    assert_int_equal(rule.fp, expected.fp);
    if (rule.fp == MT_CFI_AT_CFA)
        assert_int_equal(rule.fp_words, expected.fp_words);
}

#define EXPECT(own, at, ...)                                                                       \
    expect(program_of(own, sizeof(own)), at, (struct mt_cfi_rule){__VA_ARGS__})
#define EXPECT_ARM(own, at, ...)                                                                   \
    expect(arm_program_of(own, sizeof(own)), at, (struct mt_cfi_rule){__VA_ARGS__})

TEST(test_a_function_with_a_frame_pointer)
{
    static const uint8_t own[] = {0x41,          /* advance 1: push %rbp */
                                  0x0E, 16,      /* CFA offset 16 */
                                  0x86, 2,       /* rbp at CFA - 16 */
                                  0x43,          /* advance 3: mov %rsp, %rbp */
                                  0x0D, 6,       /* CFA by rbp */
                                  0x02, 0x40,    /* advance 0x40 */
                                  0x0C, 7,    8, /* leave */
                                  0xC6};         /* rbp as at the entry */

    EXPECT(own, 0, 8, 0, -1, MT_CFI_SP, MT_CFI_SAME);
    EXPECT(own, 1, 16, -2, -1, MT_CFI_SP, MT_CFI_AT_CFA);
    EXPECT(own, 3, 16, -2, -1, MT_CFI_SP, MT_CFI_AT_CFA);
    EXPECT(own, 4, 16, -2, -1, MT_CFI_FP, MT_CFI_AT_CFA);
    EXPECT(own, 0x43, 16, -2, -1, MT_CFI_FP, MT_CFI_AT_CFA);
    EXPECT(own, 0x44, 8, 0, -1, MT_CFI_SP, MT_CFI_SAME);
    EXPECT(own, 0x4000, 8, 0, -1, MT_CFI_SP, MT_CFI_SAME);
}

TEST(test_early_returns)
{
    static const uint8_t own[] = {0x44, 0x0E, 0x80, 0x02, 0x86, 2,    /* 256 bytes of frame */
                                  0x03, 0x00, 0x01,                   /* advance 256 */
                                  0x0A, 0x0E, 8,    0xC6,             /* a return */
                                  0x04, 0x00, 0x00, 0x01, 0x00, 0x0B, /* goes on behind it */
                                  0x00};

    EXPECT(own, 4, 256, -2, -1, MT_CFI_SP, MT_CFI_AT_CFA);
    EXPECT(own, 0x104, 8, 0, -1, MT_CFI_SP, MT_CFI_SAME);
    EXPECT(own, 0x10104, 256, -2, -1, MT_CFI_SP, MT_CFI_AT_CFA);
}

TEST(test_aligned_frames)
{
    static const uint8_t own[] = {0x41, 0x0C, 10, 0,             /* CFA by r10 */
                                  0x41, 0x10, 6,  2,    0x76, 0, /* rbp at rbp + 0 */
                                  0x41, 0x0F, 3,  0x76, 0x78, 6 /* CFA at rbp - 8 */};

    EXPECT(own, 1, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(own, 3, -8, 0, -1, MT_CFI_FP_CELL, MT_CFI_AT_FP);
}

TEST(test_what_ends_a_walk)
{
    static const uint8_t outermost[] = {0x07, 16}, moved[] = {0x90, 2},
                         in_register[] = {0x09, 16, 3};
    static const uint8_t expression[] = {0x0F, 2, 0x77, 8},
                         long_expression[] = {0x0F, 4, 0x76, 0, 6, 6};

    EXPECT(outermost, 0, 0, 0, -1, MT_CFI_LAST, 0);
    EXPECT(moved, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(in_register, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(expression, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(long_expression, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
}

TEST(test_frame_pointers_that_are_lost)
{
    static const uint8_t in_register[] = {0x09, 6, 3}, undefined[] = {0x07, 6};
    static const uint8_t expression[] = {0x10, 6, 2, 0x76, 8}, value[] = {0x14, 6, 1};
    static const uint8_t far[] = {0x05, 6, 0x80, 0x80, 4},
                         others[] = {0x83, 3, 0x05, 12, 4, 0x2E, 16};

    EXPECT(in_register, 0, 8, 0, -1, MT_CFI_SP, MT_CFI_LOST);
    EXPECT(undefined, 0, 8, 0, -1, MT_CFI_SP, MT_CFI_LOST);
    EXPECT(expression, 0, 8, 0, -1, MT_CFI_SP, MT_CFI_LOST);
    EXPECT(value, 0, 8, 0, -1, MT_CFI_SP, MT_CFI_LOST);
    EXPECT(far, 0, 8, 0, -1, MT_CFI_SP, MT_CFI_LOST);
    EXPECT(others, 0, 8, 0, -1, MT_CFI_SP, MT_CFI_SAME);
}

TEST(test_signed_forms)
{
    static const uint8_t own[] = {0x12, 6, 0x7E, 0x11, 6, 2};

    EXPECT(own, 0, 16, -2, -1, MT_CFI_FP, MT_CFI_AT_CFA);
}

TEST(test_frames_of_aarch64)
{
    static const uint8_t pair[] = {0x41, 0x0E, 48,             /* stp x29, x30, [sp, -48]! */
                                   0x9D, 6,    0x9E, 5,        /* at the bottom of the frame */
                                   0x41, 0x0C, 29,   16,       /* a frame of variable size */
                                   0x41, 0x0C, 31,   0,  0xDD, /* ldp: as at the entry */
                                   0xDE};
    static const uint8_t far[] = {0x0E, 0x80, 0x80, 0x40, 0x05, 29, /* 1 MiB */
                                  0x80, 0x80, 0x01, 0x05, 30,   0xFF, 0xFF, 0};
    static const uint8_t no_frame_pointer[] = {0x0E, 16, 0x9E, 2};

    EXPECT_ARM(pair, 0, 0, 0, 0, MT_CFI_LAST, 0);
    EXPECT_ARM(pair, 4, 48, -6, -5, MT_CFI_SP, MT_CFI_AT_CFA);
    EXPECT_ARM(pair, 8, 16, -6, -5, MT_CFI_FP, MT_CFI_AT_CFA);
    EXPECT_ARM(pair, 12, 0, 0, 0, MT_CFI_LAST, 0);
    EXPECT_ARM(far, 0, 1 << 20, -16384, -16383, MT_CFI_SP, MT_CFI_AT_CFA);
    EXPECT_ARM(no_frame_pointer, 0, 16, 0, -2, MT_CFI_SP, MT_CFI_SAME);
}

TEST(test_signed_return_addresses_of_aarch64)
{
    static const uint8_t own[] = {0x41, 0x2D, 0x41, 0x0E, 16, 0x9D, 2, 0x9E, 1};
    static const uint8_t with_pc[] = {0x2C, 0x0E, 16, 0x9D, 2, 0x9E, 1};

    EXPECT_ARM(own, 8, 16, -2, -1, MT_CFI_SP, MT_CFI_AT_CFA);
    EXPECT_ARM(with_pc, 0, 16, -2, -1, MT_CFI_SP, MT_CFI_AT_CFA);
    EXPECT(own, 2, 0, 0, 0, MT_CFI_NOWHERE, 0);
    EXPECT(with_pc, 0, 0, 0, 0, MT_CFI_NOWHERE, 0);
}

TEST(test_what_ends_a_walk_on_aarch64)
{
    static const uint8_t outermost[] = {0x07, 30}, in_register[] = {0x0E, 16, 0x09, 30, 3};
    static const uint8_t other_base[] = {0x0C, 11, 16, 0x9E, 2}, odd[] = {0x0E, 20, 0x9E, 2};
    static const uint8_t too_far[] = {0x0E, 16, 0x05, 30, 0x80, 0x80, 0x04};

    EXPECT_ARM(outermost, 0, 0, 0, 0, MT_CFI_LAST, 0);
    EXPECT_ARM(in_register, 0, 0, 0, 0, MT_CFI_NOWHERE, 0);
    EXPECT_ARM(other_base, 0, 0, 0, 0, MT_CFI_NOWHERE, 0);
    EXPECT_ARM(odd, 0, 0, 0, 0, MT_CFI_NOWHERE, 0);
    EXPECT_ARM(too_far, 0, 0, 0, 0, MT_CFI_NOWHERE, 0);
}

TEST(test_nonsense_is_nowhere)
{
    static const uint8_t unknown[] = {0x3F}, unfilled[] = {0x0B}, cut[] = {0x0C, 7};
    static const uint8_t block[] = {0x0F, 0xFF, 0x01, 0x76},
                         endless[] = {0x0E, 0x80, 0x80, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    static const uint8_t large[] = {0x0E, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};
    uint8_t deep[100];

    memset(deep, 0x0A, sizeof deep);
    EXPECT(unknown, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(unfilled, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(cut, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(block, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(endless, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(large, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
    EXPECT(deep, 0, 0, 0, -1, MT_CFI_NOWHERE, 0);
}

/* Bytes from memory of exactly their size, so that a sanitizer sees every read
 * beyond them. */
TEST(test_random_bytes_do_no_harm)
{
    unsigned round, i, sensible = 0;

    srand(1);
    for (round = 0; round < 20000; round++) {
        size_t length = (size_t)rand() % 24;
        uint8_t *bytes = malloc(length + 1);
        for (i = 0; i < length; i++)
            bytes[i] = (uint8_t)(rand() % 3 ? rand() % 0x18 : rand());
        struct mt_cfi_program program = round % 2
                                            ? program_of(bytes + 1, length ? length - 1 : 0)
                                            : arm_program_of(bytes + 1, length ? length - 1 : 0);
        program.code_align = (uint64_t)(rand() % 3);
        program.data_align = rand() % 2 ? INT64_MIN : -8;
        sensible += mt_cfi_execute(&program, BEGIN + (unsigned)rand() % 64).base > MT_CFI_LAST;
        free(bytes);
    }
    assert_in_range(sensible, 500, 19000); /* most frames of aarch64 save no return address */
}

TEST(test_functions_of_this_process)
{
    int (*const print)(const char *, ...) = printf;
    void (*const sort)(void *, size_t, size_t, int (*)(const void *, const void *)) = qsort;
    void (*const self)(void **) = test_functions_of_this_process;
    uintptr_t entries[3];

    memcpy(&entries[0], &print, sizeof print);
    memcpy(&entries[1], &sort, sizeof sort);
    memcpy(&entries[2], &self, sizeof self);
    for (size_t i = 0; i < 3; i++) {
        struct mt_cfi_rule rule = mt_cfi_find(entries[i]);
#if defined(__aarch64__) /* the return address is in its register */
        assert_int_equal(rule.base, MT_CFI_LAST);
#else /* nothing was pushed yet except the return address */
        assert_int_equal(rule.base, MT_CFI_SP);
        assert_int_equal(rule.cfa_offset, 8);
#endif
        assert_int_equal(rule.fp, MT_CFI_SAME);
    }
}

TEST(test_what_is_no_code)
{
    static char data[] = "data"; /* constants may be in a segment of code */
    char *heap = malloc(16);
    const uintptr_t addresses[] = {
        0, 1, UINTPTR_MAX, (uintptr_t)heap, (uintptr_t)&heap, (uintptr_t)data};

    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        assert_int_equal(mt_cfi_find(addresses[i]).base, MT_CFI_NOWHERE);
    free(heap);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
