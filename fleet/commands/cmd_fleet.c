/* memtrace fleet: the memory use of all ranks of a job. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fleet_annex.h"
#include "fleet_job.h"
#include "fleet_output.h"
#include "fleet_parts.h"
#include "fleet_processes.h"
#include "foreign_text.h"
#include "gather.h"
#include "job_chart.h"
#include "job_page.h"
#include "job_summary_md.h"
#include "outputs.h"
#include "picture_option.h"
#include "summary_file.h"
#include "summary_of_trace.h"

enum { MAX_COMMAND_BYTES = 1000 }; /* limit for a path in a command that the page shows */

struct arguments {
    struct mt_common common;
    struct mt_outputs outputs;
    struct mt_fleet_gate_options gates;
    const char *job, *mesh, *shard, *output, *junit;
    bool summarize, tune;
    uint64_t jobs;
    char **paths;
    int path_count;
};

struct run {
    const struct arguments *arguments;
    struct mt_fleet_files files;
    struct mt_fleet_gates gates;
    struct mt_rank_set set;
    struct mt_gather_failures failures;
    struct mt_job_settings *settings; /* with --tune */
    struct mt_exchange exchange;      /* with the other processes of mpirun */
    bool has_shared;                  /* no other process waits for this one */
    uint32_t share, share_count;
};

static int find_files(struct run *run)
{
    for (int i = 0; i < run->arguments->path_count; i++) {
        struct mt_error error = {.offset = MT_NO_OFFSET};
        const char *path = run->arguments->paths[i];
        enum mt_status status = mt_fleet_files_add(&run->files, path, &error);

        if (status != MT_OK) {
            error.status = status;
            return mt_report_error(path, &error);
        }
    }
    mt_fleet_files_sort(&run->files);
    if (run->files.count)
        return MT_EXIT_OK;
    mt_message("fleet: no trace, snapshot or summary is in '%s'; their names end with .trace, "
               ".trace.zst, .pickle, .pickle.zst or .mtsum",
               run->arguments->paths[0]);
    return MT_EXIT_INPUT;
}

static bool is_same_file(const char *path, const struct stat *output)
{
    struct stat facts;

    return stat(path, &facts) == 0 && facts.st_ino == output->st_ino &&
           facts.st_dev == output->st_dev;
}

/* Returns true if the output is the summary of this trace. */
static bool is_summary_of(const char *trace, const struct stat *output)
{
    struct mt_buf path = {0};

    mt_summary_add_path(&path, trace);
    bool is_same = is_same_file(path.data, output);
    mt_buf_release(&path);
    return is_same;
}

/* Refuses to replace an input, because the command may be a mistake, such as "fleet part*.mtsum -o
 * part1.mtsum". */
static int check_output_is_no_input(const struct run *run)
{
    const char *output = run->arguments->output;
    struct stat facts;

    if (!output || !mt_is_summary_name(output) || stat(output, &facts) != 0)
        return MT_EXIT_OK;
    for (uint32_t i = 0; i < run->files.count; i++)
        if (is_same_file(run->files.paths[i], &facts) ||
            (!mt_is_summary_name(run->files.paths[i]) &&
             is_summary_of(run->files.paths[i], &facts))) {
            mt_message("fleet: -o '%s' is one of the files to read, and would be replaced: name "
                       "another file",
                       output);
            return MT_EXIT_USAGE;
        }
    return MT_EXIT_OK;
}

/* With several processes, each reads a share and the first one collects all. */
static int read_files(struct run *run)
{
    const struct mt_exchange *exchange = &run->exchange;
    struct mt_fleet_reading reading = {.summarize = run->arguments->summarize,
                                       .force = run->arguments->outputs.force};
    const struct mt_gather gather = {.paths = run->files.paths,
                                     .path_count = run->files.count,
                                     .share = exchange->size > 1 ? exchange->rank : run->share,
                                     .share_count =
                                         exchange->size > 1 ? exchange->size : run->share_count,
                                     .threads = mt_fleet_threads(run->arguments->jobs),
                                     .load = mt_fleet_load,
                                     .context = &reading};
    struct mt_error error = {.offset = MT_NO_OFFSET, .text = "its results cannot be sent"};
    enum mt_status status = MT_OK;

    mt_gather_files(&gather, &run->set, &run->failures);
    if (exchange->size > 1)
        status = mt_reduce(exchange, &gather, &run->set, &run->failures, &error);
    run->has_shared = status == MT_OK;
    error.status = status;
    return status == MT_OK ? MT_EXIT_OK : mt_report_error(run->arguments->paths[0], &error);
}

static int write_set(struct run *run)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf bytes = {0};
    int code;

    if (mt_summary_encode(&run->set, &bytes, &error) != MT_OK)
        code = mt_report_output_error(run->arguments->output, &error);
    else
        code = mt_outputs_write(run->arguments->output, &run->arguments->outputs,
                                &mt_file_rank_summary, &bytes);
    mt_buf_release(&bytes);
    return code;
}

static int write_junit(struct run *run, const struct mt_job_report *report)
{
    struct mt_buf out = {0};

    mt_fleet_gates_junit(&out, &run->gates, report);
    int code =
        mt_outputs_write(run->arguments->junit, &run->arguments->outputs, &mt_file_junit, &out);
    mt_buf_release(&out);
    return code;
}

static int tune(struct run *run, const struct mt_job_report *report)
{
    const struct mt_fleet_tuning tuning = {report, &run->files, &run->arguments->common,
                                           run->arguments->jobs};

    return run->arguments->tune ? mt_fleet_tune(&tuning, &run->settings) : MT_EXIT_OK;
}

static int print(struct run *run, const struct mt_job_report *report);

/* -o DIR */
static const char *folder_of(const struct arguments *arguments)
{
    return arguments->output && !mt_is_summary_name(arguments->output) ? arguments->output : NULL;
}

/* "memtrace fleet traces/", if it is short enough to be copied. */
static const char *command_of(struct mt_arena *arena, const struct arguments *arguments)
{
    const char *path =
        arguments->path_count == 1 ? mt_shell_path(arena, arguments->paths[0]) : NULL;

    if (!path || strlen(path) > MAX_COMMAND_BYTES)
        return "memtrace fleet DIR";
    return mt_arena_printf(arena, "memtrace fleet %s", path);
}

struct fleet_folder {
    const char *directory;
    const struct mt_outputs *outputs;
    const char *command; /* the command that gave the answer: "memtrace fleet traces/" */
    bool is_quiet;       /* does not print the names of the files */
};

static int write_folder(struct run *run, const struct mt_job_report *report);

/* Returns the exit status of an answer. */
static int verdict_of(const struct run *run, const struct mt_job_report *report)
{
    if (run->gates.failed)
        return MT_EXIT_BUDGET;
    if (run->failures.count || (run->settings && run->settings->unreadable_count))
        return MT_EXIT_INPUT;
    if (run->arguments->common.strict && (report->missing_count || report->incomplete_count))
        return MT_EXIT_INCOMPLETE;
    return MT_EXIT_OK;
}

static int answer(struct run *run)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    const struct mt_fleet_naming naming = {.path = run->arguments->paths[0],
                                           .option = "job",
                                           .job = run->arguments->job,
                                           .mesh = run->arguments->mesh};
    struct mt_job_report *report = NULL;
    int code = mt_fleet_make_report(&run->set, &run->files, &run->failures, &naming, &report);

    if (code == MT_EXIT_OK)
        code = mt_fleet_gates_open_base(&run->gates, run->arguments->mesh, run->arguments->jobs);
    if (code == MT_EXIT_OK &&
        (error.status = mt_fleet_gates_check(&run->gates, report, &error)) != MT_OK)
        code = mt_report_error(run->arguments->paths[0], &error);
    if (code == MT_EXIT_OK) {
        mt_fleet_gates_describe(&run->gates, report);
        code = tune(run, report);
    }
    if (code == MT_EXIT_OK)
        code = print(run, report);
    if (code == MT_EXIT_OK && run->arguments->junit)
        code = write_junit(run, report);
    if (code == MT_EXIT_OK && folder_of(run->arguments))
        code = write_folder(run, report);
    if (code == MT_EXIT_OK)
        code = verdict_of(run, report);
    mt_job_settings_free(run->settings);
    mt_job_report_free(report);
    return code;
}

struct writing {
    const struct fleet_folder *folder;
    const struct mt_fleet_answer *answer;
    struct mt_job_document document;
    struct mt_buf names; /* names of the written files, one per line */
};

static struct mt_gallery_options gallery_options(const struct fleet_folder *folder)
{
    return (struct mt_gallery_options){
        .directory = folder->directory,
        .threads = 1,
        .rules = {mt_output_rules_of(folder->outputs, &mt_file_svg),
                  mt_output_rules_of(folder->outputs, &mt_file_png)}};
}

/* Checks that no chart would replace a file of the user. This must happen after the job is read,
 * because the report determines the charts, and before anything is written. */
static int check_charts(const struct writing *writing)
{
    const struct mt_gallery_options options = gallery_options(writing->folder);
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_gallery gallery = {.count = 0};
    const struct mt_pictures pictures = mt_job_pictures(writing->answer->report, &gallery.arena);
    int code = MT_EXIT_OK;

    if (mt_pictures_check(&pictures, &options, &gallery, &error) != MT_OK)
        code = mt_report_picture_errors(&gallery, writing->folder->directory, &error);
    mt_gallery_release(&gallery);
    return code;
}

enum { FLEET_JSON, SUMMARY_MD, JUNIT_XML, REPORT_HTML };

static bool is_json(const void *start, size_t length)
{
    return mt_file_begins_json(start, length, "{\"schema\":\"memtrace.fleet/");
}

static const struct mt_file_kind json_kind = {.name = "a JSON document by memtrace fleet",
                                              .is_own = is_json};

static bool is_summary(const void *start, size_t length)
{
    return mt_file_begins(start, length, "### memtrace fleet: ");
}

static const struct mt_file_kind summary_kind = {.name = "a summary by memtrace fleet",
                                                 .is_own = is_summary};

static bool is_page(const void *start, size_t length)
{
    return mt_file_has_title(start, length, "\n<title>memtrace fleet: ");
}

static const struct mt_file_kind page_kind = {.name = "a page by memtrace fleet",
                                              .is_own = is_page};

static const struct {
    const char *name;
    const struct mt_file_kind *kind;
} documents[] = {
    [FLEET_JSON] = {"fleet.json", &json_kind},
    [SUMMARY_MD] = {"summary.md", &summary_kind},
    [JUNIT_XML] = {"junit.xml", &mt_file_junit},
    [REPORT_HTML] = {"report.html", &page_kind},
};

/* Writes DIR/NAME, adds its name and releases the bytes. */
static int write_document(struct writing *writing, size_t which, struct mt_buf *bytes)
{
    struct mt_buf path = {0};

    mt_outputs_add_path(&path, writing->folder->directory, documents[which].name);
    int code = mt_outputs_write(path.data, writing->folder->outputs, documents[which].kind, bytes);
    mt_buf_add_text(&writing->names, "  ");
    mt_buf_add_printable(&writing->names, path.data, path.length);
    mt_buf_add_char(&writing->names, '\n');
    mt_buf_release(&path);
    mt_buf_release(bytes);
    return code;
}

static int write_page(struct writing *writing)
{
    struct mt_buf page = {0};

    mt_job_page_add(&page, &writing->document);
    return write_document(writing, REPORT_HTML, &page);
}

static int write_documents(struct writing *writing)
{
    const struct mt_fleet_answer *answer = writing->answer;
    struct mt_buf bytes = {0};

    mt_fleet_json(&bytes, answer);
    int code = write_document(writing, FLEET_JSON, &bytes);
    if (code == MT_EXIT_OK) {
        mt_job_summary_add(&bytes, &writing->document);
        code = write_document(writing, SUMMARY_MD, &bytes);
    }
    if (code == MT_EXIT_OK && answer->gates->rules.is_given) {
        mt_fleet_gates_junit(&bytes, answer->gates, answer->report);
        code = write_document(writing, JUNIT_XML, &bytes);
    }
    return code == MT_EXIT_OK ? write_page(writing) : code;
}

static int write_charts(struct writing *writing)
{
    const struct mt_gallery_options options = gallery_options(writing->folder);
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_gallery gallery = {.count = 0};
    const struct mt_pictures pictures = mt_job_pictures(writing->answer->report, &gallery.arena);
    int code = MT_EXIT_OK;

    if (mt_pictures_write(&pictures, &options, &gallery, &error) != MT_OK)
        code = mt_report_picture_errors(&gallery, writing->folder->directory, &error);
    else
        mt_add_picture_names(&writing->names, &gallery);
    if (code == MT_EXIT_OK && gallery.count)
        mt_picture_add_no_png(&writing->names, &gallery.no_png);
    mt_gallery_release(&gallery);
    return code;
}

/* Writes all files. Prints errors; returns enum mt_exit. */
static int fleet_folder_write(const struct fleet_folder *folder,
                              const struct mt_fleet_answer *answer)
{
    struct writing writing = {.folder = folder,
                              .answer = answer,
                              .document = {.report = answer->report,
                                           .gates = answer->gates->list,
                                           .gate_count = answer->gates->count,
                                           .failed_count = answer->gates->failed,
                                           .skipped_count = answer->gates->skipped,
                                           .command = folder->command}};
    int code = check_charts(&writing);

    mt_buf_add_text(&writing.names, "\nFiles\n");
    if (code == MT_EXIT_OK)
        code = write_documents(&writing);
    if (code == MT_EXIT_OK)
        code = write_charts(&writing);
    if (code == MT_EXIT_OK && !folder->is_quiet)
        code = mt_print_answer(&writing.names, false);
    mt_buf_release(&writing.names);
    return code;
}

static int write_folder(struct run *run, const struct mt_job_report *report)
{
    const struct arguments *arguments = run->arguments;
    struct mt_arena arena = {0};
    const struct mt_fleet_answer answer = {report, &run->gates, &arena, arguments->common.all,
                                           run->settings};
    const struct fleet_folder folder = {.directory = arguments->output,
                                        .outputs = &arguments->outputs,
                                        .command = command_of(&arena, arguments),
                                        .is_quiet = arguments->common.json};
    int code = fleet_folder_write(&folder, &answer);

    mt_arena_release(&arena);
    return code;
}

static int print(struct run *run, const struct mt_job_report *report)
{
    struct mt_arena arena = {0};
    const struct mt_fleet_answer answer = {report, &run->gates, &arena, run->arguments->common.all,
                                           run->settings};
    struct mt_buf out = {0};

    if (run->arguments->common.json)
        mt_fleet_json(&out, &answer);
    else
        mt_fleet_text(&out, &answer, mt_stdout_style());
    mt_arena_release(&arena);
    return mt_print_answer_and_release(&out, run->arguments->common.json);
}

static int fleet(struct run *run)
{
    int code = find_files(run);

    if (code == MT_EXIT_OK)
        code = check_output_is_no_input(run);
    if (code == MT_EXIT_OK)
        code = read_files(run);
    if (code != MT_EXIT_OK || run->exchange.rank)
        return code;
    mt_fleet_print_failures(&run->files, &run->failures, run->arguments->common.all);
    if (!run->set.record_count && !run->arguments->shard) {
        mt_message(
            "fleet: no file has a record of a rank: either none was read, or no process used a "
            "device");
        return MT_EXIT_INPUT;
    }
    if (run->arguments->output && !folder_of(run->arguments))
        code = write_set(run);
    if (code != MT_EXIT_OK)
        return code;
    if (run->arguments->shard)
        return run->failures.count ? MT_EXIT_INPUT : MT_EXIT_OK;
    return answer(run);
}

/* Reads "3/64": the third of 64 shares. */
static bool read_shard(struct run *run)
{
    const char *text = run->arguments->shard;
    char *end;

    run->share_count = 1;
    if (!text)
        return true;
    unsigned long number = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '/' || end[1] < '0' || end[1] > '9')
        return false;
    unsigned long count = strtoul(end + 1, &end, 10);
    if (*end || !number || number > count || count > UINT32_MAX)
        return false;
    run->share = (uint32_t)number - 1;
    run->share_count = (uint32_t)count;
    return true;
}

static int check(struct run *run)
{
    const struct arguments *arguments = run->arguments;

    if (!read_shard(run)) {
        mt_message(
            "fleet: --shard needs the number of a part and the number of parts, such as 3/64; the "
            "first part is 1");
        return MT_EXIT_USAGE;
    }
    if (arguments->shard && (!arguments->output || folder_of(arguments))) {
        mt_message(
            "fleet: --shard needs -o FILE.mtsum; afterwards, 'memtrace fleet' reads the files "
            "of all "
            "shards");
        return MT_EXIT_USAGE;
    }
    if (arguments->shard && arguments->tune) {
        mt_message(
            "fleet: --tune needs all ranks: use it in the command that reads the summaries of all "
            "shards");
        return MT_EXIT_USAGE;
    }
    if (mt_outputs_is_standard(arguments->output)) {
        mt_message(
            "fleet: -o needs a folder or FILE.mtsum; to write to standard output, use --json");
        return MT_EXIT_USAGE;
    }
    return mt_fleet_gates_read(&run->gates, &arguments->gates);
}

/* Prints which of the user's files would be overwritten. Call it before anything is read. Returns
 * enum mt_exit. */
static int fleet_folder_precheck(const char *directory, const struct mt_outputs *outputs,
                                 bool has_gates)
{
    int code = MT_EXIT_OK;

    for (size_t i = 0; i < MT_ARRAY_LEN(documents) && code == MT_EXIT_OK; i++) {
        struct mt_buf path = {0};

        if (i == JUNIT_XML && !has_gates)
            continue; /* this file is not written */
        mt_outputs_add_path(&path, directory, documents[i].name);
        code = mt_output_precheck(path.data, outputs, documents[i].kind);
        mt_buf_release(&path);
    }
    return code;
}

static int precheck(const struct run *run)
{
    const struct arguments *arguments = run->arguments;
    int code = MT_EXIT_OK;

    if (folder_of(arguments))
        code = fleet_folder_precheck(arguments->output, &arguments->outputs,
                                     run->gates.rules.is_given);
    else if (arguments->output)
        code = mt_output_precheck(arguments->output, &arguments->outputs, &mt_file_rank_summary);
    if (code == MT_EXIT_OK && arguments->junit)
        code = mt_output_precheck(arguments->junit, &arguments->outputs, &mt_file_junit);
    return code;
}

int mt_cmd_fleet(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.jobs = 0};
    struct run run = {.arguments = &arguments};
    const struct mt_option options[] = {
        {"job", 0, MT_OPTION_TEXT, "NAME", "the job to analyze, if the files are of several jobs",
         &arguments.job},
        {"mesh", 0, MT_OPTION_TEXT, "AXES",
         "names and sizes of the axes of the job: pp:8,dp:32,tp:8", &arguments.mesh},
        MT_FLEET_GATE_OPTIONS(arguments.gates),
        {"junit", 0, MT_OPTION_TEXT, "FILE",
         "write rules as JUnit XML, one case per rule and group", &arguments.junit},
        {"summarize", 0, MT_OPTION_FLAG, NULL, "write TRACE.mtsum beside each trace that has none",
         &arguments.summarize},
        {"tune", 0, MT_OPTION_FLAG, NULL,
         "replay traces to find one allocator setting for all ranks", &arguments.tune},
        {"shard", 0, MT_OPTION_TEXT, "I/N",
         "read only part I of N of the files; needs -o FILE.mtsum", &arguments.shard},
        {"output", 'o', MT_OPTION_TEXT, "OUT",
         "write a page, charts and JSON to this folder; if OUT ends in .mtsum, write one summary",
         &arguments.output},
        {"jobs", 'j', MT_OPTION_POSITIVE, "N", "read at most N files at the same time",
         &arguments.jobs},
        MT_FORCE_OPTION(arguments.outputs),
        MT_ALL_OPTION(arguments.common),
        MT_COMMON_OPTIONS_WITH(arguments.common, "print one JSON document",
                               "exit with 5 if ranks are missing or a trace is incomplete"),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};

    if (argc > 1 && !strcmp(argv[1], "diff"))
        return mt_fleet_diff(argc - 1, argv + 1);
    int code = mt_options_parse(command, options, argc, argv, 1, INT_MAX, &arguments.paths,
                                &arguments.path_count);
    if (code >= 0)
        return code;
    code = check(&run);
    if (code == MT_EXIT_OK)
        code = mt_fleet_processes_begin(&run.exchange);
    if (code == MT_EXIT_OK && run.exchange.size > 1 && arguments.shard) {
        mt_message("fleet: MPI processes already share the files: omit --shard");
        code = MT_EXIT_USAGE;
    }
    if (code == MT_EXIT_OK && !run.exchange.rank)
        code = precheck(&run);
    if (code == MT_EXIT_OK)
        code = fleet(&run);
    mt_fleet_processes_end(&run.exchange, run.has_shared, code);
    mt_fleet_gates_release(&run.gates);
    mt_gather_failures_release(&run.failures);
    mt_rank_set_release(&run.set);
    mt_fleet_files_release(&run.files);
    return code;
}

/* Writes the folder of `memtrace fleet -o DIR`: report.html, fleet.json, summary.md, junit.xml if
 * there are gates, and the charts that are useful for the job. */
