#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze.h"
#include "analyze_options.h"
#include "cli.h"
#include "debug.h"
#include "diff.h"
#include "file_hash.h"
#include "instant_option.h"
#include "process_memory.h"
#include "question_report.h"
#include "report.h"
#include "screen.h"
#include "tag_members.h"
#include "text_width.h"

static void show(void *progress, const char *what, double share)
{
    mt_progress_update(progress, what, share);
}

enum mt_status mt_analyze_with_progress(struct mt_source *source,
                                        const struct mt_analyze_options *options, bool quiet,
                                        struct mt_report **report, struct mt_error *error)
{
    struct mt_analyze_options shown = *options;
    struct mt_progress progress;

    shown.progress = (struct mt_analyze_progress){show, &progress};
    mt_progress_start(&progress, quiet);
    enum mt_status status = mt_analyze(source, &shown, report, error);
    mt_progress_end(&progress);
    return status;
}

#define ANALYZED "only devices 0 to 63 are"

int mt_question_run(const char *path, const struct mt_common *common,
                    const struct mt_question *question, struct mt_question_report *asked)
{
    const struct mt_analyze_options options = {.path = path, .question = question};

    return mt_question_run_with(path, common, &options, asked);
}

int mt_question_run_with(const char *path, const struct mt_common *common,
                         const struct mt_analyze_options *wanted, struct mt_question_report *asked)
{
    struct mt_error error;
    int code;

    *asked = (struct mt_question_report){.path = path};
    asked->source = mt_open_input(path, common, &code);
    if (!asked->source)
        return code;
    enum mt_status status =
        mt_analyze_with_progress(asked->source, wanted, common->quiet, &asked->report, &error);
    if (!status && common->json)
        status = mt_file_hash(path, asked->report->sha256, &error);
    if (status)
        return mt_report_error(path, &error);
    mt_debug_passes(asked->report);
    return -1;
}

const struct mt_device_report *mt_question_device(const struct mt_report *report, uint64_t device)
{
    const struct mt_device_report *best = NULL;

    for (uint32_t i = 0; i < report->device_count; i++) {
        const struct mt_device_report *one = &report->devices[i];

        if (device == one->device)
            return one;
        if (device == MT_EVERY_DEVICE &&
            (!best || one->reserved_peak.bytes > best->reserved_peak.bytes))
            best = one;
    }
    return best;
}

void mt_question_close(struct mt_question_report *asked)
{
    mt_report_release(asked->report);
    if (asked->source)
        mt_source_close(asked->source);
    memset(asked, 0, sizeof *asked);
}

/* Returns why a device with events was not analyzed, to follow "device N is not analyzed: "; NULL
 * if there is no such reason. */
static const char *not_analyzed_reason(const struct mt_report *report, uint64_t device)
{
    if (device >= MT_MAX_DEVICES)
        return report->devices_left_out ? ANALYZED : NULL;
    return report->devices_not_followed >> device & 1
               ? "the trace has too many phases for more devices"
               : NULL;
}

void mt_question_print_no_events(const char *path, const struct mt_report *report, uint64_t device)
{
    const char *reason = not_analyzed_reason(report, device);

    if (reason)
        mt_message("'%s': device %llu is not analyzed: %s", path, (unsigned long long)device,
                   reason);
    else
        mt_message("'%s': device %llu has no events", path, (unsigned long long)device);
}

bool mt_question_refuses_device(uint64_t device)
{
    bool is_too_high = device >= MT_MAX_DEVICES && device != MT_EVERY_DEVICE;

    if (is_too_high)
        mt_message("device %llu is not analyzed: " ANALYZED, (unsigned long long)device);
    return is_too_high;
}

static int say_no_device(const struct mt_question_report *asked, uint64_t device)
{
    struct mt_buf line = {0};

    if (not_analyzed_reason(asked->report, device)) {
        mt_question_print_no_events(asked->path, asked->report, device);
        return MT_EXIT_USAGE;
    }
    for (uint32_t i = 0; i < asked->report->device_count; i++)
        mt_buf_printf(&line, "%s%u", i ? ", " : "", asked->report->devices[i].device);
    mt_message("'%s': device %llu has no events; devices of this trace: %s", asked->path,
               (unsigned long long)device, line.data ? line.data : "none");
    mt_buf_release(&line);
    return MT_EXIT_USAGE;
}

int mt_question_print_no_phase(const struct mt_question_report *asked, const char *phase)
{
    const struct mt_report *report = asked->report;
    const char **names = mt_memory_zeroed(2 * (size_t)report->phase_count + 1, sizeof *names);
    size_t count = 0;

    for (uint32_t i = 0; i < report->phase_count; i++) {
        names[count++] = report->phases[i].path;
        names[count++] = report->phases[i].name;
    }
    const char *near = count ? mt_did_you_mean(phase, names, count) : NULL;
    free(names);
    if (near)
        mt_message("'%s': no phase '%s'; did you mean '%s'?", asked->path, phase, near);
    else if (report->phase_count)
        mt_message(
            "'%s': no phase '%s'; 'memtrace analyze --json --all' lists the paths of all phases",
            asked->path, phase);
    else
        mt_message("'%s': no phase '%s': this trace has no phases", asked->path, phase);
    return MT_EXIT_USAGE;
}

/* Members of a trace, for messages. */
struct members {
    struct mt_strings paths;
    bool is_found;
};

enum { MAX_MEMBERS = 256, MAX_MEMBERS_TOLD = 12, MAX_MEMBER_COLUMNS = 40 };

static void add_members(struct members *members, const char *tag, const char *wanted)
{
    struct mt_settings object;

    while (!members->is_found && mt_tag_next_object(&tag, &object)) {
        members->is_found = mt_settings_find(&object, wanted) != NULL;
        for (size_t i = 0; i < object.count && members->paths.count < MAX_MEMBERS; i++) {
            uint32_t id;

            mt_strings_put(&members->paths, object.entries[i].path, strlen(object.entries[i].path),
                           &id);
        }
        mt_settings_release(&object);
    }
}

static void say_no_member(const struct members *members, const char *path, const char *member)
{
    const char *const *names = (const char *const *)members->paths.texts;
    const char *near = mt_did_you_mean(member, names, members->paths.count);
    struct mt_buf list = {0};

    for (uint32_t i = 0; i < members->paths.count && i < MAX_MEMBERS_TOLD; i++) {
        const size_t length = strlen(names[i]),
                     head = mt_text_head(names[i], length, MAX_MEMBER_COLUMNS);

        mt_buf_printf(&list, "%s%.*s%s", i ? ", " : "", (int)head, names[i],
                      head < length ? "..." : "");
    }
    if (near)
        mt_message("'%s': no tag has the member '%s'; did you mean '%s'?", path, member, near);
    else if (list.data)
        mt_message("'%s': no tag has the member '%s'; the members are %s%s", path, member,
                   list.data, members->paths.count > MAX_MEMBERS_TOLD ? ", ..." : "");
    else
        mt_message("'%s': no tag has the member '%s': no tag of this trace is a JSON object", path,
                   member);
    mt_buf_release(&list);
}

int mt_question_check_member(const struct mt_source *source, const char *path, const char *member)
{
    struct members members = {.is_found = false};

    if (!member)
        return -1;
    for (uint32_t i = 0; i < source->symbols.strings.count && !members.is_found; i++)
        add_members(&members, source->symbols.strings.texts[i], member);
    if (!members.is_found)
        say_no_member(&members, path, member);
    mt_strings_release(&members.paths);
    return members.is_found ? -1 : MT_EXIT_USAGE;
}

const char *mt_question_no_answer_text(enum mt_no_answer missing)
{
    switch (missing) {
    case MT_ANSWERED: break;
    case MT_NO_OOM: return "no request ran out of memory";
    case MT_NO_SUCH_PHASE: return "the phase does not exist";
    case MT_NOT_IN_HISTORY: return "the phase ended before the recorded history starts";
    case MT_BEYOND_END: return "the instant is after the last event";
    }
    return "";
}

int mt_question_check(const struct mt_question_report *asked, const struct mt_question *question,
                      uint64_t device)
{
    const struct mt_report *report = asked->report;
    enum mt_no_answer missing = MT_ANSWERED;
    bool told = false;

    if (report->is_dry_run && question->at == MT_AT_TIME)
        return mt_instant_option_print_no_times(asked->path);
    for (uint32_t i = 0; i < report->device_count; i++) {
        if (device != MT_EVERY_DEVICE && device != report->devices[i].device)
            continue;
        told = true;
        missing = report->devices[i].answer->missing;
        if (!missing)
            return mt_question_check_member(asked->source, asked->path, question->member);
    }
    if (!told)
        return device == MT_EVERY_DEVICE ? -1 : say_no_device(asked, device);
    if (missing == MT_NO_SUCH_PHASE)
        return mt_question_print_no_phase(asked, question->phase);
    mt_message("'%s': %s", asked->path, mt_question_no_answer_text(missing));
    return MT_EXIT_USAGE;
}
