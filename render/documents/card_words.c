/* The memory of a card that a run needs, in words. */
#include <string.h>

#include "card_words.h"
#include "foreign_text.h"
#include "units.h"

/* "PyTorch" of "PyTorch 2.11.0+cu130". */
static void add_allocator(struct mt_buf *out, const struct mt_report *report)
{
    const char *name = report->framework && !report->is_driver_level ? report->framework : "";
    const size_t length = strcspn(name, " ");

    if (length)
        mt_buf_add_printable(out, name, length);
    else
        mt_buf_add_text(out, report->is_driver_level ? "the program" : "the allocator");
}

static void add_part(struct mt_buf *out, uint64_t bytes, const struct mt_card_use *use)
{
    char text[MT_UNITS_TEXT];

    mt_format_bytes_like(text, bytes, use->bytes);
    mt_buf_printf(out, " %.*s", (int)strcspn(text, " "), text);
}

void mt_card_words_add(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_card_use *use)
{
    char text[MT_UNITS_TEXT];

    mt_buf_printf(out, "%s %s = ", use->why_more ? "at least" : "about",
                  mt_format_bytes(text, use->bytes));
    add_allocator(out, report);
    add_part(out, use->allocator_bytes, use);
    if (use->libraries_bytes &&
        *mt_format_bytes_like(text, use->libraries_bytes, use->bytes) != '<') {
        mt_buf_add_text(out, " + other libraries");
        add_part(out, use->libraries_bytes, use);
    }
    mt_buf_add_text(out, " + CUDA");
    add_part(out, use->cuda_bytes, use);
    if (use->cuda_from == MT_CUDA_ASSUMED)
        mt_buf_add_text(out, " (assumed)");
    if (use->why_more)
        mt_buf_printf(out, ": %s", use->why_more);
}

void mt_card_words_add_cards(struct mt_buf *out, const struct mt_card_use *use, size_t most)
{
    size_t count = 0;

    if (use->why_more) /* a card for a part of the run may be too small for the rest */
        return;
    for (const struct mt_card *card = mt_cards; card->name; card++) {
        if (!mt_card_use_fits(use, card))
            continue;
        if (count++ < most)
            mt_buf_printf(out, "%s%s", count > 1 ? ", " : "; fits ", card->name);
    }
    if (count > most)
        mt_buf_printf(out, " and %zu larger", count - most);
    if (!count)
        mt_buf_add_text(out, "; no card of memtrace's table has as much");
}
