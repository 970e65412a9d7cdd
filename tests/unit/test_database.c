/* Questions to databases: statements that are refused, and files that are damaged or hostile. The
 * file never changes, and nothing appears beside it. */
#include "cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "database.h"
#include "database_writer.h"
#include "dice.h"
#include "named_questions.h"
#include "nsys_parts.h"

static char folder[] = "/tmp/memtrace-database-XXXXXX";
static char path[64];
static const struct mt_database_library *library;

struct answer {
    unsigned columns, rows, most_rows;
    bool is_late;
    int64_t first; /* the first integer of the first row */
};

static void count_columns(void *context, const char *const *names, unsigned count)
{
    struct answer *answer = context;

    answer->columns = count;
    for (unsigned i = 0; i < count; i++)
        assert_non_null(names[i]);
}

/* Touches every byte of every value. */
static bool count_row(void *context, const struct mt_value *values, unsigned count)
{
    struct answer *answer = context;
    unsigned sum = 0;

    assert_int_equal(count, answer->columns);
    for (unsigned i = 0; i < count; i++)
        for (size_t k = 0; values[i].kind == MT_VALUE_TEXT && k < values[i].length; k++)
            sum += (unsigned char)values[i].text[k];
    if (!answer->rows && values[0].kind == MT_VALUE_INTEGER)
        answer->first = values[0].integer;
    answer->rows += 1 + 0 * sum;
    return answer->rows < answer->most_rows;
}

static enum mt_status ask(const char *sql, struct answer *answer, struct mt_error *error)
{
    const struct mt_database_question question = {.path = path,
                                                  .sql = sql,
                                                  .time_limit_ns = 500000000,
                                                  .is_late = &answer->is_late,
                                                  .context = answer,
                                                  .on_columns = count_columns,
                                                  .on_row = count_row};

    *answer = (struct answer){.most_rows = 1000};
    *error = (struct mt_error){.text = ""};
    return library->ask(&question, error);
}

/* Two blocks on two stacks, which are live at the peak. */
static const char rows[] =
    "INSERT INTO settings(name, value) VALUES ('first_ns', 5), ('input', 'run.pickle');"
    "INSERT INTO devices(device, name) VALUES (0, 'H200');"
    "INSERT INTO peaks(device, size, bytes, event, t_ns, phase) VALUES (0, 'allocated', 1024, 7, "
    "9, 0);"
    "INSERT INTO instants(instant, device, kind, event) VALUES (1, 0, 'peak_allocated', 7);"
    "INSERT INTO phases(phase, name, path) VALUES (0, 'forward', 'step#0/forward');"
    "INSERT INTO frames(frame, function, file, line) VALUES (0, 'main', 'a.py', 1), (1, 'forward', "
    "'a.py', 2);"
    "INSERT INTO stacks(stack, parent, frame) VALUES (0, NULL, 0), (1, 0, 1);"
    "INSERT INTO origins(origin, role, site, stack) VALUES (0, 'parameters', 'main a.py:1', 0),"
    "    (1, 'activations', 'forward a.py:2', 1);"
    "INSERT INTO block_rows(block, device, bytes, requested_bytes, birth_event, origin, phase)"
    "    VALUES (1, 0, 512, 500, 1, 0, 0), (2, 0, 512, 500, 2, 1, 0);";

static void make_database(const char *more)
{
    struct mt_database_writer writer;
    struct mt_error error;
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    fclose(file);
    assert_int_equal(mt_database_writer_open(&writer, path, &mt_database_of_run, &error), MT_OK);
    assert_int_equal(library->execute(writer.database, rows, &error), MT_OK);
    if (more && library->execute(writer.database, more, &error))
        fail_msg("%s", error.text);
    assert_int_equal(mt_database_writer_close(&writer, &error), MT_OK);
}

struct contents {
    unsigned char *bytes;
    size_t length;
};

static struct contents read_file(void)
{
    struct contents file = {NULL, 0};
    struct stat facts;
    FILE *stream = fopen(path, "rb");

    assert_non_null(stream);
    assert_int_equal(fstat(fileno(stream), &facts), 0);
    file.length = (size_t)facts.st_size;
    file.bytes = malloc(file.length + 1);
    assert_non_null(file.bytes);
    assert_int_equal(fread(file.bytes, 1, file.length + 1, stream), file.length);
    fclose(stream);
    return file;
}

static void write_file(const struct contents *file)
{
    FILE *stream = fopen(path, "wb");

    assert_non_null(stream);
    assert_int_equal(fwrite(file->bytes, 1, file->length, stream), file->length);
    assert_int_equal(fclose(stream), 0);
}

static void expect_unchanged(const struct contents *before)
{
    struct contents now = read_file();
    DIR *entries = opendir(folder);
    unsigned count = 0;

    assert_int_equal(now.length, before->length);
    assert_memory_equal(now.bytes, before->bytes, now.length);
    free(now.bytes);
    assert_non_null(entries);
    while (readdir(entries))
        count++;
    closedir(entries);
    assert_int_equal(count, 3); /* the file, "." and ".." */
}

static void expect_refused(const char *sql, enum mt_status status, const char *text)
{
    struct mt_error error;
    struct answer answer;

    assert_int_equal(ask(sql, &answer, &error), status);
    if (!strstr(error.text, text))
        fail_msg("%s: '%s', not '%s'", sql, error.text, text);
}

static int make_folder(void **state)
{
    struct mt_error error;

    (void)state;
    library = mt_database_library(&error);
    if (!library)
        return 0;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/run.db", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)rmdir(folder);
    return 0;
}

static void need_sqlite(void)
{
    if (!library)
        skip();
}

#define READS "only statements that read are allowed"

TEST(statements_only_read)
{
    static const struct {
        const char *sql, *text;
    } refused[] = {
        {"DELETE FROM peaks", READS},
        {"INSERT INTO peaks(device) VALUES (1)", READS},
        {"UPDATE peaks SET device = 1", READS},
        {"WITH x AS (SELECT 1) DELETE FROM peaks", READS},
        {"DROP TABLE peaks", READS},
        {"CREATE TABLE t(x)", READS},
        {"CREATE TEMP TABLE t(x)", READS},
        {"CREATE TEMP VIEW v AS SELECT 1", READS},
        {"CREATE VIRTUAL TABLE v USING fts5(x)", READS},
        {"ALTER TABLE peaks RENAME TO p", READS},
        {"REINDEX", READS},
        {"ANALYZE", READS},
        {"BEGIN IMMEDIATE", READS},
        {"SAVEPOINT s", READS},
        {"ATTACH '/tmp/memtrace-attached.db' AS other", READS},
        {"DETACH main", READS},
        {"VACUUM", READS},
        {"VACUUM INTO '/tmp/memtrace-copy.db'", READS},
        {"PRAGMA journal_mode = WAL", READS},
        {"PRAGMA user_version = 7", READS},
        {"PRAGMA writable_schema = ON", READS},
        {"PRAGMA query_only = OFF", READS},
        {"PRAGMA temp_store_directory = '/tmp'", READS},
        {"SELECT * FROM pragma_journal_mode('wal')", READS},
        {"SELECT load_extension('/tmp/x.so')", "not authorized to use function"},
        {"SELECT readfile('/etc/passwd')", "no such function"},
        {"SELECT writefile('/tmp/x', 'y')", "no such function"},
        {"SELECT * FROM dbstat", "no such table"},
        {"SELECT 1; DROP TABLE peaks", "more than one statement"},
        {"SELECT 1; SELECT", "more than one statement"},
        {"", "the statement is empty"},
        {" -- nothing\n", "the statement is empty"},
        {"SELECT \"no_such_column\"", "no such column"},
        {"SELECT :rows", "the parameter :rows has no value: add --set rows=VALUE"},
        {"SELECT ?", "the parameter ? has no value"},
        {"SELECT zeroblob(1000000000)", "too big"},
        {"SELECT randomblob(1000000000)", "too big"},
        {"SELECT 'x' LIKE hex(zeroblob(1000))", "too complex"},
        {"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x) FROM c",
         "it took more than"},
        {"WITH RECURSIVE c(x) AS (SELECT randomblob(1000) UNION ALL SELECT randomblob(1000) "
         "FROM c) SELECT x FROM c ORDER BY x",
         "it took more than"},
        {"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
         "SELECT group_concat(hex(randomblob(100000))) FROM c",
         ""},
    };

    need_sqlite();
    make_database(NULL);
    struct contents before = read_file();
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        expect_refused(refused[i].sql, MT_ERR_USAGE, refused[i].text);
    expect_unchanged(&before);
    assert_int_not_equal(access("/tmp/memtrace-attached.db", F_OK), 0);
    assert_int_not_equal(access("/tmp/memtrace-copy.db", F_OK), 0);
    free(before.bytes);
}

TEST(what_reads_is_answered)
{
    static const struct {
        const char *sql;
        unsigned columns, rows;
        int64_t first;
    } answered[] = {
        {"SELECT 7", 1, 1, 7},
        {"SELECT 7; -- and no more\n;", 1, 1, 7},
        {"VALUES (1), (2)", 1, 2, 1},
        {"SELECT sum(bytes) FROM live_at_peak", 1, 1, 1024},
        {"SELECT count(*) FROM stack_frames", 1, 1, 3},
        {"SELECT cid FROM pragma_table_info('peaks')", 1, 11, 0},
        {"SELECT value FROM json_each('[4, 5]')", 1, 2, 4},
        {"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c", 1, 1000,
         1},
    };

    need_sqlite();
    make_database(NULL);
    for (size_t i = 0; i < sizeof answered / sizeof *answered; i++) {
        struct mt_error error;
        struct answer answer;

        if (ask(answered[i].sql, &answer, &error))
            fail_msg("%s: %s", answered[i].sql, error.text);
        assert_int_equal(answer.columns, answered[i].columns);
        assert_int_equal(answer.rows, answered[i].rows);
        assert_int_equal(answer.first, answered[i].first);
    }
}

/* A database that is ours by its header, but was changed by somebody. */
TEST(hostile_databases)
{
    static const char hostile[] =
        "CREATE VIEW endless AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
        "    SELECT count(*) FROM c;"
        "CREATE VIEW opens AS SELECT load_extension('/tmp/x.so');"
        "CREATE VIEW itself AS SELECT * FROM itself;"
        "CREATE TABLE target(x); CREATE TRIGGER writes AFTER INSERT ON target BEGIN"
        "    DELETE FROM peaks; END;"
        "CREATE TABLE computed(x, y AS (x + 1)); INSERT INTO computed VALUES (1);";
    struct mt_error error;
    struct answer answer;

    need_sqlite();
    make_database(hostile);
    struct contents before = read_file();
    expect_refused("SELECT * FROM endless", MT_ERR_USAGE, "it took more than");
    assert_int_equal(ask("SELECT * FROM endless", &answer, &error), MT_ERR_USAGE);
    assert_true(answer.is_late);
    expect_refused("SELECT * FROM opens", MT_ERR_USAGE, "load_extension");
    expect_refused("SELECT * FROM itself", MT_ERR_USAGE, "circularly defined");
    expect_refused("INSERT INTO target VALUES (1)", MT_ERR_USAGE, READS);
    assert_int_equal(ask("SELECT y FROM computed", &answer, &error), MT_OK);
    assert_int_equal(answer.first, 2);
    assert_false(answer.is_late);
    expect_unchanged(&before);
    free(before.bytes);
}

/* SQLite would make two files beside a file in WAL mode. */
TEST(wal_leaves_nothing)
{
    struct mt_error error;
    struct answer answer;

    need_sqlite();
    make_database(NULL);
    struct contents before = read_file();
    before.bytes[18] = before.bytes[19] = 2;
    write_file(&before);
    (void)ask("SELECT * FROM peaks", &answer, &error); /* some versions refuse it */
    expect_unchanged(&before);
    free(before.bytes);
}

enum { DAMAGED = 300 };

static const char *const asked[] = {
    "SELECT * FROM live ORDER BY bytes DESC",
    "SELECT device, role, sum(bytes) FROM live_at_peak GROUP BY 1, 2",
    "SELECT s.*, f.function FROM stacks s JOIN stack_frames f USING(stack) LIMIT 100",
};

TEST(damaged_databases)
{
    struct dice dice = {UINT64_C(88172645463325252)};
    unsigned failed = 0;

    need_sqlite();
    make_database(NULL);
    struct contents whole = read_file();
    struct contents changed = {malloc(whole.length), whole.length};
    assert_non_null(changed.bytes);
    for (unsigned i = 0; i < DAMAGED; i++) {
        memcpy(changed.bytes, whole.bytes, whole.length);
        for (uint64_t flips = 1 + dice_any(&dice) % 40; flips; flips--) {
            /* half of them in the header and the tables of the schema */
            uint64_t end = dice_any(&dice) % 2 ? 8192 : whole.length;

            changed.bytes[dice_any(&dice) % end] = (unsigned char)dice_any(&dice);
        }
        changed.length = i % 4 ? whole.length : dice_any(&dice) % whole.length;
        write_file(&changed);
        for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
            struct mt_error error;
            struct answer answer;
            enum mt_status status = ask(asked[k], &answer, &error);

            failed += status != MT_OK;
            assert_true(status == MT_OK || *error.text);
            expect_unchanged(&changed);
        }
    }
    assert_in_range(failed, DAMAGED / 4, 3 * DAMAGED);
    free(changed.bytes);
    free(whole.bytes);
}

/* Every question that comes with memtrace has a description, is answered, and uses its
 * parameters. */
TEST(named_questions)
{
    need_sqlite();
    make_database(NULL);
    for (size_t i = 0; i < mt_named_question_count(); i++) {
        const struct mt_named_question question = mt_named_question_at(i);
        struct mt_parameters parameters = {.count = 0};
        struct mt_error error = {.text = ""};
        struct answer answer = {.most_rows = 1000};
        struct mt_database_question asked_question = {.path = path,
                                                      .sql = question.sql,
                                                      .context = &answer,
                                                      .on_columns = count_columns,
                                                      .on_row = count_row};
        struct mt_buf text = {0};

        mt_named_question_add_description(&text, &question);
        assert_in_range(text.length, 10, 110);
        mt_named_question_set_defaults(&question, &parameters);
        asked_question.names = parameters.names;
        asked_question.values = parameters.values;
        asked_question.parameter_count = parameters.count;
        if (library->ask(&asked_question, &error))
            fail_msg("%s: %s", question.name, error.text);
        mt_parameters_release(&parameters);
        mt_buf_release(&text);
    }
}

static void expect_parameter(const char *text, enum mt_value_kind kind)
{
    struct mt_parameters parameters = {.count = 0};

    assert_true(mt_parameters_set(&parameters, "a", 1, text, strlen(text)));
    assert_int_equal(parameters.values[0].kind, kind);
    mt_parameters_release(&parameters);
}

TEST(values_of_parameters)
{
    struct mt_parameters parameters = {.count = 0};

    expect_parameter("20", MT_VALUE_INTEGER);
    expect_parameter("-9223372036854775807", MT_VALUE_INTEGER);
    expect_parameter("9223372036854775808", MT_VALUE_TEXT);
    expect_parameter("1.5", MT_VALUE_REAL);
    expect_parameter("-.25", MT_VALUE_REAL);
    expect_parameter("1.2.3", MT_VALUE_TEXT);
    expect_parameter(".", MT_VALUE_TEXT);
    expect_parameter("1.000000000000000", MT_VALUE_TEXT); /* 16 digits */
    expect_parameter("1.5e3", MT_VALUE_TEXT);
    expect_parameter("null", MT_VALUE_NULL);
    expect_parameter("", MT_VALUE_TEXT);
    expect_parameter("-", MT_VALUE_TEXT);
    expect_parameter("0x10", MT_VALUE_TEXT);
    expect_parameter("infinity", MT_VALUE_TEXT);
    expect_parameter("20MiB", MT_VALUE_TEXT);
    assert_true(mt_parameters_set(&parameters, "share", 5, "-0.1", 4));
    assert_true(parameters.values[0].real == -0.1);
    mt_parameters_release(&parameters);
    assert_true(mt_parameters_set(&parameters, "rows", 4, "1", 1));
    assert_true(mt_parameters_set(&parameters, "rows=", 4, "2", 1));
    assert_int_equal(parameters.count, 1);
    assert_int_equal(parameters.values[0].integer, 1);
    mt_parameters_release(&parameters);
}

static enum mt_status be_late(const struct mt_database_question *question, struct mt_error *error)
{
    *question->is_late = true;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "it took more than 3 s");
}

/* A question has what is left of the importer's time. */
TEST(an_importer_says_its_own_limit)
{
    static const struct mt_database_library late = {.ask = be_late};
    struct mt_source *source = NULL;
    struct mt_error error;

    assert_int_equal(mt_nsys_read("a.sqlite", &late, &source, &error), MT_ERR_UNSUPPORTED);
    assert_string_equal(error.text, "reading the database took more than 900 s");
}

int main(void)
{
    return run_tests_of_file(make_folder, remove_folder);
}
