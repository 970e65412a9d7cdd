/* A peak that the loss makes: memory of cross_entropy and similar functions, and their backward, at
 * the peak. For logits over a large vocabulary this is several copies in full precision. */
#include "finding.h"

#include <string.h>

#include "site.h"
#include "units.h"
#include "util.h"

enum { MIN_SHARE = 5 }; /* of the peak */

/* A function of that name elsewhere belongs to the program: its caller is not a loss. */
enum { LOSS = 1, NAMESAKE };

static uint8_t judge_frame(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    static const char *const functions[] = {"cross_entropy", "nll_loss", "log_softmax",
                                            "binary_cross_entropy_with_logits"};
    const char *function = mt_symbols_text(symbols, frame->function);

    for (size_t i = 0; i < MT_ARRAY_LEN(functions); i++)
        if (strcmp(function, functions[i]) == 0)
            return strstr(mt_symbols_text(symbols, frame->file), "functional.py") ? LOSS : NAMESAKE;
    return 0;
}

void mt_finding_mark_losses(struct mt_finding_search *search)
{
    mt_stack_marks_make(&search->marks->loss, &search->analysis->source->symbols, judge_frame);
}

bool mt_finding_is_loss(const struct mt_finding_search *search, uint32_t stack)
{
    return mt_stack_mark(&search->marks->loss, stack) == LOSS;
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes;
    uint64_t bytes = 0, blocks = 0, most = 0;
    uint32_t i, stack = MT_NO_ID;
    const char *evidence[1], *label;
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "loss-peak",
        .severity = "info",
        .evidence = evidence,
        .evidence_count = 1,
        .advice = "compute the loss over chunks of the tokens, or fuse it with the last layer "
                  "(LigerFusedLinearCrossEntropyLoss, cut_cross_entropy)"};

    if (!device->instant_count)
        return MT_OK;
    mt_finding_mark_losses(search);
    for (i = 0; i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];
        uint32_t of = holding->tied != MT_NO_ID ? holding->tied : holding->stack;
        if (!mt_finding_is_loss(search, of))
            continue;
        bytes += holding->bytes;
        blocks += holding->blocks;
        if (holding->bytes > most) {
            most = holding->bytes;
            stack = of;
        }
    }
    if (!mt_finding_matters(bytes, peak) || bytes < peak / MIN_SHARE)
        return MT_OK;
    finding.bytes = bytes;
    label = mt_site_label(arena, symbols, stack, false);
    finding.title = mt_arena_printf(
        arena, "%s (%s) of the peak: the loss and its backward pass, %s",
        mt_format_bytes(n[0], bytes), mt_format_percent(n[1], (double)bytes / (double)peak), label);
    evidence[0] = mt_arena_printf(arena, "%s block%s of up to %s", mt_format_count(n[0], blocks),
                                  blocks == 1 ? "" : "s", mt_format_bytes(n[1], most));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_loss_peak = {.find = find};
