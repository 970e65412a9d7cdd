/* Compares the policy `cuda-async` with the driver's own pool on a GPU: 10,617 random requests,
 * frees and trims of six programs, with the address that the driver returned, or its failure, and
 * the memory that it held afterwards. Everything is equal. A real run also has the times at which
 * the GPU completes frees; docs/evidence/accuracy.md shows their effect for PyTorch. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "packed_text.h"
#include "policy_bench.h"
#include "util.h"

enum { ROWS = 10623, MAX_IDS = 4096, TEXT = 1 << 18 };

static char *text;

static int load(void **unused)
{
    (void)unused;
    text = read_packed_text("captures/cuda_async_pool.csv.zst", TEXT);
    return 0;
}

static int unload(void **unused)
{
    (void)unused;
    free(text);
    return 0;
}

struct against_driver {
    struct policy_bench bench;
    struct mt_policy_block blocks[MAX_IDS];
    uint64_t base; /* of our addresses */
    bool is_open;
    uint64_t programs, requests, refusals, rows, wrong_addresses, wrong_reserved;
};

static uint64_t number(char **next)
{
    return strtoull(*next + (**next == ','), next, 10);
}

static void compare_reserved(struct against_driver *run, char *pages)
{
    run->wrong_reserved +=
        policy_bench_counters(&run->bench)->reserved.now != 32 * MT_MIB * number(&pages);
}

/* "+,id,bytes,stream,address / 512,pages" */
static void take(struct against_driver *run, char *next)
{
    uint64_t id = number(&next), bytes = number(&next), stream = number(&next);

    assert_true(id < MAX_IDS);
    struct mt_policy_block *block = &run->blocks[id];
    assert_int_equal(policy_bench_take(&run->bench, bytes, (uint32_t)stream, block), MT_OK);
    run->base = run->base ? run->base : block->addr; /* the driver's first is 0 */
    run->wrong_addresses += block->addr - run->base != 512 * number(&next);
    run->requests++;
    compare_reserved(run, next);
}

/* "x,bytes,stream,pages": refused */
static void be_refused(struct against_driver *run, char *next)
{
    uint64_t bytes = number(&next), stream = number(&next);
    struct mt_policy_block block;
    enum mt_status status = policy_bench_take(&run->bench, bytes, (uint32_t)stream, &block);

    assert_int_equal(status, MT_ERR_DEVICE_OOM);
    run->refusals++;
    compare_reserved(run, next);
}

/* "-,id,pages" */
static void give(struct against_driver *run, char *next)
{
    uint64_t id = number(&next);

    assert_true(id < MAX_IDS);
    policy_bench_give(&run->bench, &run->blocks[id]);
    compare_reserved(run, next);
}

/* "trim,pages" */
static void trim(struct against_driver *run, char *next)
{
    assert_int_equal(run->bench.ops->empty_cache(run->bench.policy), MT_OK);
    compare_reserved(run, next);
}

static void end_program(struct against_driver *run)
{
    if (run->is_open) {
        assert_true(policy_bench_is_sound(&run->bench));
        policy_bench_close(&run->bench);
    }
    run->is_open = false;
}

/* "program,option;option,name" */
static void begin_program(struct against_driver *run, char *options)
{
    char *end;

    end_program(run);
    options[strcspn(options, ",")] = '\0';
    while ((end = strchr(options, ';')))
        *end = ',';
    policy_bench_open(&run->bench, "cuda-async", options, 0);
    run->base = 0;
    run->is_open = true;
    run->programs++;
}

TEST(every_address_is_the_drivers)
{
    static struct against_driver run;
    char *line, *rest = text;

    for (; (line = strtok_r(rest, "\n", &rest)); run.rows++) {
        if (line[0] == '+')
            take(&run, line + 1);
        else if (line[0] == '-')
            give(&run, line + 1);
        else if (line[0] == 'x')
            be_refused(&run, line + 1);
        else if (line[0] == 't')
            trim(&run, line + 4);
        else
            begin_program(&run, line + strlen("program,"));
    }
    end_program(&run);
    assert_int_equal(run.rows, ROWS);
    assert_int_equal(run.programs, 6);
    assert_int_equal(run.requests, 5623);
    assert_int_equal(run.refusals, 244);
    assert_int_equal(run.wrong_addresses, 0);
    assert_int_equal(run.wrong_reserved, 0);
}

int main(void)
{
    return run_tests_of_file(load, unload);
}
