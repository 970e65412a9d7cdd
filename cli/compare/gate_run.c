/* Rules for a run: options and files, the check, and what is printed about it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "analyze.h"
#include "cli.h"
#include "debug.h"
#include "gate_output.h"
#include "gate_result.h"
#include "gate_run.h"
#include "io.h"
#include "outputs.h"
#include "question_report.h"

/* Reads at most one byte more than the maximum size of settings, so larger files are rejected. */
static enum mt_status read_start(const char *path, struct mt_buf *text, struct mt_error *error)
{
    int fd = mt_io_open(path, O_RDONLY, 0);
    ssize_t got = fd < 0 ? -1 : 1;

    while (got > 0 && text->length <= MT_SETTINGS_BYTES) {
        char *room = mt_buf_reserve(text, 1 << 16);

        if (!room)
            break;
        got = mt_io_read(fd, room, 1 << 16);
        if (got > 0)
            text->length += (size_t)got;
    }
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    return got < 0 ? mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(why)) : MT_OK;
}

enum mt_status mt_settings_read_file(const char *path, mt_settings_parser *parse,
                                     struct mt_settings *settings, struct mt_error *error)
{
    struct mt_buf text = {0};
    enum mt_status status = read_start(path, &text, error);

    memset(settings, 0, sizeof *settings);
    if (!status)
        status = parse(text.data ? text.data : "", text.length, settings, error);
    mt_buf_release(&text);
    return status;
}

/* Reads a budget or a baseline. */
static int read_document(struct mt_gate_run *run, const char *path, bool is_base)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_settings settings;
    enum mt_status status = mt_settings_read_file(
        path, is_base ? mt_settings_parse_json : mt_settings_parse_toml, &settings, &error);

    if (!status)
        status = is_base ? mt_baseline_read(&run->base, &settings, &error)
                         : mt_gate_rules_read(&run->rules, &settings, &error);
    mt_settings_release(&settings);
    if (!status)
        return MT_EXIT_OK;
    error.status = status;
    return mt_report_error(path, &error);
}

char *mt_gate_base_path(struct mt_arena *arena, const char *budget, const char *base)
{
    const char *slash = strrchr(budget, '/');

    if (*base == '/' || !slash)
        return mt_arena_text(arena, base, strlen(base));
    return mt_arena_printf(arena, "%.*s/%s", (int)(slash - budget), budget, base);
}

/* Traces are binary, so a file that begins with '{' is a baseline. */
static bool is_document(const char *path)
{
    int fd = mt_io_open(path, O_RDONLY, 0);
    char start[64];
    ssize_t i = 0;

    if (fd < 0)
        return false;
    ssize_t got = mt_io_read_full(fd, start, sizeof start);
    (void)close(fd);
    while (i < got && strchr(" \t\r\n", start[i]))
        i++;
    return i < got && start[i] == '{';
}

static int base_of_trace(struct mt_gate_run *run, const char *path, const struct mt_common *common)
{
    const struct mt_analyze_options options = {.path = path, .no_findings = true};
    struct mt_report *report = NULL;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code;
    struct mt_source *source = mt_open_input(path, common, &code);

    if (!source)
        return code;
    enum mt_status status =
        mt_analyze_with_progress(source, &options, common->quiet, &report, &error);
    if (!status)
        mt_baseline_of_report(&run->base, report, &source->header);
    if (!status)
        mt_debug_passes(report);
    code = status ? mt_report_error(path, &error) : mt_input_verdict(source, path, common);
    mt_report_release(report);
    mt_source_close(source);
    return code;
}

static int open_base(struct mt_gate_run *run, const char *path, const struct mt_common *common)
{
    run->has_base = true;
    run->base_trace = is_document(path) ? NULL : path;
    return !run->base_trace ? read_document(run, path, true) : base_of_trace(run, path, common);
}

static int add_rule(struct mt_gate_run *run, enum mt_gate_kind kind, const char *text)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (!text)
        return MT_EXIT_OK;
    enum mt_status status = mt_gate_rules_add(&run->rules, kind, text, &error);
    return status ? mt_report_error("", &error) : MT_EXIT_OK;
}

static int add_rules(struct mt_gate_run *run, const struct mt_gate_options *options)
{
    int code = MT_EXIT_OK;

    for (size_t i = 0; !code && i < options->peaks.count; i++)
        code = add_rule(run, MT_GATE_PEAK, options->peaks.items[i]);
    if (!code)
        code = add_rule(run, MT_GATE_GROWTH, options->growth);
    for (size_t i = 0; !code && i < options->regressions.count; i++)
        code = add_rule(run, MT_GATE_REGRESSION, options->regressions.items[i]);
    if (!code)
        code = add_rule(run, MT_GATE_FITS, options->fits);
    if (options->allow_not_evaluated)
        mt_gate_rules_make_optional(&run->rules);
    return code;
}

int mt_gate_run_open(struct mt_gate_run *run, const struct mt_gate_options *options,
                     const struct mt_common *common)
{
    const char *base = options->base;
    int code = MT_EXIT_OK;

    memset(run, 0, sizeof *run);
    if (options->write_baseline && mt_outputs_is_standard(options->write_baseline)) {
        mt_message(
            "option '--write-baseline' needs the name of a file: standard output has the analysis");
        return MT_EXIT_USAGE;
    }
    if (options->budget)
        code = read_document(run, options->budget, false);
    if (!code)
        code = add_rules(run, options);
    if (!code && !base && run->rules.base)
        base = mt_gate_base_path(&run->rules.arena, options->budget, run->rules.base);
    mt_outputs_add_input(options->outputs, options->budget);
    mt_outputs_add_input(options->outputs, base);
    if (!code)
        code = mt_output_precheck(options->write_baseline, options->outputs, &mt_file_baseline);
    return !code && base ? open_base(run, base, common) : code;
}

void mt_gate_run_release(struct mt_gate_run *run)
{
    mt_gates_release(&run->gates);
    mt_baseline_release(&run->base);
    mt_gate_rules_release(&run->rules);
}

static int write_baseline(const struct mt_gate_options *options, const struct mt_report *report,
                          const struct mt_source *source)
{
    const char *path = options->write_baseline;
    struct mt_baseline baseline;
    struct mt_buf json = {0};

    mt_baseline_of_report(&baseline, report, &source->header);
    mt_baseline_add_json(&json, &baseline);
    int code = mt_outputs_write(path, options->outputs, &mt_file_baseline, &json);
    if (!code && baseline.doubt)
        mt_message("'%s': peaks in this baseline may be too small (%s), so later runs will not be "
                   "compared with it",
                   path, baseline.doubt);
    mt_buf_release(&json);
    mt_baseline_release(&baseline);
    return code;
}

int mt_gate_run_check(struct mt_gate_run *run, const struct mt_gate_options *options,
                      struct mt_source *source, const struct mt_report *report, const char *policy)
{
    const struct mt_gate_check check = {.rules = &run->rules,
                                        .report = report,
                                        .base = mt_gate_run_base(run),
                                        .source = source,
                                        .policy = policy,
                                        .strict = options->strict};
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (run->rules.count) {
        if (mt_gates_check(&check, &run->gates, &error) != MT_OK)
            return mt_report_error(report->path, &error);
        run->is_checked = true;
    }
    return options->write_baseline ? write_baseline(options, report, source) : MT_EXIT_OK;
}

int mt_gate_run_verdict(const struct mt_gate_run *run)
{
    bool failed = run->is_checked && (run->gates.verdict == MT_GATE_FAIL ||
                                      run->gates.verdict == MT_GATE_NOT_EVALUATED);

    return failed ? MT_EXIT_BUDGET : MT_EXIT_OK;
}

const struct mt_gates *mt_gate_run_gates(const struct mt_gate_run *run)
{
    return run->is_checked ? &run->gates : NULL;
}

const struct mt_baseline *mt_gate_run_base(const struct mt_gate_run *run)
{
    return run->has_base ? &run->base : NULL;
}
