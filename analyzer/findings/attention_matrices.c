/* Attention that stores its matrix: one number for each pair of tokens and each head, so memory
 * grows with the square of the sequence length. Sizes alone prove nothing, but stacks do: blocks
 * that softmax makes below a function named after attention. Only these blocks are counted, so the
 * true amount is larger: scores and masks have the same size. */
#include "finding.h"

#include <ctype.h>
#include <string.h>

#include "site.h"
#include "units.h"
#include "util.h"

enum {
    MIN_SHARE = 5,  /* of the peak */
    MAX_CALLERS = 3 /* from softmax to attention */
};

static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);

    for (; *text; text++) {
        size_t i = 0;

        while (i < length && tolower((unsigned char)text[i]) == word[i])
            i++;
        if (i == length)
            return true;
    }
    return false;
}

/* From the innermost frame outwards: softmax, and at most MAX_CALLERS frames further attention. Not
 * log_softmax: that belongs to a loss or a classifier, whatever the model's name. */
static bool is_matrix(const struct mt_symbols *symbols, uint32_t stack)
{
    uint32_t callers = MAX_CALLERS;
    bool below_softmax = false;

    for (; stack < symbols->stack_count && callers; stack = symbols->stacks[stack].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];
        const char *function = mt_symbols_text(symbols, frame->function);

        if (has_word(function, "log_softmax"))
            return false;
        if (has_word(function, "softmax")) {
            below_softmax = true;
            callers = MAX_CALLERS;
            continue;
        }
        if (below_softmax && (has_word(function, "attention") || has_word(function, "attn")))
            return true;
        callers -= below_softmax;
    }
    return false;
}

static bool is_stored(const struct mt_holding *holding)
{
    return holding->stack != MT_NO_ID &&
           (holding->role == MT_ROLE_ACTIVATIONS || holding->role == MT_ROLE_TEMPORARIES);
}

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_holding *largest = NULL;
    const uint64_t peak = device->allocated_peak.bytes;
    uint64_t blocks = 0, largest_block_bytes = 0;
    const char *evidence[1], *label;
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "attention-matrices",
        .severity = "info",
        .evidence = evidence,
        .evidence_count = 1,
        .advice =
            "torch.nn.functional.scaled_dot_product_attention: its fused kernels do not store "
            "these matrices, so memory grows with the sequence length, not with its square"};

    if (!device->instant_count)
        return MT_OK;
    for (uint32_t i = 0; i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];

        if (!is_stored(holding) || !is_matrix(symbols, holding->stack))
            continue;
        finding.bytes += holding->bytes;
        blocks += holding->blocks;
        largest_block_bytes = mt_max_u64(largest_block_bytes, holding->block_bytes);
        if (!largest)
            largest = holding;
    }
    if (!mt_finding_matters(finding.bytes, peak) || finding.bytes < peak / MIN_SHARE)
        return MT_OK;
    label = mt_site_label(arena, symbols, largest->stack, false);
    finding.title =
        mt_arena_printf(arena, "%s (%s) of the peak: matrices that attention stores, in %s",
                        mt_format_bytes(n[0], finding.bytes),
                        mt_format_percent(n[1], (double)finding.bytes / (double)peak), label);
    evidence[0] = mt_arena_printf(
        arena, "%s softmax result%s of up to %s; scores and masks of that size are not counted",
        mt_format_count(n[0], blocks), blocks == 1 ? "" : "s",
        mt_format_bytes(n[1], largest_block_bytes));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_attention_matrices = {.find = find};
