/* pprof: a profile.proto as in github.com/google/pprof/blob/main/proto/profile.proto. Uncompressed,
 * which every reader accepts. */
#include <stdlib.h>
#include <string.h>

#include "export_format.h"
#include "foreign_text.h"
#include "map.h"
#include "protobuf.h"
#include "report.h"
#include "site.h"

/* Numbers of fields. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME_NS = 9,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
    TYPE_NAME = 1,
    TYPE_UNIT = 2,
    SAMPLE_LOCATIONS = 1,
    SAMPLE_VALUES = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_TEXT = 2,
    LABEL_NUMBER = 3,
    LABEL_UNIT = 4,
    LOCATION_ID = 1,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_NUMBER = 2,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4
};

/* Values of each sample, in this order. */
static const struct {
    const char *name, *unit;
} types[] = {
    {"allocated", "bytes"}, {"requested", "bytes"}, {"reserved", "bytes"}, {"blocks", "count"}};
enum { TYPES = sizeof types / sizeof *types };

struct profile {
    const struct mt_export *what;
    struct mt_buf *out;
    struct mt_strings strings, functions; /* functions: "name\nfile", by number */
    struct mt_map locations;              /* of frames and of words, by number */
    uint32_t location_count;
    struct mt_arena words;
};

static uint32_t string_of(struct profile *profile, const char *text)
{
    struct mt_buf clean = {0};
    uint32_t id;

    mt_buf_add_printable(&clean, text, strlen(text)); /* a string of protobuf is UTF-8 */
    mt_strings_put(&profile->strings, clean.data ? clean.data : "", clean.length, &id);
    mt_buf_release(&clean);
    return id;
}

static uint32_t function_of(struct profile *profile, const char *name, const char *file)
{
    const char *key = mt_arena_printf(&profile->words, "%s\n%s", name, file);
    struct mt_buf function = {0};
    uint32_t before = profile->functions.count, id;

    mt_strings_put(&profile->functions, key, strlen(key), &id);
    if (id < before)
        return id + 1;
    mt_protobuf_add_number(&function, FUNCTION_ID, id + 1);
    mt_protobuf_add_number(&function, FUNCTION_NAME, string_of(profile, name));
    mt_protobuf_add_number(&function, FUNCTION_SYSTEM_NAME, string_of(profile, name));
    mt_protobuf_add_number(&function, FUNCTION_FILE, string_of(profile, file));
    mt_protobuf_add_message(profile->out, PROFILE_FUNCTION, &function);
    mt_buf_release(&function);
    return id + 1;
}

/* The number of the location with that key, which is added if it is missing. */
static uint32_t location_of(struct profile *profile, uint64_t key, const char *name,
                            const char *file, uint32_t line_number)
{
    uint32_t id = mt_map_get(&profile->locations, key);
    struct mt_buf location = {0}, line = {0};

    if (id != MT_MAP_NONE)
        return id;
    id = ++profile->location_count;
    mt_map_put(&profile->locations, key, id);
    mt_protobuf_add_number(&line, LINE_FUNCTION, function_of(profile, name, file));
    mt_protobuf_add_number(&line, LINE_NUMBER, line_number);
    mt_protobuf_add_number(&location, LOCATION_ID, id);
    mt_protobuf_add_message(&location, LOCATION_LINE, &line);
    mt_protobuf_add_message(profile->out, PROFILE_LOCATION, &location);
    mt_buf_release(&line);
    mt_buf_release(&location);
    return id;
}

/* pprof drops what is between angle brackets, as the parameters of a template: "<module>". */
static const char *function_name(struct profile *profile, uint32_t frame)
{
    const char *name = mt_frame_function(&profile->words, profile->what->report->symbols, frame);
    size_t length = strlen(name);

    if (length < 3 || name[0] != '<' || name[length - 1] != '>')
        return name;
    return mt_arena_printf(&profile->words, "(%.*s)", (int)length - 2, name + 1);
}

static uint32_t frame_location(struct profile *profile, uint32_t frame)
{
    const struct mt_symbols *symbols = profile->what->report->symbols;

    return location_of(profile, frame, function_name(profile, frame),
                       mt_symbols_text(symbols, symbols->frames[frame].file),
                       symbols->frames[frame].line);
}

/* A location for words that are no frame, such as "no stack recorded". */
static uint32_t word_location(struct profile *profile, const char *words)
{
    return location_of(profile, (UINT64_C(1) << 32) + string_of(profile, words), words, "", 0);
}

static void add_text_label(struct profile *profile, struct mt_buf *sample, const char *key,
                           const char *text)
{
    struct mt_buf label = {0};

    if (!text || !*text)
        return;
    mt_protobuf_add_number(&label, LABEL_KEY, string_of(profile, key));
    mt_protobuf_add_number(&label, LABEL_TEXT, string_of(profile, text));
    mt_protobuf_add_message(sample, SAMPLE_LABEL, &label);
    mt_buf_release(&label);
}

static void add_number_label(struct profile *profile, struct mt_buf *sample, const char *key,
                             int64_t number, const char *unit)
{
    struct mt_buf label = {0};

    mt_protobuf_add_number(&label, LABEL_KEY, string_of(profile, key));
    mt_protobuf_add_number(&label, LABEL_NUMBER, (uint64_t)number);
    mt_protobuf_add_number(&label, LABEL_UNIT, string_of(profile, unit));
    mt_protobuf_add_message(sample, SAMPLE_LABEL, &label);
    mt_buf_release(&label);
}

static void add_values(struct mt_buf *sample, const uint64_t values[TYPES])
{
    struct mt_buf packed = {0};

    for (int i = 0; i < TYPES; i++)
        mt_protobuf_add_varint(&packed, values[i]);
    mt_protobuf_add_message(sample, SAMPLE_VALUES, &packed);
    mt_buf_release(&packed);
}

/* Innermost first. */
static void add_stack(struct profile *profile, struct mt_buf *sample,
                      const struct mt_holding *holding)
{
    const struct mt_symbols *symbols = profile->what->report->symbols;
    const char *words = mt_export_words(&profile->words, profile->what->report,
                                        profile->what->first_event, holding);
    uint32_t stack = mt_stack_of_site(holding->tie, holding->tied, holding->stack);
    struct mt_buf locations = {0};

    if (words)
        mt_protobuf_add_varint(&locations, word_location(profile, words));
    for (; stack != MT_NO_ID; stack = symbols->stacks[stack].parent)
        mt_protobuf_add_varint(&locations, frame_location(profile, symbols->stacks[stack].frame));
    mt_protobuf_add_message(sample, SAMPLE_LOCATIONS, &locations);
    mt_buf_release(&locations);
}

static void add_sample(struct profile *profile, const struct mt_holding *holding)
{
    const struct mt_report *report = profile->what->report;
    const struct mt_phase *phase =
        holding->phase == MT_NO_PHASE ? NULL : &report->phases[holding->phase];
    const uint64_t values[TYPES] = {holding->bytes, holding->requested_bytes, holding->bytes,
                                    holding->blocks};
    struct mt_buf sample = {0};

    add_stack(profile, &sample, holding);
    add_values(&sample, values);
    add_text_label(profile, &sample, "role", mt_role_name(holding->role));
    add_text_label(profile, &sample, "phase", phase ? phase->name : NULL);
    add_text_label(profile, &sample, "tag",
                   holding->tag == MT_NO_ID ? NULL
                                            : mt_symbols_text(report->symbols, holding->tag));
    if (phase && phase->step != MT_NO_STEP)
        add_number_label(profile, &sample, "step", phase->step, "");
    add_number_label(profile, &sample, "bytes", (int64_t)holding->block_bytes, "bytes");
    mt_protobuf_add_message(profile->out, PROFILE_SAMPLE, &sample);
    mt_buf_release(&sample);
    mt_arena_release(&profile->words);
}

/* Reserved memory that is in no live block, so that the column sums to what is reserved. */
static void add_rest(struct profile *profile, const char *words, uint64_t bytes)
{
    const uint64_t values[TYPES] = {0, 0, bytes, 0};
    struct mt_buf sample = {0}, locations = {0};

    if (!bytes)
        return;
    mt_protobuf_add_varint(&locations, word_location(profile, words));
    mt_protobuf_add_message(&sample, SAMPLE_LOCATIONS, &locations);
    add_values(&sample, values);
    mt_protobuf_add_message(profile->out, PROFILE_SAMPLE, &sample);
    mt_buf_release(&locations);
    mt_buf_release(&sample);
}

static void add_strings(struct profile *profile)
{
    for (uint32_t i = 0; i < profile->strings.count; i++) {
        const char *text = profile->strings.texts[i];
        const struct mt_buf string = {.data = (char *)text, .length = strlen(text)};

        mt_protobuf_add_message(profile->out, PROFILE_STRING, &string);
    }
}

static void add_types(struct profile *profile)
{
    for (int i = 0; i < TYPES; i++) {
        struct mt_buf type = {0};

        mt_protobuf_add_number(&type, TYPE_NAME, string_of(profile, types[i].name));
        mt_protobuf_add_number(&type, TYPE_UNIT, string_of(profile, types[i].unit));
        mt_protobuf_add_message(profile->out, PROFILE_SAMPLE_TYPE, &type);
        mt_buf_release(&type);
    }
    mt_protobuf_add_number(profile->out, PROFILE_DEFAULT_TYPE, string_of(profile, types[0].name));
}

static void add_pprof(struct mt_buf *out, const struct mt_export *what)
{
    struct profile profile = {.what = what, .out = out};
    const struct mt_instant *instant = what->instant;

    (void)string_of(&profile, ""); /* number 0, as the format requires */
    add_types(&profile);
    for (uint32_t i = 0; i < what->holding_count; i++)
        add_sample(&profile, &what->holdings[i]);
    if (instant) {
        add_rest(&profile, "freed, waiting for a stream",
                 instant->bytes.active - instant->bytes.allocated);
        add_rest(&profile, "free in segments", instant->bytes.reserved - instant->bytes.active);
        mt_protobuf_add_number(out, PROFILE_TIME_NS, instant->t_ns);
    }
    mt_protobuf_add_number(out, PROFILE_COMMENT, string_of(&profile, what->title));
    add_strings(&profile);
    mt_strings_release(&profile.strings);
    mt_strings_release(&profile.functions);
    mt_map_release(&profile.locations);
    mt_arena_release(&profile.words);
}

/* The types of the samples, which come first. Profiles of Go begin with other ones. */
static bool is_pprof(const void *start, size_t length)
{
    static const unsigned char own[] = {0x0a, 4, 8, 1, 16, 2, 0x0a, 4, 8, 3, 16, 2,
                                        0x0a, 4, 8, 4, 16, 2, 0x0a, 4, 8, 5, 16, 6};

    return length >= sizeof own && !memcmp(start, own, sizeof own);
}

static const struct mt_file_kind pprof_file = {.name = "a profile by memtrace", .is_own = is_pprof};
const struct mt_export_format mt_export_pprof = {
    .name = "pprof", .kind = &pprof_file, .add = add_pprof, .has_all_metrics = true};
