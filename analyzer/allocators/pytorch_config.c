#include "pytorch_config.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "near_word.h"
#include "util.h"

void mt_pytorch_config_defaults(struct mt_pytorch_config *config)
{
    memset(config, 0, sizeof *config);
    config->max_split_bytes = MT_PYTORCH_UNLIMITED;
    config->large_segment_bytes = 20 * MT_MIB;
    config->max_non_split_rounding_bytes = config->large_segment_bytes;
    config->memory_fraction = 1;
}

/* A token of the option string: text between `:=,[]` and line ends, spaces trimmed. */
struct token {
    const char *text;
    size_t length;
};

static bool token_is(struct token token, const char *text)
{
    return strlen(text) == token.length && memcmp(token.text, text, token.length) == 0;
}

static struct token next_token(const char **at)
{
    struct token token;

    while (**at == ' ' || **at == '\t')
        ++*at;
    token.text = *at;
    while (**at && !strchr(":=,[]\n", **at))
        ++*at;
    token.length = (size_t)(*at - token.text);
    while (token.length && strchr(" \t", token.text[token.length - 1]))
        token.length--;
    return token;
}

static bool take(const char **at, const char *any_of)
{
    if (!**at || !strchr(any_of, **at))
        return false;
    ++*at;
    return true;
}

static bool read_count(struct token token, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < token.length; i++)
        if (token.text[i] < '0' || token.text[i] > '9' || !mt_mul_ok(*value, 10, value) ||
            !mt_add_ok(*value, (uint64_t)(token.text[i] - '0'), value))
            return false;
    return token.length > 0;
}

/* Reads a decimal fraction without the locale: "0.6", "1", ".5"; refuses "6e-1". */
static bool read_fraction(struct token token, double *value)
{
    double scale = 1;
    bool point = false, digit = false;

    *value = 0;
    for (size_t i = 0; i < token.length; i++) {
        if (token.text[i] == '.' && !point) {
            point = true;
        } else if (token.text[i] >= '0' && token.text[i] <= '9') {
            digit = true;
            *value = *value * 10 + (token.text[i] - '0');
            scale *= point ? 10 : 1;
        } else {
            return false;
        }
    }
    *value /= scale;
    return digit;
}

static bool read_bool(struct token token, bool *value)
{
    *value = token_is(token, "True");
    return *value || token_is(token, "False");
}

static bool is_power_of_two(uint64_t value)
{
    return value && !(value & (value - 1));
}

static enum mt_status refuse(struct mt_error *error, struct token key, const char *why)
{
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "option '%.*s' %s",
                   (int)mt_min_u64(key.length, 60), key.text, why);
}

/* "[256:1,512:2,>:4]": the first pair also fills everything below it, ">" everything above the last
 * boundary; other entries stay 0. */
static enum mt_status read_division_list(const char **at, struct token key,
                                         struct mt_pytorch_config *config, struct mt_error *error)
{
    size_t last = 0;
    bool first = true;

    memset(config->divisions, 0, sizeof config->divisions);
    do {
        struct token size = next_token(at);
        uint64_t mib, divisions;
        if (!take(at, ":="))
            return refuse(error, key, "needs a list such as [256:1,512:2,>:4]");
        struct token count = next_token(at);
        if (!read_count(count, &divisions) || (divisions && !is_power_of_two(divisions)))
            return refuse(error, key, "needs divisions that are powers of two or 0");
        if (token_is(size, ">")) {
            if (first)
                return refuse(error, key, "has '>' before any size");
            for (size_t i = last + 1; i < MT_PYTORCH_DIVISIONS; i++)
                config->divisions[i] = divisions;
            continue;
        }
        if (!read_count(size, &mib) || !is_power_of_two(mib))
            return refuse(error, key, "needs sizes in MiB that are powers of two");
        last = mt_min_u64(mt_log2_floor(mib), MT_PYTORCH_DIVISIONS - 1);
        for (size_t i = 0; first && i < last; i++)
            config->divisions[i] = divisions;
        config->divisions[last] = divisions;
        first = false;
    } while (take(at, ","));
    return take(at, "]") ? MT_OK : refuse(error, key, "has a list without a closing bracket");
}

static enum mt_status read_divisions(const char **at, struct token key,
                                     struct mt_pytorch_config *config, struct mt_error *error)
{
    uint64_t divisions;

    while (**at == ' ')
        ++*at;
    if (take(at, "["))
        return read_division_list(at, key, config, error);
    if (!read_count(next_token(at), &divisions) || !is_power_of_two(divisions))
        return refuse(error, key, "needs a power of two");
    for (size_t i = 0; i < MT_PYTORCH_DIVISIONS; i++)
        config->divisions[i] = divisions;
    return MT_OK;
}

/* Skips the value of an option that has no effect here. */
static void skip_value(const char **at)
{
    unsigned depth = 0;

    for (; **at && (depth || **at != ','); ++*at)
        if (**at == '[')
            depth++;
        else if (**at == ']' && depth)
            depth--;
}

static bool is_without_effect(struct token key)
{
    static const char *const keys[] = {"release_lock_on_cudamalloc", "release_lock_on_hipmalloc",
                                       "graph_capture_record_stream_reuse",
                                       "expandable_segments_reserve",
                                       "expandable_segments_reserve_by_class"};

    for (size_t i = 0; i < MT_ARRAY_LEN(keys); i++)
        if (token_is(key, keys[i]))
            return true;
    return key.length > 7 && memcmp(key.text, "pinned_", 7) == 0;
}

/* Sizes in MiB that have a lower bound. */
static enum mt_status read_mib(const char **at, struct token key, uint64_t least_mib,
                               uint64_t *bytes, struct mt_error *error)
{
    uint64_t mib;

    if (!read_count(next_token(at), &mib) || !mt_mul_ok(mib, MT_MIB, bytes))
        return refuse(error, key, "needs a number of MiB");
    if (mib < least_mib)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "option '%.*s' must be at least %llu MiB",
                       (int)key.length, key.text, (unsigned long long)least_mib);
    return MT_OK;
}

/* The options that change what the allocator does. */
static enum mt_status refuse_name(struct token key, struct mt_error *error)
{
    static const char *const names[] = {
        "expandable_segments",          "max_split_size_mb",         "roundup_power2_divisions",
        "garbage_collection_threshold", "max_non_split_rounding_mb", "large_segment_size_mb",
        "per_process_memory_fraction",  "throw_on_cudamalloc_oom",   "backend"};
    const char *near = mt_did_you_mean_part(key.text, key.length, names, MT_ARRAY_LEN(names));
    char text[120];

    snprintf(text, sizeof text, "is not one of PyTorch's allocator options%s%s%s",
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return refuse(error, key, text);
}

static enum mt_status read_option(const char **at, struct token key,
                                  struct mt_pytorch_config *config, struct mt_error *error)
{
    uint64_t large_mib = config->large_segment_bytes / MT_MIB;

    if (token_is(key, "max_split_size_mb"))
        return read_mib(at, key, large_mib, &config->max_split_bytes, error);
    if (token_is(key, "max_non_split_rounding_mb"))
        return read_mib(at, key, large_mib, &config->max_non_split_rounding_bytes, error);
    if (token_is(key, "large_segment_size_mb"))
        return read_mib(at, key, 11, &config->large_segment_bytes, error);
    if (token_is(key, "roundup_power2_divisions"))
        return read_divisions(at, key, config, error);
    if (is_without_effect(key)) {
        skip_value(at);
        return MT_OK;
    }
    struct token value = next_token(at);
    if (token_is(key, "expandable_segments")) {
        return read_bool(value, &config->expandable_segments)
                   ? MT_OK
                   : refuse(error, key, "must be True or False");
    }
    if (token_is(key, "throw_on_cudamalloc_oom")) {
        return read_bool(value, &config->throws_on_oom)
                   ? MT_OK
                   : refuse(error, key, "must be True or False");
    }
    if (token_is(key, "garbage_collection_threshold")) {
        return read_fraction(value, &config->gc_threshold) && config->gc_threshold > 0 &&
                       config->gc_threshold < 1
                   ? MT_OK
                   : refuse(error, key, "must lie between 0 and 1");
    }
    if (token_is(key, "per_process_memory_fraction")) {
        return read_fraction(value, &config->memory_fraction) && config->memory_fraction <= 1
                   ? MT_OK
                   : refuse(error, key, "must lie between 0 and 1");
    }
    if (token_is(key, "backend")) {
        config->async_backend = token_is(value, "cudaMallocAsync");
        return config->async_backend || token_is(value, "native")
                   ? MT_OK
                   : refuse(error, key, "must be native or cudaMallocAsync");
    }
    return refuse_name(key, error);
}

/* Keeps the name of a recorded option that is not understood, and skips its value. */
static void skip_unknown(const char **at, struct token key, struct mt_pytorch_config *config)
{
    size_t length = mt_min_u64(key.length, sizeof config->unknown - 1);

    if (!config->unknown[0])
        memcpy(config->unknown, length ? key.text : "?", length ? length : 1);
    skip_value(at);
}

/* One pass over the string. PyTorch reads large_segment_size_mb before all others, because their
 * limits depend on it: hence two passes. */
static enum mt_status walk(const char *text, bool large_segment_only, bool is_recorded,
                           struct mt_pytorch_config *config, struct mt_error *error)
{
    const char *at = text;

    while (*at) {
        struct token key = next_token(&at);
        enum mt_status status = MT_OK;
        if (!key.length && take(&at, ","))
            continue;
        if (!key.length && !*at)
            break;
        if (!take(&at, ":=")) {
            if (!is_recorded)
                return refuse(error, key, "has no value");
            skip_unknown(&at, key, config);
        }
        const char *value = at;
        struct mt_pytorch_config before = *config;
        if (large_segment_only != token_is(key, "large_segment_size_mb"))
            skip_value(&at);
        else
            status = read_option(&at, key, config, error);
        if (is_recorded && (status != MT_OK || (*at && *at != ','))) {
            at = value;
            *config = before; /* a refused value changes nothing */
            skip_unknown(&at, key, config);
            status = MT_OK;
        }
        if (status != MT_OK)
            return status;
        if (*at && !take(&at, ","))
            return refuse(error, key, "has text after its value");
    }
    return MT_OK;
}

static enum mt_status read_all(const char *text, bool is_recorded, struct mt_pytorch_config *config,
                               struct mt_error *error)
{
    mt_pytorch_config_defaults(config);
    enum mt_status status = walk(text, true, is_recorded, config, error);
    if (status == MT_OK) {
        config->max_non_split_rounding_bytes = config->large_segment_bytes;
        status = walk(text, false, is_recorded, config, error);
    }
    return status;
}

enum mt_status mt_pytorch_config_parse(const char *text, struct mt_pytorch_config *config,
                                       struct mt_error *error)
{
    return read_all(text, false, config, error);
}

static void read_recorded_divisions(const char *value, struct mt_pytorch_config *config)
{
    const char *at = value;

    do {
        uint64_t mib, divisions;
        struct token size = next_token(&at);
        if (!take(&at, ":") || !read_count(size, &mib) || !is_power_of_two(mib) ||
            !read_count(next_token(&at), &divisions))
            return;
        config->divisions[mt_min_u64(mt_log2_floor(mib), MT_PYTORCH_DIVISIONS - 1)] = divisions;
    } while (take(&at, ","));
}

static void read_recorded_line(struct token key, struct token value,
                               struct mt_pytorch_config *config)
{
    uint64_t bytes;
    double share;

    if (token_is(key, "max_split_size")) {
        config->max_split_bytes = read_count(value, &bytes) ? bytes : MT_PYTORCH_UNLIMITED;
    } else if (token_is(key, "garbage_collection_threshold")) {
        if (read_fraction(value, &share) && share < 1)
            config->gc_threshold = share;
    } else if (token_is(key, "expandable_segments")) {
        read_bool(value, &config->expandable_segments);
    }
}

enum mt_status mt_pytorch_config_recorded(const struct mt_trace_header *header,
                                          struct mt_pytorch_config *config, struct mt_error *error)
{
    const char *at = header && header->settings ? header->settings : "";

    mt_pytorch_config_defaults(config);
    if (header && header->allocator_options) {
        enum mt_status status = read_all(header->allocator_options, true, config, error);
        if (status != MT_OK)
            return status;
    }
    while (*at) {
        const char *end = strchr(at, '\n'), *equals = strchr(at, '=');
        size_t length = end ? (size_t)(end - at) : strlen(at);
        if (equals && equals < at + length) {
            struct token key = {at, (size_t)(equals - at)};
            struct token value = {equals + 1, length - key.length - 1};
            if (token_is(key, "roundup_power2_divisions"))
                read_recorded_divisions(value.text, config);
            else
                read_recorded_line(key, value, config);
        }
        at += length + (end != NULL);
    }
    return MT_OK;
}

static void spell_divisions(const struct mt_pytorch_config *config, struct mt_buf *out)
{
    bool same = true;

    for (size_t i = 1; i < MT_PYTORCH_DIVISIONS; i++)
        same = same && config->divisions[i] == config->divisions[0];
    if (same && !config->divisions[0])
        return;
    mt_buf_add_text(out, "roundup_power2_divisions:");
    for (size_t i = 0; !same && i < MT_PYTORCH_DIVISIONS; i++)
        mt_buf_printf(out, "%s%llu:%llu", i ? "," : "[", 1ull << i,
                      (unsigned long long)config->divisions[i]);
    if (same)
        mt_buf_add_u64(out, config->divisions[0]);
    mt_buf_add_text(out, same ? "," : "],");
}

static void spell_mib(struct mt_buf *out, const char *key, uint64_t bytes, uint64_t standard)
{
    if (bytes != standard)
        mt_buf_printf(out, "%s:%llu,", key, (unsigned long long)(bytes / MT_MIB));
}

/* In millionths. Values between 0 and 1 must not round to either, because 0 and 1 have other
 * meanings. */
static void spell_fraction(struct mt_buf *out, const char *key, double value)
{
    if (value > 0 && value < 0.000001)
        value = 0.000001;
    if (value > 0.999999 && value < 1)
        value = 0.999999;
    mt_buf_add_text(out, key);
    mt_buf_add_char(out, ':');
    mt_buf_add_decimal(out, value, 6);
    mt_buf_add_char(out, ',');
}

void mt_pytorch_config_spell(const struct mt_pytorch_config *config, char *text, size_t size)
{
    struct mt_buf out = {0};

    if (config->expandable_segments)
        mt_buf_add_text(&out, "expandable_segments:True,");
    spell_mib(&out, "max_split_size_mb", config->max_split_bytes, MT_PYTORCH_UNLIMITED);
    spell_mib(&out, "large_segment_size_mb", config->large_segment_bytes, 20 * MT_MIB);
    spell_mib(&out, "max_non_split_rounding_mb", config->max_non_split_rounding_bytes,
              config->large_segment_bytes);
    if (config->gc_threshold > 0)
        spell_fraction(&out, "garbage_collection_threshold", config->gc_threshold);
    if (config->memory_fraction < 1)
        spell_fraction(&out, "per_process_memory_fraction", config->memory_fraction);
    if (config->throws_on_oom)
        mt_buf_add_text(&out, "throw_on_cudamalloc_oom:True,");
    spell_divisions(config, &out);
    size_t length = out.length ? out.length - 1 : 0; /* without the last comma */
    if (size) {
        if (length >= size)
            length = size - 1;
        if (length)
            memcpy(text, out.data, length);
        text[length] = '\0';
    }
    mt_buf_release(&out);
}

uint64_t mt_pytorch_round_size(const struct mt_pytorch_config *config, uint64_t size)
{
    if (size < MT_PYTORCH_MIN_BLOCK)
        return MT_PYTORCH_MIN_BLOCK;
    unsigned power = mt_log2_floor(size);
    uint64_t divisions = config->divisions[power < 20 ? 0 : mt_min_u64(power - 20, 15)];
    if (divisions <= 1 || size / MT_PYTORCH_MIN_BLOCK < divisions ||
        size == MT_PYTORCH_MIN_BLOCK * divisions)
        return mt_round_up(size, MT_PYTORCH_MIN_BLOCK);
    if (is_power_of_two(size))
        return size;
    uint64_t floor = (uint64_t)1 << power;
    uint64_t step = floor >> mt_log2_floor(divisions);
    if (!step)
        return floor * 2;
    uint64_t lower = size & ~(step - 1);
    return lower == size ? lower : lower + step;
}

uint64_t mt_pytorch_segment_size(const struct mt_pytorch_config *config, uint64_t rounded_bytes)
{
    if (rounded_bytes <= MT_PYTORCH_SMALL_LIMIT)
        return MT_PYTORCH_SMALL_SEGMENT;
    if (rounded_bytes < MT_PYTORCH_OWN_SEGMENT)
        return config->large_segment_bytes;
    return mt_round_up(rounded_bytes, 2 * MT_MIB);
}

bool mt_pytorch_should_split(const struct mt_pytorch_config *config, uint64_t block_bytes,
                             uint64_t rounded_bytes, bool expandable_request)
{
    uint64_t remaining = block_bytes - rounded_bytes;

    if (rounded_bytes <= MT_PYTORCH_SMALL_LIMIT || expandable_request)
        return remaining >= MT_PYTORCH_MIN_BLOCK;
    return rounded_bytes < config->max_split_bytes && remaining > MT_PYTORCH_SMALL_LIMIT;
}

unsigned mt_pytorch_version(const struct mt_trace_header *header)
{
    unsigned major, minor;

    if (!header->framework || sscanf(header->framework, "PyTorch %u.%u", &major, &minor) != 2 ||
        major > 99 || minor > 99)
        return 0;
    return major * 100 + minor;
}

/* From the comparators of libc10_cuda.so of 2.11.0, 2.12.1, 2.13.0, 2.14.1 and 2.15.0. */
enum mt_free_order mt_pytorch_free_order(const struct mt_trace_header *header)
{
    enum { BY_BLOCK = 212, BY_SEGMENT = 213 };
    unsigned version = header ? mt_pytorch_version(header) : 0;

    if (header && header->free_order != MT_FREE_ORDER_UNKNOWN)
        return header->free_order;
    if (version < BY_BLOCK)
        return MT_FREE_LOWEST;
    return version < BY_SEGMENT ? MT_FREE_OLDEST_BLOCK : MT_FREE_OLDEST_SEGMENT;
}
