/* The runs of modules of XLA in a trace, and the program's own module: JAX also runs a module for
 * each small operation (jnp.zeros, a cast), and the main module is the one with the most operations
 * (thunks) in all its runs. */
#ifndef MT_ANALYZER_XLA_RUNS_H
#define MT_ANALYZER_XLA_RUNS_H

#include "map.h"
#include "symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_xla_run {
    uint64_t begin_seq;
    uint32_t module; /* id of its name in `modules` */
};

/* Zeroed memory is ready. Costs 16 bytes for each run, 8 for each text of the trace. */
struct mt_xla_runs {
    struct mt_xla_run *list; /* in order of their starts */
    size_t count, capacity;
    struct mt_strings modules; /* names without the numbers of programs */
    uint64_t *thunks;          /* by module: operations in its runs */
    size_t thunk_capacity;
    struct mt_xla_run_name {
        uint8_t kind; /* enum mt_xla_range + 1; 0 = not parsed yet */
        uint32_t module;
    } * names; /* by text of the trace */
    size_t name_capacity;
    struct mt_xla_run_thread {
        uint32_t run, depth; /* the current run, if depth > 0 */
    } * threads;
    size_t thread_capacity;
    bool differentiates; /* some operation belongs to a backward pass: jax.grad transposes the
                            result of jvp */
    bool updates_slices; /* some operation writes a part of an array */
};

void mt_xla_runs_release(struct mt_xla_runs *runs);

/* Takes each start or end of a range; ignores ranges not of XLA. Amortized O(1). */
void mt_xla_runs_range(struct mt_xla_runs *runs, const struct mt_symbols *symbols,
                       const struct mt_event *event);

/* The current run of a thread, or MT_NO_ID. */
uint32_t mt_xla_runs_current(const struct mt_xla_runs *runs, uint16_t thread);

/* The program's own module; MT_NO_ID: no operation of any module was seen. O(modules). */
uint32_t mt_xla_runs_main(const struct mt_xla_runs *runs);

#endif
