#include "mesh.h"

#include <stdbool.h>
#include <string.h>

#include "decimal.h"
#include "util.h"

#define MAX_RANKS (UINT64_C(1) << 31)

static const char wrong_form[] =
    "it needs a coordinate and a size for each axis, such as pp=1/8,dp=3/32";
static const char wrong_name[] = "the name of an axis has 1 to 16 of the characters a to z and _";

/* "pp=": returns NULL, or what is wrong. */
static const char *take_name(const char **at, const char *end, struct mt_mesh_axis *axis)
{
    size_t length = 0;

    while (*at + length < end &&
           ((*at)[length] == '_' || ((*at)[length] >= 'a' && (*at)[length] <= 'z')))
        length++;
    if (!length || length >= sizeof axis->name)
        return wrong_name;
    if (*at + length == end || (*at)[length] != '=')
        return *at + length == end || strchr("/,", (*at)[length]) ? wrong_form : wrong_name;
    memcpy(axis->name, *at, length);
    axis->name[length] = '\0';
    *at += length + 1;
    return NULL;
}

/* "1/8" */
static const char *take_place(const char **at, const char *end, struct mt_mesh_axis *axis)
{
    uint64_t coordinate, size;

    if (!mt_decimal_take(at, end, &coordinate) || *at == end || *(*at)++ != '/' ||
        !mt_decimal_take(at, end, &size))
        return wrong_form;
    if (size > MAX_RANKS)
        return "it has more than 2^31 ranks";
    if (coordinate >= size)
        return "a coordinate is not below the size of its axis";
    axis->coordinate = (uint32_t)coordinate;
    axis->size = (uint32_t)size;
    return NULL;
}

static bool is_named(const struct mt_mesh *mesh, const char *name)
{
    for (uint32_t i = 0; i < mesh->count; i++)
        if (!strcmp(mesh->axes[i].name, name))
            return true;
    return false;
}

static const char *take_axis(const char **at, const char *end, struct mt_mesh *mesh,
                             uint64_t *ranks)
{
    struct mt_mesh_axis axis = {.size = 0};
    const char *wrong = take_name(at, end, &axis);

    if (!wrong)
        wrong = take_place(at, end, &axis);
    if (wrong)
        return wrong;
    if (mesh->count == MT_MESH_AXES)
        return "it has more than 8 axes";
    if (is_named(mesh, axis.name))
        return "it has an axis twice";
    *ranks *= axis.size; /* both are at most 2^31 */
    if (*ranks > MAX_RANKS)
        return "it has more than 2^31 ranks";
    mesh->axes[mesh->count++] = axis;
    return NULL;
}

const char *mt_mesh_read(const char *text, struct mt_mesh *mesh)
{
    const char *end = text ? text + strlen(text) : NULL, *at = text, *wrong = NULL;
    uint64_t ranks = 1;

    memset(mesh, 0, sizeof *mesh);
    while (!wrong && at && at < end) {
        wrong = take_axis(&at, end, mesh, &ranks);
        if (!wrong && at < end && (*at != ',' || ++at == end))
            wrong = wrong_form;
    }
    if (wrong)
        memset(mesh, 0, sizeof *mesh);
    return wrong;
}

void mt_mesh_write(const struct mt_mesh *mesh, struct mt_buf *out)
{
    for (uint32_t i = 0; i < mesh->count; i++)
        mt_buf_printf(out, "%s%s=%u/%u", i ? "," : "", mesh->axes[i].name, mesh->axes[i].coordinate,
                      mesh->axes[i].size);
}
