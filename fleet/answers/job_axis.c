#include "job_axis.h"

#include <string.h>

bool mt_job_axis_add(struct mt_job_report *report, const char *name, uint32_t size, uint32_t stride)
{
    if (report->axis_count == MT_JOB_AXES)
        return false;
    report->axes[report->axis_count++] =
        (struct mt_job_axis){.name = name, .size = size, .stride = stride};
    return true;
}

/* Words of names of axes and process groups. */
static const struct {
    const char *word, *axis;
    enum mt_axis_kind kind;
} words[] = {
    {"tp", "tp", MT_AXIS_UNNAMED},         {"tensor", "tp", MT_AXIS_UNNAMED},
    {"pp", "pp", MT_AXIS_STAGES},          {"pipeline", "pp", MT_AXIS_STAGES},
    {"pipe", "pp", MT_AXIS_STAGES},        {"stage", "pp", MT_AXIS_STAGES},
    {"cp", "cp", MT_AXIS_UNNAMED},         {"context", "cp", MT_AXIS_UNNAMED},
    {"ep", "ep", MT_AXIS_UNNAMED},         {"expert", "ep", MT_AXIS_UNNAMED},
    {"fsdp", "fsdp", MT_AXIS_REPLICAS},    {"shard", "fsdp", MT_AXIS_REPLICAS},
    {"dp", "dp", MT_AXIS_REPLICAS},        {"ddp", "dp", MT_AXIS_REPLICAS},
    {"data", "dp", MT_AXIS_REPLICAS},      {"replica", "dp", MT_AXIS_REPLICAS},
    {"replicate", "dp", MT_AXIS_REPLICAS},
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Index into `words` of the first word of the name that is there; -1 = none. */
static int find_word(const char *name)
{
    while (*name) {
        size_t length = 0;

        while (is_letter(name[length]))
            length++;
        for (size_t i = 0; length && i < MT_ARRAY_LEN(words); i++)
            if (strlen(words[i].word) == length && !strncmp(words[i].word, name, length))
                return (int)i;
        name += length ? length : 1;
    }
    return -1;
}

enum mt_axis_kind mt_job_axis_kind(const char *name)
{
    int word = find_word(name);

    return word < 0 ? MT_AXIS_UNNAMED : words[word].kind;
}

const char *mt_job_axis_word(const char *name)
{
    int word = find_word(name);

    return word < 0 ? NULL : words[word].axis;
}
