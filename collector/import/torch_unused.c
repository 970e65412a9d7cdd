#include "torch_unused.h"

#include "buf.h"
#include "util.h"

enum { MAX_NAME_BYTES = 64 };

void mt_torch_note_unused(struct mt_torch_records *r, enum mt_torch_record of,
                          const struct mt_pickle_value *key)
{
    size_t i;

    if (key->kind != MT_PICKLE_TEXT)
        return;
    for (i = 0; i < r->unused_count; i++) {
        if (r->unused[i].text == key->bits && r->unused[i].of == of)
            return;
    }
    if (i < MT_TORCH_MAX_UNUSED)
        r->unused[r->unused_count++] = (struct mt_torch_unused){key->bits, of};
}

static void add_name(const struct mt_torch_unused *unused, const struct mt_pickle *pickle,
                     struct mt_buf *out)
{
    const struct mt_pickle_value key = {.bits = unused->text, .kind = MT_PICKLE_TEXT};
    size_t length, i;
    const char *name = mt_pickle_text(pickle, key, &length);

    for (i = 0; i < length && i < MAX_NAME_BYTES; i++) /* no line breaks within a line */
        mt_buf_add_char(out, (unsigned char)name[i] < ' ' ? ' ' : name[i]);
}

void mt_torch_add_unused(const struct mt_torch_records *r, const struct mt_pickle *pickle,
                         struct mt_buf *out)
{
    static const char *const records[] = {"snapshot", "entry", "segment",
                                          "block",    "frame", "annotation"};
    _Static_assert(MT_ARRAY_LEN(records) == MT_TORCH_RECORD_COUNT, "one name for each");
    size_t i, of;

    for (of = 0; of < MT_TORCH_RECORD_COUNT; of++) {
        bool first = true;

        for (i = 0; i < r->unused_count; i++) {
            if (r->unused[i].of != of)
                continue;
            if (first)
                mt_buf_printf(out, "%s%s: ", out->length ? "\n" : "", records[of]);
            else
                mt_buf_add_text(out, ", ");
            add_name(&r->unused[i], pickle, out);
            first = false;
        }
    }
}
