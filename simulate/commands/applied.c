#include "applied.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign_text.h"
#include "json.h"
#include "near_word.h"
#include "process_memory.h"
#include "settings_text.h"
#include "units.h"
#include "util.h"

static const struct {
    const char *name, *example;
    const char *values; /* the values that are allowed; NULL: any; "": none */
} kinds[] = {
    {"checkpoint", "checkpoint=CLASS", NULL},
    {"offload", "offload=CLASS", NULL},
    {"save_on_cpu", "save_on_cpu", ""},
    {"foreach", "foreach=False", "True False"},
    {"fused", "fused=True", "True False"},
    {"8bit", "8bit", ""},
    {"chunked-loss", "chunked-loss=8", NULL},
    {"expandable", "expandable", ""},
    {"dtype", "dtype=bfloat16", "bfloat16 float16 float32 float64"},
};

static bool is_number_of_chunks(const char *text, size_t length)
{
    return length > 0 && length < 6 && strspn(text, "0123456789") >= length &&
           !(text[0] == '0' || (length == 1 && text[0] == '1'));
}

/* Returns true if `text` is one of the words in `words`. */
static bool is_among(const char *words, const char *text, size_t length)
{
    for (const char *at = words; *at; at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' '))
        if (strcspn(at, " ") == length && !strncmp(at, text, length))
            return true;
    return false;
}

static bool is_value_allowed(size_t kind, const char *value, size_t length)
{
    if (!strcmp(kinds[kind].name, "chunked-loss"))
        return is_number_of_chunks(value, length);
    if (kinds[kind].values)
        return *kinds[kind].values ? is_among(kinds[kind].values, value, length) : !length;
    return length && value[0] != ',' && value[length - 1] != ',';
}

static int refuse_name(const char *name, size_t length)
{
    const char *names[MT_ARRAY_LEN(kinds)];

    for (size_t i = 0; i < MT_ARRAY_LEN(kinds); i++)
        names[i] = kinds[i].name;
    const char *near = mt_did_you_mean_part(name, length, names, MT_ARRAY_LEN(names));
    if (near)
        mt_message("option '--apply': no change is called '%.*s'; did you mean '%s'?", (int)length,
                   name, near);
    else
        mt_message("option '--apply': no change is called '%.*s'; 'memtrace dry-run --help' lists "
                   "them",
                   (int)length, name);
    return MT_EXIT_USAGE;
}

static int check_change(const char *change, size_t length)
{
    const char *equal = memchr(change, '=', length);
    size_t name_length = equal ? (size_t)(equal - change) : length;
    size_t value_length = equal ? length - name_length - 1 : 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(kinds); i++) {
        if (strlen(kinds[i].name) != name_length || strncmp(kinds[i].name, change, name_length))
            continue;
        if (is_value_allowed(i, equal ? equal + 1 : "", value_length))
            return -1;
        mt_message("option '--apply': expected '%s', not '%.*s'", kinds[i].example, (int)length,
                   change);
        return MT_EXIT_USAGE;
    }
    return refuse_name(change, name_length);
}

static bool is_none(const char *change, size_t length)
{
    return length == strlen("none") && !strncmp(change, "none", length);
}

int mt_applied_read(const struct mt_text_list *options, struct mt_buf *out)
{
    for (size_t i = 0; i < options->count; i++) {
        for (const char *at = options->items[i]; *at;) {
            size_t length = strcspn(at, "+");
            int code = is_none(at, length) ? -1 : check_change(at, length);

            if (code >= 0)
                return code;
            if (!is_none(at, length))
                mt_buf_printf(out, "%s%.*s", out->length ? "+" : "", (int)length, at);
            at += length + (at[length] == '+');
        }
    }
    return -1;
}

/* ---- what the Python part reports */

#define FACTS "facts.applied.%zu." /* of the report of a change */

/* Returns a copy, "" if there is no text. */
static const char *keep(struct mt_applied *applied, const char *text)
{
    return text ? mt_arena_text(&applied->arena, text, strlen(text)) : "";
}

static void read_pieces(struct mt_applied *applied, const struct mt_settings *settings, size_t i,
                        struct mt_applied_change *change)
{
    size_t count = 0;

    while (mt_settings_text(settings, FACTS "pieces.%zu.text", i, count))
        count++;
    change->pieces = mt_arena_alloc(&applied->arena, count * sizeof *change->pieces);
    change->piece_count = count;
    for (size_t j = 0; j < count; j++) {
        change->pieces[j].text =
            keep(applied, mt_settings_text(settings, FACTS "pieces.%zu.text", i, j));
        change->pieces[j].place =
            keep(applied, mt_settings_text(settings, FACTS "pieces.%zu.place", i, j));
    }
}

static struct mt_applied_change *change_of(struct mt_applied *applied, const char *name)
{
    struct mt_applied_change *grown;

    for (size_t i = 0; i < applied->count; i++)
        if (!strcmp(applied->changes[i].change, name))
            return &applied->changes[i];
    grown = mt_memory_resize(applied->changes, (applied->count + 1) * sizeof *grown);
    applied->changes = grown;
    grown[applied->count] = (struct mt_applied_change){
        .change = mt_arena_text(&applied->arena, name, strlen(name))}; /* no report yet */
    return &grown[applied->count++];
}

void mt_applied_note(struct mt_applied *applied, const struct mt_settings *settings)
{
    const char *name;
    char flops[64];

    for (size_t i = 0; (name = mt_settings_text(settings, FACTS "change", i)); i++) {
        struct mt_applied_change *change = change_of(applied, name);
        uint64_t calls = mt_settings_number(settings, FACTS "calls", i);
        const char *problem = keep(applied, mt_settings_text(settings, FACTS "problem", i));

        /* of processes that changed nothing, the one that made more modules explains more */
        if (change->problem &&
            (!*change->problem != !*problem
                 ? !*change->problem
                 : calls < change->calls ||
                       (calls == change->calls && strlen(problem) <= strlen(change->problem))))
            continue;
        change->calls = calls;
        change->problem = problem;
        change->copied_bytes = mt_settings_number(settings, FACTS "copied_bytes", i);
        change->flops = mt_settings_number(settings, FACTS "flops", i);
        snprintf(flops, sizeof flops, FACTS "flops", i);
        change->counts_flops = mt_settings_find(settings, flops) != NULL;
        change->recomputed_flops = mt_settings_number(settings, FACTS "recomputed_flops", i);
        read_pieces(applied, settings, i, change);
    }
}

static bool is_reported(const struct mt_applied *applied, const char *change, size_t length)
{
    for (size_t i = 0; i < applied->count; i++)
        if (strlen(applied->changes[i].change) == length &&
            !strncmp(applied->changes[i].change, change, length))
            return true;
    return false;
}

static bool are_all_reported(const struct mt_applied *applied, const char *requested)
{
    size_t length;

    for (const char *at = requested; *at; at += length + (at[length] == '+')) {
        length = strcspn(at, "+");
        if (length && !is_none(at, length) && !is_reported(applied, at, length))
            return false;
    }
    return true;
}

const char *mt_applied_problem(const struct mt_applied *applied, const char *requested)
{
    if (!requested || !*requested)
        return NULL;
    for (size_t i = 0; i < applied->count; i++)
        if (*applied->changes[i].problem)
            return applied->changes[i].problem;
    if (are_all_reported(applied, requested))
        return NULL;
    return applied->count
               ? "the Python part of the dry run did not report all changes"
               : "the Python part of the dry run did not start in a process with PyTorch";
}

void mt_applied_release(struct mt_applied *applied)
{
    free(applied->changes);
    mt_arena_release(&applied->arena);
}

/* ---- the answer */

static uint64_t recomputed_percent(const struct mt_applied_change *change)
{
    return (uint64_t)(100.0 * (double)change->recomputed_flops / (double)change->flops + 0.5);
}

static void add_cost(struct mt_buf *out, const struct mt_applied_change *change)
{
    char text[MT_UNITS_TEXT];

    if (!change->calls)
        mt_buf_add_text(out, ", calls not counted: torch.compile compiled them");
    else if (change->calls > 1 || change->copied_bytes || change->counts_flops)
        mt_buf_printf(out, ", %s call%s", mt_format_count(text, change->calls),
                      change->calls == 1 ? "" : "s");
    if (change->counts_flops && change->flops)
        mt_buf_printf(out, ", about %" PRIu64 "%% more FLOPs", recomputed_percent(change));
    else if (change->counts_flops)
        mt_buf_add_text(out, ", each recomputed in backward");
    if (change->copied_bytes)
        mt_buf_printf(out, ", %s to the host and back",
                      mt_format_bytes(text, change->copied_bytes));
}

void mt_applied_add_costs(struct mt_buf *out, const struct mt_applied *applied)
{
    for (size_t i = 0; i < applied->count; i++) {
        const struct mt_applied_change *change = &applied->changes[i];

        mt_buf_add_text(out, *change->problem ? "Not applied on paper: " : "Applied on paper: ");
        mt_buf_add_printable_text(out, change->change);
        if (*change->problem) {
            mt_buf_add_text(out, ": ");
            mt_buf_add_printable_text(out, change->problem);
        } else {
            add_cost(out, change);
        }
        mt_buf_add_char(out, '\n');
    }
}

static void add_indented(struct mt_buf *out, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");

        if (length) {
            mt_buf_add_text(out, "    ");
            mt_buf_add_printable(out, text, length);
        }
        mt_buf_add_char(out, '\n');
        text += length + (text[length] == '\n');
    }
}

void mt_applied_add_patch(struct mt_buf *out, const struct mt_applied *applied)
{
    for (size_t i = 0; i < applied->count; i++) {
        const struct mt_applied_change *change = &applied->changes[i];

        if (*change->problem)
            continue;
        mt_buf_add_text(out, "\nPatch ");
        mt_buf_add_printable_text(out, change->change);
        mt_buf_add_char(out, '\n');
        for (size_t j = 0; j < change->piece_count; j++) {
            if (!j || strcmp(change->pieces[j].place, change->pieces[j - 1].place) != 0) {
                mt_buf_add_text(out, "  ");
                mt_buf_add_printable_text(out, change->pieces[j].place);
                mt_buf_add_text(out, ":\n");
            }
            add_indented(out, change->pieces[j].text);
        }
    }
}

static void add_change(struct mt_json *json, const struct mt_applied_change *change)
{
    const bool has_flops = change->counts_flops && change->flops;

    mt_json_object_begin(json, NULL);
    mt_json_text(json, "change", change->change);
    mt_json_u64(json, "calls", change->calls);
    mt_json_u64(json, "copied_bytes", change->copied_bytes);
    mt_json_u64_or_null(json, "recomputed_percent", has_flops,
                        has_flops ? recomputed_percent(change) : 0);
    mt_json_array_begin(json, "patch");
    for (size_t j = 0; j < change->piece_count; j++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "place", change->pieces[j].place);
        mt_json_text(json, "text", change->pieces[j].text);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
    mt_json_object_end(json);
}

void mt_applied_add_json(struct mt_json *json, const struct mt_applied *applied)
{
    mt_json_array_begin(json, "applied");
    for (size_t i = 0; i < applied->count; i++)
        add_change(json, &applied->changes[i]);
    mt_json_array_end(json);
}
