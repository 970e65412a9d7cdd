/* The part of the answer for dry runs: the simulated card, and costs beside the allocator. */
#include <string.h>

#include "analyze_output.h"
#include "card_use.h"
#include "units.h"

void mt_reporter_dry_run(const struct mt_reporter *reporter)
{
    struct mt_buf line = {0};

    if (!reporter->report->is_dry_run)
        return;
    mt_buf_add_text(&line, "Dry run on a ");
    mt_header_add_simulated_card(&line, &reporter->report->dry_run);
    mt_buf_add_text(&line, ": times and values are meaningless");
    if (line.data)
        mt_reporter_line(reporter, 0, line.data);
    mt_buf_release(&line);
}

#define BESIDE "Beside the allocator"

/* "622 MiB to 734 MiB", "64.1 MiB". */
static void add_range(struct mt_buf *out, uint64_t least_bytes, uint64_t most_bytes)
{
    char text[MT_UNITS_TEXT];

    if (least_bytes < most_bytes)
        mt_buf_printf(out, "%s to ", mt_format_bytes(text, least_bytes));
    mt_buf_add_text(out, mt_format_bytes(text, most_bytes));
}

static void add_row(struct mt_buf *out, const struct mt_card_overhead_row *row)
{
    const struct mt_card_cost *cost = row->cost;
    const char *plural = row->count == 1 ? "" : "s";

    switch (cost->kind) {
    case MT_COST_CUDA:
    case MT_COST_CUDA_WITH_NCCL:
        add_range(out, cost->least_bytes, cost->most_bytes);
        mt_buf_printf(out, " for CUDA itself%s",
                      cost->kind == MT_COST_CUDA ? "" : " in a process with NCCL");
        break;
    case MT_COST_CUBLAS_HANDLE:
        add_range(out, cost->least_bytes * row->count, cost->most_bytes * row->count);
        mt_buf_printf(out, " for %u cuBLAS handle%s", (unsigned)row->count, plural);
        break;
    case MT_COST_CUDNN_HANDLE:
    case MT_COST_NCCL_ONE_RANK:
    case MT_COST_NCCL_TWO_RANKS: break; /* the simulated libraries allocate these themselves */
    }
}

/* Appends the costs outside of the allocator: measured on this model of card, or unknown. */
static void add_beside(struct mt_buf *out, const struct mt_card_overhead *overhead,
                       const char *card)
{
    char text[MT_UNITS_TEXT];

    if (overhead->outside_bytes)
        mt_buf_printf(out, ": %s that simulated libraries took from the driver",
                      mt_format_bytes(text, overhead->outside_bytes));
    for (uint32_t i = 0; i < overhead->row_count; i++) {
        mt_buf_add_text(out, i ? " and " : overhead->outside_bytes ? "; " : ": ");
        add_row(out, &overhead->rows[i]);
    }
    if (overhead->row_count)
        mt_buf_printf(out, " (measured on %.*s, CUDA %u; table %d)",
                      (int)strcspn(overhead->rows[0].cost->card, " "), overhead->rows[0].cost->card,
                      overhead->cuda_major, MT_CARD_COSTS_VERSION);
    if (overhead->unmeasured_ranks)
        mt_buf_printf(out,
                      "; NCCL communicators were measured for up to 4 ranks on one node. The size "
                      "of those for %s ranks is unknown: each counts as one for 2 ranks",
                      mt_format_count(text, overhead->unmeasured_ranks));
    if (!overhead->lacks_rows)
        return;
    mt_buf_add_text(out, out->length > strlen(BESIDE) ? "; " : ": ");
    mt_buf_add_text(out, "what CUDA and its libraries take is unknown for ");
    mt_buf_add_printable_text(out, *card ? card : "this card");
    if (overhead->cuda_major)
        mt_buf_printf(out, " with CUDA %u", overhead->cuda_major);
    mt_buf_add_text(out, ", and counts as 1 GiB");
}

void mt_reporter_card(const struct mt_reporter *reporter)
{
    const struct mt_card_overhead overhead =
        mt_card_overhead_of(reporter->report, reporter->device);
    struct mt_buf line = {0};

    mt_buf_add_text(&line, BESIDE);
    add_beside(&line, &overhead, reporter->report->dry_run.card);
    if (line.length > strlen(BESIDE))
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}
