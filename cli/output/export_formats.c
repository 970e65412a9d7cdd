/* The formats of `export`: folded stacks, speedscope, and their table. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "export_format.h"
#include "foreign_text.h"
#include "json.h"
#include "process_memory.h"
#include "site.h"

/* One line per call stack with its bytes, the input of flamegraph.pl and similar programs. */

/* Names may contain control characters. */
static void add_folded(struct mt_buf *out, const struct mt_export *what)
{
    struct mt_buf lines = {0};

    mt_icicle_fold(what->icicle, what->report->symbols, what->with_blocks, &lines);
    for (const char *at = lines.data; at && *at;) {
        size_t length = strcspn(at, "\n");

        mt_buf_add_printable(out, at, length);
        mt_buf_add_char(out, '\n');
        at += length + (at[length] == '\n');
    }
    mt_buf_release(&lines);
}

const struct mt_export_format mt_export_folded = {
    .name = "folded", .kind = &mt_file_folded, .add = add_folded};

/* The format of speedscope.app: a sampled profile with one sample per stack. */

static bool is_sample(const struct mt_export *what, const struct mt_node *node)
{
    if (what->with_blocks)
        return node->kind == MT_NODE_BLOCKS && node->weight;
    return node->kind != MT_NODE_BLOCKS && node->own_weight;
}

static uint64_t sample_weight(const struct mt_export *what, const struct mt_node *node)
{
    return what->with_blocks ? node->weight : node->own_weight;
}

/* Name and place of a frame. Equal nodes of different parents are one frame. */
static void add_frame(struct mt_json *json, const struct mt_export *what,
                      const struct mt_node *node, struct mt_arena *arena)
{
    const struct mt_symbols *symbols = what->report->symbols;

    mt_json_object_begin(json, NULL);
    if (node->kind == MT_NODE_FRAME && node->frame < symbols->frame_count) {
        const struct mt_frame *frame = &symbols->frames[node->frame];

        mt_json_text(json, "name", mt_frame_function(arena, symbols, node->frame));
        mt_json_text(json, "file", mt_symbols_text(symbols, frame->file));
        if (frame->line)
            mt_json_u64(json, "line", frame->line);
    } else {
        mt_json_text(json, "name", mt_node_label(arena, symbols, node));
    }
    mt_json_object_end(json);
}

/* Nodes of the same frame share an index. Fills `indices`, which is parallel to the nodes. */
static void add_frames(struct mt_json *json, const struct mt_export *what, uint32_t *indices)
{
    const struct mt_icicle *icicle = what->icicle;
    uint32_t *of_frame =
        mt_memory_zeroed((size_t)what->report->symbols->frame_count + 1, sizeof *of_frame);
    struct mt_arena names = {0};
    uint32_t count = 0;

    mt_json_object_begin(json, "shared");
    mt_json_array_begin(json, "frames");
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];
        bool shares = node->kind == MT_NODE_FRAME;

        if (node->kind == MT_NODE_BLOCKS && !what->with_blocks)
            continue;
        if (shares && of_frame[node->frame]) {
            indices[i] = of_frame[node->frame] - 1;
            continue;
        }
        indices[i] = count++;
        if (shares)
            of_frame[node->frame] = count;
        add_frame(json, what, node, &names);
    }
    mt_json_array_end(json);
    mt_json_object_end(json);
    free(of_frame);
    mt_arena_release(&names);
}

/* Adds the frames from the root to the node. */
static void add_sample(struct mt_json *json, const struct mt_icicle *icicle, uint32_t node,
                       const uint32_t *indices)
{
    uint32_t *path = mt_memory_new(((size_t)icicle->depth + 1) * sizeof *path), count = 0;

    mt_json_array_begin(json, NULL);
    for (; node; node = icicle->nodes[node].parent)
        path[count++] = indices[node];
    while (count > 0)
        mt_json_u64(json, NULL, path[--count]);
    mt_json_array_end(json);
    free(path);
}

static void add_profile(struct mt_json *json, const struct mt_export *what, const uint32_t *indices)
{
    const struct mt_icicle *icicle = what->icicle;

    mt_json_object_begin(json, NULL);
    mt_json_text(json, "type", "sampled");
    mt_json_text(json, "name", what->title);
    mt_json_text(json, "unit", icicle->weigh == MT_WEIGH_COUNT ? "none" : "bytes");
    mt_json_u64(json, "startValue", 0);
    mt_json_u64(json, "endValue", icicle->nodes[0].weight);
    mt_json_array_begin(json, "samples");
    for (uint32_t i = 1; i < icicle->count; i++)
        if (is_sample(what, &icicle->nodes[i]))
            add_sample(json, icicle, i, indices);
    mt_json_array_end(json);
    mt_json_array_begin(json, "weights");
    for (uint32_t i = 1; i < icicle->count; i++)
        if (is_sample(what, &icicle->nodes[i]))
            mt_json_u64(json, NULL, sample_weight(what, &icicle->nodes[i]));
    mt_json_array_end(json);
    mt_json_object_end(json);
}

static void add_speedscope(struct mt_buf *out, const struct mt_export *what)
{
    uint32_t *indices = mt_memory_zeroed(what->icicle->count, sizeof *indices);
    struct mt_json json;

    mt_json_init(&json, out, false);
    json.all = true; /* a file for another program is never shortened */
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    mt_json_text(&json, "exporter", what->exporter);
    mt_json_text(&json, "name", what->title);
    add_frames(&json, what, indices);
    mt_json_array_begin(&json, "profiles");
    add_profile(&json, what, indices);
    mt_json_array_end(&json);
    mt_json_object_end(&json);
    free(indices);
}

const struct mt_export_format mt_export_speedscope = {
    .name = "speedscope", .kind = &mt_file_speedscope, .add = add_speedscope};

static const struct mt_export_format perfetto = {.name = "perfetto", .kind = &mt_file_perfetto};
static const struct mt_export_format sqlite = {.name = "sqlite", .kind = &mt_file_database};

const struct mt_export_format *const mt_export_formats[] = {
    &mt_export_folded, &mt_export_speedscope, &mt_export_pprof, &perfetto, &sqlite, NULL,
};
