#include "run_database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "database.h"
#include "database_file.h"
#include "export_database.h"
#include "units.h"

enum { LOOK_SECONDS = 5 }; /* for a question about settings */

/* A file that the user named. */
static int check_named(const char *path, const struct mt_database_file *header)
{
    if (!header->is_own)
        mt_message("cannot read '%s': it is a database of SQLite that memtrace did not write",
                   path);
    else if (header->version > MT_DATABASE_VERSION)
        mt_message("cannot read '%s': its tables have version %u and are from a newer memtrace, "
                   "this one knows version %d: upgrade memtrace, or export the recording again",
                   path, (unsigned)header->version, MT_DATABASE_VERSION);
    else if (header->version < MT_DATABASE_VERSION)
        mt_message("cannot read '%s': its tables have version %u, this memtrace makes version %d: "
                   "export the recording again",
                   path, (unsigned)header->version, MT_DATABASE_VERSION);
    else if (header->is_being_changed)
        mt_message(
            "cannot read '%s': a change by another program is not complete: open and close it "
            "with sqlite3 first",
            path);
    else
        return MT_EXIT_OK;
    return MT_EXIT_INPUT;
}

static bool note_row(void *context, const struct mt_value *values, unsigned count)
{
    bool *is_found = context;

    (void)values;
    (void)count;
    *is_found = true;
    return false;
}

/* Returns whether it has only a part of a recording. If it cannot be read, the question of the user
 * reports that. */
static bool is_partial(const char *path)
{
    bool is_found = false;
    const struct mt_database_question question = {
        .path = path,
        .sql = "SELECT 1 FROM settings WHERE name = 'is_damaged' AND value <> 0",
        .time_limit_ns = (uint64_t)LOOK_SECONDS * 1000000000u,
        .context = &is_found,
        .on_row = note_row};
    const struct mt_database_library *library = mt_database_library(NULL);

    if (library)
        (void)library->ask(&question, NULL);
    return is_found;
}

static int open_named(struct mt_run_database *database, const struct mt_database_file *header)
{
    int code = check_named(database->path, header);

    if (code == MT_EXIT_OK && is_partial(database->path)) {
        mt_message("'%s': its recording is damaged: the answer lacks a part of the run",
                   database->path);
        database->verdict = MT_EXIT_INPUT;
    }
    return code;
}

static struct mt_file_stamp stamp_of(const struct stat *facts)
{
    return (struct mt_file_stamp){.bytes = (int64_t)facts->st_size,
                                  .mtime_ns = (int64_t)facts->st_mtim.tv_sec * 1000000000 +
                                              facts->st_mtim.tv_nsec,
                                  .inode = (int64_t)facts->st_ino};
}

/* Compares settings of a database with what it must have. */
struct comparison {
    const struct mt_file_stamp *stamp;
    unsigned equal, rows;
    bool is_damaged;
};

enum { STAMP_SETTINGS = 4 };

static bool is_text(const struct mt_value *value, const char *text)
{
    return value->kind == MT_VALUE_TEXT && value->length == strlen(text) &&
           memcmp(value->text, text, value->length) == 0;
}

static bool compare_setting(void *context, const struct mt_value *values, unsigned count)
{
    struct comparison *comparison = context;
    const struct mt_value *name = &values[0], *value = &values[1];
    const struct mt_file_stamp *stamp = comparison->stamp;

    (void)count;
    if (is_text(name, "is_damaged"))
        comparison->is_damaged = value->kind != MT_VALUE_INTEGER || value->integer != 0;
    else if (is_text(name, "memtrace"))
        comparison->equal += is_text(value, mt_database_made_by());
    else if (value->kind == MT_VALUE_INTEGER)
        comparison->equal +=
            (is_text(name, "input_bytes") && value->integer == stamp->bytes) ||
            (is_text(name, "input_mtime_ns") && value->integer == stamp->mtime_ns) ||
            (is_text(name, "input_inode") && value->integer == stamp->inode);
    return ++comparison->rows <= STAMP_SETTINGS + 1;
}

static bool has_stamp(const char *path, const struct mt_file_stamp *stamp, bool *is_damaged)
{
    struct comparison comparison = {.stamp = stamp};
    const struct mt_database_question question = {
        .path = path,
        .sql = "SELECT name, value FROM settings WHERE name IN "
               "('memtrace', 'input_bytes', 'input_mtime_ns', 'input_inode', 'is_damaged')",
        .time_limit_ns = (uint64_t)LOOK_SECONDS * 1000000000u,
        .context = &comparison,
        .on_row = compare_setting};
    const struct mt_database_library *library = mt_database_library(NULL);

    if (!library || library->ask(&question, NULL) != MT_OK)
        return false;
    *is_damaged = comparison.is_damaged;
    return comparison.equal == STAMP_SETTINGS && comparison.rows == STAMP_SETTINGS + 1;
}

/* Another user could put a database there: only those of this user, of root, and of the owner of
 * the recording count. */
static bool is_current(const char *path, const struct stat *input, bool *is_damaged)
{
    const struct mt_file_stamp stamp = stamp_of(input);
    struct stat facts;

    if (lstat(path, &facts) != 0 || !S_ISREG(facts.st_mode) ||
        (facts.st_uid != geteuid() && facts.st_uid != 0 && facts.st_uid != input->st_uid))
        return false;
    struct mt_database_file header = mt_database_file_of(path);
    return header.is_own && header.version == MT_DATABASE_VERSION &&
           has_stamp(path, &stamp, is_damaged);
}

/* Returns why the file cannot be made or replaced; NULL: it can. */
static const char *why_not_kept(const char *path, const struct mt_outputs *outputs,
                                struct mt_error *error)
{
    const struct mt_output_rules rules = mt_output_rules_of(outputs, &mt_file_database);
    struct mt_buf folder = {0};
    struct stat facts;
    const char *why = NULL;

    mt_buf_add(&folder, path, mt_folder_length(path));
    if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode))
        why = "it is a symbolic link";
    else if (access(folder.length ? folder.data : ".", W_OK | X_OK) != 0)
        why = strerror(errno);
    else if (mt_output_check(path, &rules, error) != MT_OK)
        why = error->text;
    mt_buf_release(&folder);
    return why;
}

static void say_kept(const char *path, const struct mt_common *common)
{
    char bytes[MT_UNITS_TEXT];
    struct stat facts;

    if (!common->quiet && stat(path, &facts) == 0)
        mt_message("wrote '%s' (%s), which answers further questions", path,
                   mt_format_bytes(bytes, (uint64_t)facts.st_size));
}

static int open_temporary(struct mt_run_database *database)
{
    const char *folder = getenv("TMPDIR");
    struct mt_buf target = {0};
    struct mt_error error;

    mt_outputs_add_path(&target, folder && *folder == '/' ? folder : "/tmp", "database");
    enum mt_status status =
        mt_temporary_open(&database->temporary, target.data, 0600, mt_outputs_unfinished(), &error);
    database->path = database->temporary.path;
    database->is_temporary = true;
    mt_buf_release(&target);
    return status ? mt_report_output_error("a temporary file in $TMPDIR", &error) : MT_EXIT_OK;
}

static int make(struct mt_run_database *database, const struct mt_database_export *wanted)
{
    uint64_t rows;
    int code = mt_export_database(wanted, &rows);

    database->verdict = code;
    if (!rows)
        return code;
    if (!database->is_temporary)
        say_kept(database->path, wanted->common);
    return MT_EXIT_OK;
}

static int make_temporary(struct mt_run_database *database, struct mt_database_export *wanted)
{
    int code = open_temporary(database);

    wanted->output = database->path;
    return code == MT_EXIT_OK ? make(database, wanted) : code;
}

/* A regular file. */
static int open_kept(struct mt_run_database *database, const struct stat *facts,
                     struct mt_database_export *wanted)
{
    const struct mt_file_stamp stamp = stamp_of(facts);
    struct mt_error error = {.text = ""};
    bool is_damaged = false;

    mt_buf_printf(&database->kept, "%s.memtrace.db", wanted->input);
    database->path = wanted->output = database->kept.data;
    wanted->stamp = &stamp;
    if (is_current(database->path, facts, &is_damaged)) {
        if (is_damaged)
            mt_message("'%s': it is damaged: the answer lacks a part of the run", wanted->input);
        database->verdict = is_damaged ? MT_EXIT_INPUT : MT_EXIT_OK;
        return MT_EXIT_OK;
    }
    const char *why = why_not_kept(database->path, wanted->outputs, &error);
    if (!why)
        return make(database, wanted);
    if (!wanted->common->quiet)
        mt_message("cannot keep '%s': %s: the database is a temporary file", database->path, why);
    return make_temporary(database, wanted);
}

static int open_recording(struct mt_run_database *database, const char *input,
                          const struct mt_common *common)
{
    struct mt_outputs outputs = {.force = false};
    struct mt_database_export wanted = {.input = input, .common = common, .outputs = &outputs};
    struct stat facts;

    mt_outputs_add_input(&outputs, input);
    database->is_made = true;
    if (strcmp(input, "-") != 0 && stat(input, &facts) == 0 && S_ISREG(facts.st_mode))
        return open_kept(database, &facts, &wanted);
    return make_temporary(database, &wanted);
}

int mt_run_database_open(struct mt_run_database *database, const char *input,
                         const struct mt_common *common)
{
    const struct mt_database_file header = mt_database_file_of(input);

    *database = (struct mt_run_database){.path = input, .temporary = MT_TEMPORARY_NONE};
    if (header.is_sqlite)
        return open_named(database, &header);
    return open_recording(database, input, common);
}

void mt_run_database_close(struct mt_run_database *database)
{
    mt_temporary_discard(&database->temporary);
    mt_buf_release(&database->kept);
}
