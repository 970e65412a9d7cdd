#include "blocks_option.h"

#include <string.h>

#include "cli.h"
#include "instant_option.h"
#include "question_report.h"
#include "util.h"

int mt_blocks_option_find_word(const char *what, const char *word, const char *const *names,
                               size_t count)
{
    const char *near = mt_did_you_mean(word, names, count);
    struct mt_buf list = {0};

    for (size_t i = 0; i < count; i++)
        if (!strcmp(word, names[i]))
            return (int)i;
    for (size_t i = 0; i < count; i++)
        mt_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    if (near)
        mt_message("%s cannot be '%s'; did you mean '%s'?", what, word, near);
    else
        mt_message("%s must be one of %s, not '%s'", what, list.data ? list.data : "", word);
    mt_buf_release(&list);
    return -1;
}

static bool read_of(struct mt_blocks_option *blocks)
{
    const char *names[1 + MT_POPULATION_KINDS] = {"live"};
    int found = 0;

    for (int i = 0; i < MT_POPULATION_KINDS; i++)
        names[1 + i] = mt_population_name((enum mt_population_of)i);
    if (blocks->of)
        found = mt_blocks_option_find_word("--of", blocks->of, names, MT_ARRAY_LEN(names));
    blocks->is_population = found > 0;
    if (found > 0)
        blocks->population = (enum mt_population_of)(found - 1);
    return found >= 0;
}

static bool read_metric(struct mt_blocks_option *blocks)
{
    const char *names[MT_WEIGH_KINDS];
    int found = 0;

    for (int i = 0; i < MT_WEIGH_KINDS; i++)
        names[i] = mt_weigh_name((enum mt_weigh)i);
    if (blocks->metric)
        found = mt_blocks_option_find_word("--metric", blocks->metric, names, MT_ARRAY_LEN(names));
    blocks->weigh = found > 0 ? (enum mt_weigh)found : MT_WEIGH_ALLOCATED;
    return found >= 0;
}

const char *mt_zoom_option_read(const char *text)
{
    return text + (strncmp(text, "phase:", 6) == 0 ? 6 : 0);
}

/* Returns a message if options do not apply to the requested blocks, otherwise NULL. */
static const char *contradiction(const struct mt_blocks_option *blocks)
{
    if (blocks->is_population && blocks->at)
        return "options '--at' and '--of' cannot be combined: --at selects one instant, and --of "
               "selects blocks over time";
    if (!blocks->is_population && (blocks->step != UINT64_MAX || blocks->zoom))
        return "options '--step' and '--zoom' need --of kept or --of allocated-total; for the peak "
               "within a phase use --at phase:PATH";
    if (blocks->is_population && blocks->population == MT_POPULATION_GREW &&
        (blocks->step != UINT64_MAX || blocks->zoom))
        return "--of grew takes neither --step nor --zoom: it covers all steps except the first "
               "and the last ones";
    if (blocks->is_population && blocks->population == MT_POPULATION_KEPT && blocks->zoom)
        return "--of kept takes no --zoom: select a step with --step N";
    return NULL;
}

bool mt_blocks_option_read(struct mt_blocks_option *blocks)
{
    if (!mt_question_option_read(blocks->at, NULL, &blocks->question) || !read_of(blocks) ||
        !read_metric(blocks))
        return false;
    const char *wrong = contradiction(blocks);
    if (wrong)
        mt_message("%s", wrong);
    if (blocks->zoom)
        blocks->zoom = mt_zoom_option_read(blocks->zoom);
    return !wrong;
}

struct mt_analyze_options mt_blocks_analysis(const struct mt_blocks_option *blocks,
                                             const char *path)
{
    struct mt_analyze_options options = {.path = path, .question = &blocks->question};

    if (!blocks->is_population)
        return options;
    options.models = MT_MODEL_POPULATION;
    options.population = blocks->population;
    options.window.phase = blocks->zoom;
    options.window.has_step = blocks->step <= INT64_MAX;
    if (options.window.has_step)
        options.window.step = (int64_t)blocks->step;
    return options;
}

static bool say_no_steps(const struct mt_blocks_option *blocks, const char *path)
{
    if (blocks->population == MT_POPULATION_GREW)
        mt_message(
            "'%s': too few steps: --of grew needs at least five, because it skips two for warm-up",
            path);
    else if (blocks->step != UINT64_MAX && blocks->population == MT_POPULATION_KEPT)
        mt_message("'%s': step %llu does not exist, or no step follows it", path,
                   (unsigned long long)blocks->step);
    else if (blocks->step != UINT64_MAX)
        mt_message("'%s': step %llu does not exist", path, (unsigned long long)blocks->step);
    else
        mt_message("'%s': --of kept needs a step that is followed by another one", path);
    return false;
}

bool mt_blocks_found(const struct mt_blocks_option *blocks, const struct mt_report *report,
                     const struct mt_device_report *device, const char *path)
{
    struct mt_question_report asked = {.path = path, .report = (struct mt_report *)report};

    if (!device)
        return true;
    if (!blocks->is_population)
        return mt_question_check(&asked, &blocks->question, device->device) < 0;
    if (!device->population || !device->population->missing)
        return true;
    if (blocks->zoom)
        return mt_question_print_no_phase(&asked, blocks->zoom), false;
    return say_no_steps(blocks, path);
}
