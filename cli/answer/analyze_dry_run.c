/* The part of the answer for dry runs: the simulated card, the memory that a card must have, and
 * common cards that have enough. */
#include <string.h>

#include "analyze_output.h"
#include "baseline.h"
#include "card_overhead.h"
#include "cards.h"
#include "units.h"
#include "util.h"

enum { NAMED_CARDS = 3 }; /* for each verdict */

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
        mt_buf_printf(out, "; %s that simulated libraries took from the driver",
                      mt_format_bytes(text, overhead->outside_bytes));
    for (uint32_t i = 0; i < overhead->row_count; i++) {
        mt_buf_add_text(out, i ? " and " : "; outside the allocator, ");
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
    mt_buf_add_text(out,
                    "; what CUDA and its libraries take outside the allocator is unknown for ");
    mt_buf_add_printable_text(out, *card ? card : "this card");
    if (overhead->cuda_major)
        mt_buf_printf(out, " with CUDA %u", overhead->cuda_major);
    mt_buf_add_text(out, ", usually 0.5 to 1 GiB");
}

static void report_in_all(const struct mt_reporter *reporter,
                          const struct mt_card_overhead *overhead, uint64_t need_bytes,
                          bool is_certain)
{
    const char *card = reporter->report->dry_run.card;
    char all[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "A card needs %s %s in total", is_certain ? "about" : "more than",
                  mt_format_bytes(all, mt_add_most_u64(need_bytes, overhead->most_bytes)));
    add_beside(&line, overhead, card);
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

/* Appends the names of the cards closest to the limit. Cards with the same verdict are adjacent. */
static void add_cards(struct mt_buf *out, enum mt_card_verdict verdict, uint64_t need_bytes)
{
    const char *names[NAMED_CARDS];
    size_t count = 0;

    for (const struct mt_card *card = mt_cards; card->name; card++) {
        if (mt_card_verdict(card, need_bytes) != verdict)
            continue;
        if (verdict == MT_CARD_FITS ? count < NAMED_CARDS : true)
            names[count % NAMED_CARDS] = card->name;
        count++;
    }
    for (size_t i = 0; i < mt_min_u64(count, NAMED_CARDS); i++)
        mt_buf_printf(out, "%s%s", i ? ", " : "",
                      names[verdict == MT_CARD_FITS ? i : (count - 1 - i) % NAMED_CARDS]);
    if (count > NAMED_CARDS)
        mt_buf_printf(out, " and %zu %s", count - NAMED_CARDS,
                      verdict == MT_CARD_FITS ? "larger" : "smaller");
}

/* "Fits: L40S 48 GB, H100 80 GB; tight, ...: A100 40 GB; does not fit: T4 16 GB". */
static void report_cards(const struct mt_reporter *reporter, uint64_t need_bytes, bool is_certain)
{
    const struct {
        enum mt_card_verdict verdict;
        const char *words;
    } rows[] = {{MT_CARD_FITS, is_certain ? "Fits: " : "May fit: "},
                {MT_CARD_TIGHT, "tight, with less than 1 GiB left for CUDA: "},
                {MT_CARD_NO, "does not fit: "}};
    struct mt_buf line = {0};

    for (size_t i = 0; i < MT_ARRAY_LEN(rows); i++) {
        struct mt_buf cards = {0};

        add_cards(&cards, rows[i].verdict, need_bytes);
        if (cards.length)
            mt_buf_printf(&line, "%s%s%s", line.length ? "; " : "", rows[i].words, cards.data);
        mt_buf_release(&cards);
    }
    if (line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}

void mt_reporter_card(const struct mt_reporter *reporter)
{
    const struct mt_card_overhead overhead =
        mt_card_overhead_of(reporter->report, reporter->device);
    const struct mt_need *need = reporter->device->need;
    const bool is_certain =
        overhead.is_known && !mt_peaks_doubt(reporter->report, reporter->device);

    if (!need)
        return;
    report_in_all(reporter, &overhead, need->bytes, is_certain);
    report_cards(reporter, mt_card_overhead_fit_bytes(&overhead, need->bytes), is_certain);
}
