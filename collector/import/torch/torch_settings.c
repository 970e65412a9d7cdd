/* allocator_settings of a snapshot: texts of the header, and settings that the importer itself
 * uses. */
#include <string.h>

#include "torch.h"
#include "util.h"

enum { KEPT_PAIRS = 256 }; /* there are about a dozen settings; more are hostile */

static double float_of(struct mt_pickle_value value)
{
    double number = 0;

    memcpy(&number, &value.bits, sizeof number);
    return number;
}

static bool is_plain_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == '=')
            return false;
    return length > 0;
}

static void add_divisions(struct mt_buf *out, struct mt_pickle *pickle,
                          struct mt_pickle_value value)
{
    size_t count;
    const struct mt_pickle_value *items = mt_pickle_items(pickle, value, &count);

    for (size_t i = 0; i + 1 < count && i < KEPT_PAIRS; i += 2) {
        size_t length;
        const char *mib = mt_pickle_text(pickle, items[i], &length);
        if (!is_plain_text(mib, length))
            continue;
        mt_buf_add_text(out, i ? "," : "");
        mt_buf_add(out, mib, length);
        mt_buf_add_char(out, ':');
        mt_buf_add_u64(out, mt_torch_number(items[i + 1]));
    }
}

/* Appends the value as Python prints it. Returns false for kinds that are not a setting. */
static bool add_value(struct mt_buf *out, struct mt_pickle *pickle, struct mt_pickle_value value)
{
    switch (value.kind) {
    case MT_PICKLE_BOOL: mt_buf_add_text(out, value.bits ? "True" : "False"); return true;
    case MT_PICKLE_INT: mt_buf_add_i64(out, (int64_t)value.bits); return true;
    case MT_PICKLE_UINT: mt_buf_add_u64(out, value.bits); return true;
    case MT_PICKLE_FLOAT: mt_buf_add_decimal(out, float_of(value), 6); return true;
    case MT_PICKLE_DICT: add_divisions(out, pickle, value); return true;
    default: return false;
    }
}

static void add_setting(struct mt_torch *torch, struct mt_pickle *pickle, const char *key,
                        size_t length, struct mt_pickle_value value)
{
    struct mt_buf *out = &torch->settings;
    size_t start = out->length;

    if (!is_plain_text(key, length))
        return;
    mt_buf_add(out, key, length);
    mt_buf_add_char(out, '=');
    if (add_value(out, pickle, value))
        mt_buf_add_char(out, '\n');
    else if (!out->failed)
        out->data[out->length = start] = '\0';
}

static void read_divisions(struct mt_torch_options *options, struct mt_pickle *pickle,
                           struct mt_pickle_value value)
{
    size_t count;
    const struct mt_pickle_value *items = mt_pickle_items(pickle, value, &count);

    for (size_t i = 0; i + 1 < count && i < KEPT_PAIRS; i += 2) {
        size_t length;
        const char *text = mt_pickle_text(pickle, items[i], &length);
        uint64_t mib = 0;
        for (size_t at = 0; at < length && at < 9 && text[at] >= '0' && text[at] <= '9'; at++)
            mib = mib * 10 + (uint64_t)(text[at] - '0');
        if (mib)
            options->roundup_divisions[mt_min_u64(mt_log2_floor(mib), 15)] =
                mt_torch_number(items[i + 1]);
    }
}

static bool key_is(const char *key, size_t length, const char *wanted)
{
    return length == strlen(wanted) && memcmp(key, wanted, length) == 0;
}

static void read_option(struct mt_torch *torch, struct mt_pickle *pickle, const char *key,
                        size_t length, struct mt_pickle_value value)
{
    struct mt_torch_options *options = &torch->options;

    if (key_is(key, length, "max_split_size") && value.kind == MT_PICKLE_INT &&
        (int64_t)value.bits > 0)
        options->max_split_bytes = value.bits;
    else if (key_is(key, length, "expandable_segments"))
        options->expandable_segments = mt_torch_number(value) != 0;
    else if (key_is(key, length, "roundup_power2_divisions"))
        read_divisions(options, pickle, value);
    else if ((key_is(key, length, "PYTORCH_CUDA_ALLOC_CONF") ||
              key_is(key, length, "PYTORCH_ALLOC_CONF")) &&
             value.kind == MT_PICKLE_TEXT) {
        size_t text_length;
        const char *text = mt_pickle_text(pickle, value, &text_length);
        mt_buf_reset(&torch->allocator_options);
        mt_buf_add(&torch->allocator_options, text, strnlen(text, text_length));
    }
}

void mt_torch_read_settings(struct mt_torch *torch, struct mt_pickle *pickle,
                            const struct mt_pickle_value *items, size_t count)
{
    for (size_t i = 0; i + 1 < count && i < KEPT_PAIRS; i += 2) {
        size_t length;
        const char *key = mt_pickle_text(pickle, items[i], &length);
        read_option(torch, pickle, key, length, items[i + 1]);
        add_setting(torch, pickle, key, length, items[i + 1]);
    }
}

uint64_t mt_torch_round_size(const struct mt_torch_options *options, uint64_t bytes)
{
    if (bytes < 512)
        return 512;
    if (bytes > UINT64_MAX / 4)
        return bytes;
    uint64_t divisions =
        options->roundup_divisions[bytes < MT_MIB ? 0 : mt_min_u64(mt_log2_floor(bytes) - 20, 15)];
    if (divisions <= 1 || divisions > UINT32_MAX || bytes <= 512 * divisions)
        return mt_round_up(bytes, 512);
    uint64_t floor_bytes = (uint64_t)1 << mt_log2_floor(bytes);
    if (bytes == floor_bytes)
        return bytes;
    uint64_t step = floor_bytes >> mt_log2_floor(divisions);
    if (!step)
        return 2 * floor_bytes;
    uint64_t low = bytes & ~(step - 1);
    return low == bytes ? bytes : low + step;
}
