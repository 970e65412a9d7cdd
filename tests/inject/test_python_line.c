/* Line tables: one function as four compilers wrote it down, with what
 * PyCode_Addr2Line returns for it; and invalid tables. Much more code of real
 * interpreters: check_python_stacks.py. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python_code.h"

/* def f(a,
 *       b=3):
 *     with a as x:
 *         for i in range(
 *             b):
 *             try:
 *                 a(i,
 *                   b)
 *             except (ValueError,
 *                     KeyError):
 *                 pass
 *     (144 empty lines)
 *     return [
 *         a, b,
 *     ]
 */
struct run {
    uint32_t end, line; /* of the bytecode, from the end of the one before */
};

static const struct sample {
    uint32_t version;
    const char *table;
    struct run runs[32];
} samples[] = {
    {0x0309,
     "00020601020102ff08020201040102ff0802040102ff0a02267f001304ff",
     {{6, 3},
      {8, 4},
      {10, 5},
      {18, 4},
      {20, 6},
      {24, 7},
      {26, 8},
      {34, 7},
      {38, 9},
      {40, 10},
      {50, 9},
      {88, 11},
      {92, 157},
      {96, 156}}},
    {0x030a,
     "06020201020108ff02020401020108ff040202010aff040202fe02fb0aff007f041b04ff008110e6007f041b04"
     "ff",
     {{6, 3},  {8, 4},    {10, 5},   {18, 4}, {20, 6},   {24, 7},   {26, 8},
      {34, 7}, {38, 9},   {40, 10},  {50, 9}, {54, 11},  {56, 9},   {58, 4},
      {68, 3}, {72, 157}, {76, 156}, {92, 3}, {96, 157}, {100, 156}}},
    {0x030b,
     "8000e0090af0000805158861dd1116d80c0df10301120ff40001120ff000070915f0000709158841f004050d15"
     "d8101190019021d81213f103011115f400011115f000011115f000011115f8e5141edd141cf00301141ef00002"
     "0d15f000020d15f000020d15e010149004f005020d15f8f8f8f00b070915f003080515f000080515f000080515"
     "f100080515f400080515f000080515f000080515f000080515f000080515f000080515f000080515f8f8f8f000"
     "080515f000080515f000080515f000080515f0740400090a8831f003020c06f000020506",
     {{2, 1},   {8, 3},   {20, 4},  {22, 5},  {42, 4},    {44, 6},   {50, 7},  {52, 8},
      {70, 7},  {72, 0},  {84, 9},  {96, 10}, {104, 9},   {108, 11}, {110, 9}, {116, 0},
      {118, 4}, {150, 3}, {156, 0}, {164, 3}, {168, 157}, {172, 156}}},
    {0x030d,
     "8000e1090a8861dc1116d80c0df60301120f8841f004050d15d910119021d81213f603011115f10701120ff703"
     "000a0bf0740400090af003020c06f000020506f8f4670400151fdc141cf00301141ef300020d15e21014f00502"
     "0d15faf70d000a0b8c11f0740400090af003020c06f000020506fa",
     {{2, 1},   {8, 3},    {18, 4},  {20, 5},   {36, 4},   {38, 6},    {44, 7},    {46, 8},
      {60, 7},  {64, 4},   {80, 3},  {82, 157}, {86, 156}, {88, 0},    {98, 9},    {108, 10},
      {118, 9}, {124, 11}, {126, 9}, {132, 0},  {158, 3},  {160, 157}, {164, 156}, {170, 0}}},
};

static uint32_t unhex(const char *text, uint8_t *bytes)
{
    uint32_t count = 0;
    unsigned byte;

    for (; sscanf(text, "%2x", &byte) == 1; text += 2)
        bytes[count++] = (uint8_t)byte;
    return count;
}

TEST(as_compilers_wrote)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        uint8_t table[512];
        struct mt_code_definition code = {.python_version = samples[i].version, .first_line = 1};
        uint32_t offset = 0;

        code.table_bytes = unhex(samples[i].table, table);
        for (const struct run *run = samples[i].runs; run->end; run++)
            for (; offset < run->end; offset += 2)
                assert_int_equal(mt_python_line(&code, table, offset), run->line);
        /* behind the end: 3.9 does not know where that is */
        assert_int_equal(mt_python_line(&code, table, offset),
                         samples[i].version == 0x0309 ? 156 : 0);
        assert_int_equal(mt_python_line(&code, table, UINT32_MAX),
                         samples[i].version == 0x0309 ? 156 : 0);
    }
}

TEST(no_table)
{
    for (uint32_t version = 0x0308; version <= 0x0310; version++) {
        struct mt_code_definition code = {.python_version = version, .first_line = 7};

        assert_int_equal(mt_python_line(&code, NULL, 0), version <= 0x0309 ? 7 : 0);
    }
}

/* In memory of exactly their size, so that a sanitizer sees a byte too many. */
TEST(hostile)
{
    srand(1);
    for (int round = 0; round < 40000; round++) {
        size_t size = (size_t)rand() % 48 + 1;
        uint8_t *table = malloc(size);
        struct mt_code_definition code = {.python_version = 0x0309 + (uint32_t)round % 4,
                                          .first_line = round % 3 ? 1 : UINT32_MAX,
                                          .table_bytes = (uint32_t)size};

        assert_non_null(table);
        for (size_t i = 0; i < size; i++)
            table[i] = (uint8_t)(round % 5 ? rand() : rand() | 0x7f);
        assert_true(mt_python_line(&code, table, (uint32_t)rand() % 300) <= INT32_MAX);
        assert_true(mt_python_line(&code, table, UINT32_MAX) <= INT32_MAX);
        free(table);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
