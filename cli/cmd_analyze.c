/* memtrace analyze: the whole report of one trace. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze.h"
#include "analyze_output.h"
#include "ascii.h"
#include "backends.h"
#include "buf.h"
#include "cli.h"
#include "debug.h"
#include "device_choice.h"
#include "diff_run.h"
#include "draw.h"
#include "file_hash.h"
#include "gallery.h"
#include "gate_output.h"
#include "gate_run.h"
#include "io.h"
#include "junit.h"
#include "outputs.h"
#include "picture_option.h"
#include "policy_runs.h"
#include "question_report.h"
#include "report_html.h"
#include "safe_path.h"
#include "screen.h"
#include "summary_md.h"
#include "text_chart.h"
#include "util.h"

/* `analyze --open`: shows report.html in a browser. */

#define FOLDER_PREFIX "report-"

/* Appends the folder for the page if there is no -o: report-NAME in the user's cache folder, where
 * NAME is the file name of the trace. The page of another trace with the same file name replaces an
 * earlier page. Returns -1, or the exit code after an error message. */
static int open_page_add_folder(struct mt_buf *folder, const char *trace)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    const char *name = mt_base_name(trace);
    struct mt_cache cache;

    if (mt_cache_open(NULL, &cache, &error) != MT_OK) {
        mt_message("--open needs a folder for the page: use -o DIR");
        return MT_EXIT_OUTPUT;
    }
    mt_cache_close(&cache);
    mt_buf_printf(folder, "%s/" FOLDER_PREFIX "%.*s", cache.path,
                  NAME_MAX - (int)(sizeof FOLDER_PREFIX - 1),
                  strcmp(name, "-") == 0 ? "stdin" : name);
    return -1;
}

static bool is_program(const char *path)
{
    return mt_io_is_file(path) && access(path, X_OK) == 0;
}

/* Sets `path` to the path of a program in $PATH. Returns false if there is none. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH"), *end;

    for (; at && *at; at = *end ? end + 1 : end) {
        int length = (int)(strcspn(at, ":"));

        end = at + length;
        if (length && snprintf(path, PATH_MAX, "%.*s/%s", length, at, name) < PATH_MAX &&
            is_program(path))
            return true;
    }
    return false;
}

/* Finds the program that shows the page: $BROWSER, which is a name or a path, otherwise the program
 * that opens files on this desktop. */
static bool find_browser(char path[PATH_MAX])
{
    static const char *const openers[] = {"xdg-open", "open", "wslview"};
    const char *told = getenv("BROWSER");

    if (told && *told) {
        if (strchr(told, '/'))
            return snprintf(path, PATH_MAX, "%s", told) < PATH_MAX && is_program(path);
        return find_program(told, path);
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(openers); i++)
        if (find_program(openers[i], path))
            return true;
    return false;
}

/* Returns true if there is a display, or if $BROWSER is set. Without both, xdg-open starts a text
 * browser or hangs. */
static bool has_display(void)
{
    const char *told = getenv("BROWSER"), *x11 = getenv("DISPLAY"),
               *wayland = getenv("WAYLAND_DISPLAY"), *wsl = getenv("WSL_DISTRO_NAME");

    return (told && *told) || (x11 && *x11) || (wayland && *wayland) || (wsl && *wsl);
}

/* Runs in the child process. Ignores and blocks no signal, and connects the standard streams to
 * /dev/null. Starts a new session, so that Ctrl-C in the terminal does not close the browser. */
static void set_state(void)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    sigaction(SIGPIPE, &usual, NULL);
    sigaction(SIGXFSZ, &usual, NULL);
    setsid();
    for (int fd = 0; fd < 3 && nothing >= 0; fd++)
        dup2(nothing, fd);
}

/* The child that starts the browser ends at once, so that no zombie is left. The pipe closes when
 * the browser runs; before that, the reason why it does not run is written to it. */
static void start_in_child(const char *browser, const char *page, int report)
{
    char *words[] = {(char *)browser, (char *)page, NULL};
    pid_t grandchild = fork();

    if (grandchild > 0)
        _exit(0);
    if (grandchild == 0) {
        set_state();
        execv(browser, words);
    }
    int why = errno;
    (void)!write(report, &why, sizeof why);
    _exit(127);
}

/* Returns 0, or the errno of why the browser does not run. */
static int start(const char *browser, const char *page)
{
    int report[2], why = 0;
    ssize_t length;

    if (pipe(report) != 0)
        return errno;
    (void)fcntl(report[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(report[1], F_SETFD, FD_CLOEXEC);
    pid_t child = fork();
    if (child == 0)
        start_in_child(browser, page, report[1]);
    if (child < 0)
        why = errno;
    close(report[1]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    do
        length = child > 0 ? read(report[0], &why, sizeof why) : 0;
    while (length < 0 && errno == EINTR);
    close(report[0]);
    return why;
}

/* Appends the absolute path of the page: a browser would read "-x" as an option and "a:b" as a
 * URL. */
static void add_page(struct mt_buf *page, const char *folder)
{
    char here[PATH_MAX];

    if (*folder != '/' && getcwd(here, sizeof here)) {
        mt_buf_add_text(page, here);
        mt_buf_add_text(page, strcmp(here, "/") == 0 ? "" : "/");
    }
    mt_outputs_add_path(page, folder, "report.html");
}

/* Starts a browser for FOLDER/report.html and does not wait for it. The browser is $BROWSER,
 * otherwise xdg-open, open or wslview if there is a display. Its argument is an absolute path, and
 * no shell interprets it. The browser inherits the environment, but not the terminal, descriptors
 * or ignored signals. Prints the path, or why nothing was opened. A failure is not an error of the
 * command. */
static void open_page(const char *folder)
{
    char browser[PATH_MAX];
    struct mt_buf page = {0};
    int why;

    add_page(&page, folder);
    if (!has_display())
        mt_message("no display, so no browser was started; the page is '%s'", page.data);
    else if (!find_browser(browser))
        mt_message("no browser was found; set BROWSER to a program. The page is '%s'", page.data);
    else if ((why = start(browser, page.data)) != 0)
        mt_message("cannot start '%s': %s; the page is '%s'", browser, strerror(why), page.data);
    else
        mt_message("opened '%s'", page.data);
    mt_buf_release(&page);
}

/* Pictures of `analyze -o DIR` that need more data than the report of the trace. */

struct extra_pictures {
    const char *directory, *path; /* directory: for the pictures; path: of the trace */
    const char *base;             /* trace for a comparison; NULL = none */
    const struct mt_common *common;
    const struct mt_outputs *outputs;
};

/* DIR/NAME.svg or DIR/NAME.png. */
static void add_path(struct mt_buf *path, const struct extra_pictures *pictures, const char *name,
                     bool is_png)
{
    mt_outputs_add_path(path, pictures->directory, name);
    mt_buf_add_text(path, is_png ? ".png" : ".svg");
}

static int precheck_both(const struct extra_pictures *pictures, const char *name)
{
    int code = MT_EXIT_OK, i;

    for (i = 0; i <= mt_png_available(NULL) && !code; i++) {
        struct mt_picture picture = {.is_png = i, .outputs = pictures->outputs};
        struct mt_buf path = {0};

        add_path(&path, pictures, name, i);
        picture.output = path.data;
        code = mt_picture_precheck(&picture);
        mt_buf_release(&path);
    }
    return code;
}

/* Writes both forms, if this program supports PNG. */
static int write_both(const struct extra_pictures *pictures, const char *name,
                      const struct mt_drawing *drawing, struct mt_buf *names)
{
    size_t bytes;
    int code = MT_EXIT_OK, i;

    for (i = 0; i <= mt_png_available(NULL) && !code; i++) {
        struct mt_picture picture = {.is_png = i, .outputs = pictures->outputs};
        struct mt_buf path = {0};

        add_path(&path, pictures, name, i);
        picture.output = path.data ? path.data : "";
        code = mt_picture_write(&picture, drawing, &bytes);
        if (!code && !i) {
            mt_buf_add_text(names, "  ");
            mt_buf_add_printable(names, path.data, path.length);
        }
        mt_buf_release(&path);
    }
    if (!code)
        mt_buf_add_text(names, mt_png_available(NULL) ? " and .png\n" : "\n");
    return code;
}

static int write_diff(const struct extra_pictures *pictures, struct mt_buf *names)
{
    const struct mt_question at_peak = {.at = MT_AT_PEAK};
    const struct mt_diff_request request = {
        .a = pictures->base, .b = pictures->path, .question = &at_peak, .device = MT_EVERY_DEVICE};
    struct mt_drawing drawing;
    struct mt_diff_run run;
    int code = mt_diff_run_open(&request, pictures->common, &run);

    if (code < 0) {
        mt_diff_run_draw(&run, &at_peak, NULL, &drawing);
        code = write_both(pictures, "diff", &drawing, names);
        mt_drawing_release(&drawing);
    }
    mt_diff_run_close(&run);
    return code;
}

/* Prints which pictures cannot be written. Call it before the analysis. Returns enum mt_exit. */
static int extra_pictures_precheck(const struct extra_pictures *pictures)
{
    if (!pictures->base || !strcmp(pictures->path, "-"))
        return MT_EXIT_OK;
    return precheck_both(pictures, "diff");
}

/* Writes the pictures and appends their names to `names`. Prints errors; returns enum mt_exit. */
static int extra_pictures_write(const struct extra_pictures *pictures, struct mt_buf *names)
{
    if (!pictures->base)
        return MT_EXIT_OK;
    if (strcmp(pictures->path, "-") != 0)
        return write_diff(pictures, names);
    if (!pictures->common->quiet)
        mt_message("standard input cannot be read a second time: no picture of the difference");
    return MT_EXIT_OK;
}

struct arguments {
    struct mt_common common;
    struct mt_gate_options gates;
    struct mt_outputs outputs;
    const char *directory, *policy;
    uint64_t limit_bytes;
    bool unnamed, all, opens;
};

static bool shows_chart(const struct arguments *arguments)
{
    return !arguments->common.json && arguments->all;
}

static struct mt_analyze_options options_of(const struct arguments *arguments, const char *path)
{
    struct mt_analyze_options options = {.path = path, .needs = true, .models = MT_MODEL_MODULES};

    options.replay.policy = arguments->policy;
    options.replay.limit_bytes = arguments->limit_bytes;
    options.only_shown = arguments->directory && !shows_chart(arguments);
    if (arguments->directory) {
        options.models |= mt_charts_models() | mt_report_html_models();
    } else if (shows_chart(arguments)) {
        options.models |= MT_MODEL_TIMELINE;
        options.bins = MT_TEXT_CHART_BINS;
    }
    return options;
}

/* Files that -o writes in addition to pictures. */
static const struct {
    const char *name;
    const struct mt_file_kind *kind;
} documents[] = {
    {"report.json", &mt_file_report},
    {"summary.md", &mt_file_summary},
    {"junit.xml", &mt_file_junit},
    {"report.html", &mt_file_page},
};

enum { REPORT_JSON, SUMMARY_MD, JUNIT_XML, REPORT_HTML };

static struct extra_pictures extra_pictures(const struct arguments *arguments, const char *trace,
                                            const char *base)
{
    return (struct extra_pictures){arguments->directory, trace, base, &arguments->common,
                                   &arguments->outputs};
}

/* Checks before the analysis that the command may write its files. */
static int precheck_files(const struct arguments *arguments, const char *trace,
                          const struct mt_gate_run *run)
{
    bool is_as_recorded = !arguments->policy && !arguments->limit_bytes;
    const struct extra_pictures extra =
        extra_pictures(arguments, trace, is_as_recorded ? run->base_trace : NULL);
    int code = arguments->directory ? extra_pictures_precheck(&extra) : MT_EXIT_OK;

    for (size_t i = 0; arguments->directory && i < MT_ARRAY_LEN(documents) && !code; i++) {
        struct mt_buf path = {0};

        if (i == JUNIT_XML && !run->rules.count)
            continue; /* is not written */
        mt_outputs_add_path(&path, arguments->directory, documents[i].name);
        code = mt_output_precheck(path.data, &arguments->outputs, documents[i].kind);
        mt_buf_release(&path);
    }
    return code;
}

/* Writes DIR/NAME and, if that succeeds, appends its path to `names`. */
static int write_document(const struct arguments *arguments, size_t which,
                          const struct mt_buf *document, struct mt_buf *names)
{
    struct mt_buf path = {0};

    mt_outputs_add_path(&path, arguments->directory, documents[which].name);
    int code = mt_outputs_write(path.data, &arguments->outputs, documents[which].kind, document);
    if (!code) {
        mt_buf_add_text(names, "  ");
        mt_buf_add_printable(names, path.data, path.length);
        mt_buf_add_char(names, '\n');
    }
    mt_buf_release(&path);
    return code;
}

/* Writes the page, which contains the whole answer without colors. */
static int write_page(const struct mt_report *report, const struct mt_gate_run *run,
                      const struct arguments *arguments, struct mt_buf *names)
{
    struct mt_report_html page = {.report = report, .gates = mt_gate_run_gates(run)};
    struct mt_buf answer = {0}, document = {0};

    mt_analyze_text(&answer, report, mt_plain_style(), NULL, true);
    page.answer = answer.data;
    mt_report_html_add(&document, &page);
    int code = write_document(arguments, REPORT_HTML, &document, names);
    mt_buf_release(&answer);
    mt_buf_release(&document);
    return code;
}

static int write_documents(const struct mt_report *report, const struct mt_gate_run *run,
                           const struct arguments *arguments, struct mt_buf *names)
{
    const struct mt_gates *gates = mt_gate_run_gates(run);
    struct mt_buf document = {0};

    mt_analyze_json(&document, report, gates, arguments->all);
    int code = write_document(arguments, REPORT_JSON, &document, names);
    mt_buf_reset(&document);
    mt_summary_md_add(&document, report, gates, mt_gate_run_base(run));
    if (!code)
        code = write_document(arguments, SUMMARY_MD, &document, names);
    mt_buf_reset(&document);
    if (gates)
        mt_junit_add(&document, report, gates);
    if (!code && gates)
        code = write_document(arguments, JUNIT_XML, &document, names);
    mt_buf_release(&document);
    return code ? code : write_page(report, run, arguments, names);
}

static void name_pictures(struct mt_buf *out, const struct mt_report *report,
                          const struct mt_gallery *gallery)
{
    const size_t before = out->length;

    mt_add_picture_names(out, gallery);
    if (out->length == before)
        return; /* what follows is about the pictures */
    if (gallery->devices_omitted)
        mt_buf_printf(out,
                      "  (pictures show %u of %u devices: %s; for another device use 'memtrace "
                      "render CHART TRACE -o FILE.svg --device N')\n",
                      gallery->devices, gallery->devices + gallery->devices_omitted,
                      mt_device_choice_text(report));
    mt_picture_add_no_png(out, &gallery->no_png);
}

static struct mt_gallery_options gallery_options(const struct arguments *arguments)
{
    return (struct mt_gallery_options){
        .directory = arguments->directory,
        .rules = {mt_output_rules_of(&arguments->outputs, &mt_file_svg),
                  mt_output_rules_of(&arguments->outputs, &mt_file_png)}};
}

/* The report determines which pictures are written, so this check runs after the analysis and
 * before anything is written. */
static int check_pictures(const struct mt_report *report, const struct arguments *arguments)
{
    const struct mt_gallery_options options = gallery_options(arguments);
    struct mt_gallery gallery;
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = MT_EXIT_OK;

    if (mt_gallery_check(report, &options, &gallery, &error) != MT_OK)
        for (size_t i = 0; i < gallery.count && !code; i++)
            if (gallery.files[i].status)
                code = mt_report_output_error(gallery.files[i].path, &error);
    if (error.status && !code)
        code = mt_report_output_error(arguments->directory, &error);
    mt_gallery_release(&gallery);
    return code;
}

#define FILES_HEADING "\nFiles\n"

/* The files of -o. */
struct writing {
    const struct mt_report *report;
    const struct mt_gate_run *run;
    const struct arguments *arguments;
    struct mt_progress progress;
    struct mt_buf names;
    int documents; /* enum mt_exit */
};

static void show_drawing(void *context, double share)
{
    struct writing *writing = context;

    mt_progress_update(&writing->progress, "drawing", share);
}

static void write_documents_meanwhile(void *context)
{
    struct writing *writing = context;

    writing->documents =
        write_documents(writing->report, writing->run, writing->arguments, &writing->names);
}

/* Writes the pictures and, on the thread that waits for them, the documents. */
static int write_all(struct writing *writing)
{
    const char *directory = writing->arguments->directory;
    struct mt_gallery_options options = gallery_options(writing->arguments);
    struct mt_gallery gallery;
    struct mt_error error = {.offset = MT_NO_OFFSET};

    options.progress = show_drawing;
    options.meanwhile = write_documents_meanwhile;
    options.context = writing;
    enum mt_status status = mt_gallery_write(writing->report, &options, &gallery, &error);
    mt_progress_end(&writing->progress);
    int code = writing->documents;
    if (!code && status != MT_OK)
        code = mt_report_picture_errors(&gallery, directory, &error);
    name_pictures(&writing->names, writing->report, &gallery);
    mt_gallery_release(&gallery);
    return code;
}

/* Writes the documents and the pictures, and prints their names. */
static int write_files(const struct mt_report *report, const struct mt_gate_run *run,
                       const struct arguments *arguments)
{
    /* a base is compared only with the recorded run */
    const struct extra_pictures extra =
        extra_pictures(arguments, report->path, report->what_if ? NULL : run->base_trace);
    struct writing writing = {.report = report, .run = run, .arguments = arguments};
    int code = check_pictures(report, arguments);

    mt_progress_start(&writing.progress, arguments->common.quiet);
    mt_buf_add_text(&writing.names, FILES_HEADING);
    if (!code) {
        code = write_all(&writing);
        if (!code)
            code = extra_pictures_write(&extra, &writing.names);
        /* if one could not be written, names the others */
        if (!arguments->common.json && writing.names.length > sizeof FILES_HEADING - 1) {
            int printed = mt_print_answer(&writing.names, false);

            code = code ? code : printed;
        }
    }
    mt_buf_release(&writing.names);
    return code;
}

static int print_result(const struct mt_report *report, const struct mt_gates *gates,
                        const struct arguments *arguments)
{
    const struct mt_screen screen = mt_stdout_screen();
    struct mt_buf out = {0};

    if (gates && !arguments->common.json)
        mt_gates_add_text(&out, gates, mt_stdout_style());
    if (arguments->common.json)
        mt_analyze_json(&out, report, gates, arguments->all);
    else
        mt_analyze_text(&out, report, mt_stdout_style(), shows_chart(arguments) ? &screen : NULL,
                        arguments->all);
    return mt_print_answer_and_release(&out, arguments->common.json);
}

/* Prints gates and answer, and writes files. The first failure determines the exit code. */
static int report_all(struct mt_source *source, const struct mt_report *report,
                      struct mt_gate_run *run, const struct arguments *arguments)
{
    int checked = mt_gate_run_check(run, &arguments->gates, source, report, arguments->policy);
    int told = print_result(report, mt_gate_run_gates(run), arguments), written = MT_EXIT_OK;

    if (arguments->directory)
        written = write_files(report, run, arguments);
    if (arguments->opens && !written)
        open_page(arguments->directory);
    return checked ? checked : told ? told : written;
}

/* Whether an output shows the hash of the trace. */
static bool shows_hash(const struct arguments *arguments)
{
    return arguments->common.json || arguments->directory || arguments->gates.write_baseline;
}

/* Takes the result of `hashing`, unless that is NULL. */
static int analyze(struct mt_source *source, const char *path, struct mt_gate_run *run,
                   const struct arguments *arguments, struct mt_file_hashing *hashing)
{
    const struct mt_analyze_options options = options_of(arguments, path);
    struct mt_report *report = NULL;
    struct mt_error error;

    source->overlay.hides_ranges = arguments->unnamed;
    enum mt_status status =
        mt_analyze_with_progress(source, &options, arguments->common.quiet, &report, &error);
    if (hashing && status)
        mt_file_hash_cancel(hashing);
    else if (hashing)
        status = mt_file_hash_end(hashing, report->sha256, &error);
    if (status) {
        mt_report_release(report);
        return mt_policy_error(path, arguments->policy, &error);
    }
    mt_debug_passes(report);
    int code = report_all(source, report, run, arguments);
    code = mt_answer_verdict(code, source, path, &arguments->common);
    mt_report_release(report);
    return code ? code : mt_gate_run_verdict(run);
}

/* The hash of the file begins before the input is opened: most of that takes one thread. */
static int open_and_analyze(const char *path, struct mt_gate_run *run,
                            const struct arguments *arguments)
{
    const bool hashes = shows_hash(arguments);
    struct mt_file_hashing hashing;
    int code = MT_EXIT_OK;

    if (hashes)
        mt_file_hash_begin(&hashing, path);
    struct mt_source *source = mt_open_input(path, &arguments->common, &code);
    if (source)
        code = analyze(source, path, run, arguments, hashes ? &hashing : NULL);
    else if (hashes)
        mt_file_hash_cancel(&hashing);
    mt_source_close(source);
    return code;
}

int mt_cmd_analyze(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {.directory = NULL};
    const struct mt_option options[] = {
        {"output", 'o', MT_OPTION_TEXT, "DIR",
         "write report.html, report.json, summary.md and pictures to DIR", &arguments.directory},
        {"open", 0, MT_OPTION_FLAG, NULL,
         "show report.html in a browser; without -o it is in the cache folder", &arguments.opens},
        MT_FORCE_OPTION(arguments.outputs),
        {"policy", 0, MT_OPTION_TEXT, "P", "simulate this allocator instead of the recorded one",
         &arguments.policy},
        MT_LIMIT_OPTION(&arguments.limit_bytes, "simulate a device with this much memory"),
        {"all", 'a', MT_OPTION_FLAG, NULL,
         "print the reasons and tables, not only the first screen", &arguments.all},
        {"unnamed", 0, MT_OPTION_FLAG, NULL, "ignore recorded ranges and infer phases",
         &arguments.unnamed},
        MT_GATE_OPTIONS(arguments.gates),
        MT_STRICT_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    struct mt_buf folder = {0};
    struct mt_gate_run run;
    char **paths;
    int count;

    int code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &count);
    if (code >= 0)
        return code;
    arguments.gates.outputs = &arguments.outputs;
    arguments.gates.strict = arguments.common.strict;
    mt_outputs_add_input(&arguments.outputs, paths[0]);
    if (arguments.opens && !arguments.directory) {
        code = open_page_add_folder(&folder, paths[0]);
        if (code >= 0) {
            mt_buf_release(&folder);
            return code;
        }
        arguments.directory = folder.data;
    }
    code = mt_gate_run_open(&run, &arguments.gates, &arguments.common);
    if (!code)
        code = precheck_files(&arguments, paths[0], &run);
    if (!code)
        code = open_and_analyze(paths[0], &run, &arguments);
    mt_gate_run_release(&run);
    mt_buf_release(&folder);
    return code;
}
