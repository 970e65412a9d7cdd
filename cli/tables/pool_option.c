#include "pool_option.h"

#include <stdio.h>

#include "json.h"
#include "text_table.h"
#include "units.h"

static bool is_pytorch(const char *text)
{
    struct mt_policy_text policy;
    struct mt_error unused;

    return mt_policy_text_parse(text, &policy, &unused) == MT_OK &&
           policy.ops == &mt_policy_pytorch;
}

int mt_pools_to_policies(const struct mt_text_list *pools, struct mt_text_list *policies,
                         struct mt_arena *arena)
{
    size_t given = 0;

    for (size_t i = 0; i < policies->count && pools->count; i++) {
        const char **item = &policies->items[i];
        if (*item && !is_pytorch(*item))
            continue;
        given++;
        *item = *item ? *item : mt_policy_pytorch.name;
        for (size_t j = 0; j < pools->count; j++)
            *item = mt_arena_printf(arena, "%s --pool %s", *item, pools->items[j]);
    }
    if (!pools->count || given)
        return MT_EXIT_OK;
    mt_message("option '--pool' needs a pytorch policy, and none is given");
    return MT_EXIT_USAGE;
}

void mt_pool_option_add_shares(struct mt_buf *out, const char *policy,
                               const struct mt_pool_share *shares)
{
    const char *at = mt_pool_routes_text(policy), *selector;
    char count[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];
    size_t length;

    if (!*at)
        return;
    for (size_t i = 0; (selector = mt_pool_routes_next(&at, &length)); i++) {
        mt_buf_add_text(out, "  pool ");
        mt_buf_add_printable(out, selector, length);
        mt_buf_printf(out, ": %s, %s in total",
                      mt_format_counted(count, shares[i].requests, "request"),
                      mt_format_bytes(bytes, shares[i].requested_bytes));
        if (shares[i].private_requests)
            mt_buf_printf(out, "; %s more, %s, stay in a private pool of the run",
                          mt_format_count(count, shares[i].private_requests),
                          mt_format_bytes(bytes, shares[i].private_requested_bytes));
        mt_buf_add_char(out, '\n');
    }
    mt_text_table_add_note(
        out, 2, "pools exist until the end of the run and never return memory to the driver");
}

void mt_json_pool_shares(struct mt_json *json, const char *policy,
                         const struct mt_pool_share *shares)
{
    struct mt_json_list list;
    const char *at = mt_pool_routes_text(policy), *selector;
    char text[MT_POLICY_TEXT];
    size_t length;

    if (!*at)
        return;
    mt_json_list_begin(&list, json, "pools");
    for (size_t i = 0; (selector = mt_pool_routes_next(&at, &length)); i++) {
        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
        snprintf(text, sizeof text, "%.*s", (int)length, selector);
        mt_json_text(json, "selector", text);
        mt_json_u64(json, "requests", shares[i].requests);
        mt_json_u64(json, "requested_bytes", shares[i].requested_bytes);
        mt_json_u64(json, "private_requests", shares[i].private_requests);
        mt_json_u64(json, "private_requested_bytes", shares[i].private_requested_bytes);
        mt_json_object_end(json);
    }
    mt_json_list_end(&list);
}
