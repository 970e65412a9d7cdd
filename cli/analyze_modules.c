/* Who holds the memory, by module of the model. */
#include "analyze_output.h"
#include "module_rows.h"
#include "text_table.h"

/* Of each kind: a model of many layers goes on in --json. */
enum { MAX_MODULES = 32 };

void mt_tell_modules(const struct mt_teller *teller)
{
    const struct mt_modules *modules = teller->device->modules;
    struct mt_table table;

    for (uint32_t row = 0; row < modules->layer_count;) {
        const char *group = mt_module_group_text(teller->arena, modules, &row);

        teller->out->failed |= !group;
        if (group)
            mt_tell_line(teller, 2, group);
    }
    mt_table_begin(&table, MT_MODULE_TITLES);
    mt_add_module_rows(&table, modules, MAX_MODULES);
    mt_add_text_table(teller->out, &table, 2, teller->style);
}

void mt_tell_peak_modules(const struct mt_teller *teller)
{
    if (!teller->detail->whole || !mt_modules_tell(teller->device->modules))
        return;
    mt_tell_heading(teller, "At the allocated peak, by module");
    mt_tell_modules(teller);
}
