#include "fleet_folder.h"

#include <string.h>

#include "job_chart.h"
#include "job_page.h"
#include "job_summary_md.h"
#include "picture_option.h"

static bool is_json(const void *start, size_t length)
{
    return mt_file_begins_json(start, length, "{\"schema\":\"memtrace.fleet/");
}

static bool is_page(const void *start, size_t length)
{
    return mt_file_has_title(start, length, "\n<title>memtrace fleet: ");
}

static bool is_summary(const void *start, size_t length)
{
    return mt_file_begins(start, length, "### memtrace fleet: ");
}

static const struct mt_file_kind json_kind = {.name = "a JSON document by memtrace fleet",
                                              .is_own = is_json};
static const struct mt_file_kind page_kind = {.name = "a page by memtrace fleet",
                                              .is_own = is_page};
static const struct mt_file_kind summary_kind = {.name = "a summary by memtrace fleet",
                                                 .is_own = is_summary};

enum { FLEET_JSON, SUMMARY_MD, JUNIT_XML, REPORT_HTML };

static const struct {
    const char *name;
    const struct mt_file_kind *kind;
} documents[] = {
    [FLEET_JSON] = {"fleet.json", &json_kind},
    [SUMMARY_MD] = {"summary.md", &summary_kind},
    [JUNIT_XML] = {"junit.xml", &mt_file_junit},
    [REPORT_HTML] = {"report.html", &page_kind},
};

struct writing {
    const struct mt_fleet_folder *folder;
    const struct mt_fleet_answer *answer;
    struct mt_job_document document;
    struct mt_buf names; /* names of the written files, one per line */
};

int mt_fleet_folder_precheck(const char *directory, const struct mt_outputs *outputs,
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

/* Writes DIR/NAME, adds its name and releases the bytes. */
static int write_document(struct writing *writing, size_t which, struct mt_buf *bytes)
{
    struct mt_buf path = {0};
    int code;

    mt_outputs_add_path(&path, writing->folder->directory, documents[which].name);
    code = mt_outputs_write(path.data, writing->folder->outputs, documents[which].kind, bytes);
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
    int code;

    mt_fleet_json(&bytes, answer);
    code = write_document(writing, FLEET_JSON, &bytes);
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

static struct mt_gallery_options gallery_options(const struct mt_fleet_folder *folder)
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

int mt_fleet_folder_write(const struct mt_fleet_folder *folder,
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
