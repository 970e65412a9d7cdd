#include "json_list.h"

#include <stdio.h>

/* Returns the part of a limit that one object gets if several objects share it; at most `most`. */
static uint64_t part_of(const struct mt_json *json, uint64_t most)
{
    uint64_t part = json->sharers ? most / json->sharers : most;

    return part < most ? part : most;
}

static void begin(struct mt_json_list *list, struct mt_json *json, const char *key)
{
    mt_json_array_begin(json, key);
    *list = (struct mt_json_list){.json = json, .key = key, .begin = json->out->length};
}

void mt_json_list_begin(struct mt_json_list *list, struct mt_json *json, const char *key)
{
    begin(list, json, key);
    list->most_rows = part_of(json, MT_JSON_ROWS);
    list->most_bytes = (size_t)part_of(json, MT_JSON_LIST_BYTES);
}

void mt_json_objects_begin(struct mt_json_list *list, struct mt_json *json, const char *key,
                           uint64_t count)
{
    begin(list, json, key);
    list->most_rows = MT_JSON_OBJECTS;
    list->most_bytes = MT_JSON_BYTES;
    list->has_lists = true;
    json->sharers = count < MT_JSON_OBJECTS ? (unsigned)count : MT_JSON_OBJECTS;
}

bool mt_json_list_takes(struct mt_json_list *list)
{
    const struct mt_json *json = list->json;
    size_t length = json->out->length;

    if (!json->all && (list->rows == list->most_rows || length - list->begin >= list->most_bytes ||
                       length - json->begin >= MT_JSON_BYTES)) {
        list->omitted++;
        return false;
    }
    list->rows++;
    return true;
}

void mt_json_list_end(struct mt_json_list *list)
{
    mt_json_array_end(list->json);
    mt_json_omitted(list->json, list->key, list->omitted);
    if (list->has_lists)
        list->json->sharers = 0;
}

void mt_json_omitted(struct mt_json *json, const char *key, uint64_t count)
{
    char name[64];

    if (!count)
        return;
    snprintf(name, sizeof name, "%s_omitted", key);
    mt_json_u64(json, name, count);
}
