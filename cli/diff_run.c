#include "diff_run.h"
#include "memory_limit.h"

#include <string.h>

static int compare(const struct mt_diff_wish *wish, struct mt_diff_run *run)
{
    bool are_single = run->a.report->device_count == 1 && run->b.report->device_count == 1;
    int code = mt_asked_check(&run->a, wish->question, wish->device);

    if (code < 0)
        code = mt_asked_check(&run->b, wish->question, are_single ? MT_EVERY_DEVICE : wish->device);
    if (code >= 0 || mt_diff_reports(&run->arena, run->a.report, run->b.report, wish->device,
                                     &run->diff) == MT_OK)
        return code;
    return mt_say_no_memory("cannot compare");
}

int mt_diff_run_open(const struct mt_diff_wish *wish, const struct mt_common *common,
                     struct mt_diff_run *run)
{
    struct mt_common of_a = *common;
    int code;

    memset(run, 0, sizeof *run);
    if (wish->finds_format_of_a)
        of_a.format = NULL;
    code = mt_ask(wish->a, &of_a, wish->question, &run->a);
    if (code < 0)
        code = mt_ask(wish->b, common, wish->question, &run->b);
    return code < 0 ? compare(wish, run) : code;
}

static int verdict(const struct mt_asked_report *asked, const struct mt_common *common, int code)
{
    int of_input = mt_input_verdict(asked->source, asked->path, common);

    return code ? code : of_input;
}

int mt_diff_run_verdict(const struct mt_diff_run *run, const struct mt_common *common, int code)
{
    return verdict(&run->b, common, verdict(&run->a, common, code));
}

void mt_diff_run_close(struct mt_diff_run *run)
{
    mt_arena_release(&run->arena);
    mt_asked_close(&run->a);
    mt_asked_close(&run->b);
}
