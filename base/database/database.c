/* The only code that knows SQLite. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "buf.h"
#include "database.h"
#include "grow.h"
#include "monotonic_clock.h"
#include "process_memory.h"

struct mt_database {
    sqlite3 *connection;
    sqlite3_stmt **prepared;
    unsigned count;
    size_t capacity;
};

static enum mt_status fail_memory(struct mt_error *error)
{
    return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "SQLite has not enough memory");
}

static enum mt_status fail(sqlite3 *connection, enum mt_status status, struct mt_error *error)
{
    int code = connection ? sqlite3_extended_errcode(connection) : SQLITE_NOMEM;

    if (code == SQLITE_NOMEM)
        return fail_memory(error);
    if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB)
        status = MT_ERR_FORMAT;
    return mt_fail(error, status, MT_NO_OFFSET, "%s", sqlite3_errmsg(connection));
}

static enum mt_status execute(struct mt_database *database, const char *sql, struct mt_error *error)
{
    if (sqlite3_exec(database->connection, sql, NULL, NULL, NULL) != SQLITE_OK)
        return fail(database->connection, MT_ERR_OUTPUT, error);
    return MT_OK;
}

static enum mt_status close_database(struct mt_database *database, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    if (!database)
        return MT_OK;
    for (unsigned i = 0; i < database->count; i++)
        sqlite3_finalize(database->prepared[i]);
    if (sqlite3_close(database->connection) != SQLITE_OK)
        status = fail(database->connection, MT_ERR_OUTPUT, error);
    free(database->prepared);
    free(database);
    return status;
}

/* A file under a temporary name needs neither a journal nor locks: another process never sees
 * it. */
static enum mt_status create(const char *path, struct mt_database **database,
                             struct mt_error *error)
{
    struct mt_database *made = mt_memory_zeroed(1, sizeof *made);
    enum mt_status status;

    if (sqlite3_open_v2(path, &made->connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        "unix-none") != SQLITE_OK) {
        status = fail(made->connection, MT_ERR_OUTPUT, error);
    } else {
        status = execute(made,
                         "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF;"
                         "PRAGMA synchronous = OFF; PRAGMA cache_size = -16384;"
                         "PRAGMA temp_store = FILE; BEGIN",
                         error);
    }
    if (!status) {
        *database = made;
        return MT_OK;
    }
    (void)close_database(made, NULL);
    return status;
}

/* Sets the number of columns of a table, 0 if there is no such table. */
static enum mt_status count_columns(struct mt_database *database, const char *table,
                                    unsigned *count, struct mt_error *error)
{
    char *sql = sqlite3_mprintf("SELECT count(*) FROM pragma_table_info(%Q)", table);
    sqlite3_stmt *statement = NULL;
    enum mt_status status = MT_OK;

    if (!sql)
        return fail_memory(error);
    if (sqlite3_prepare_v2(database->connection, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        status = fail(database->connection, MT_ERR_OUTPUT, error);
    else
        *count = (unsigned)sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return status;
}

static enum mt_status prepare(struct mt_database *database, const char *table,
                              struct mt_error *error)
{
    sqlite3_str *sql = sqlite3_str_new(database->connection);
    sqlite3_stmt *statement = NULL;
    unsigned count = 0;
    enum mt_status status = count_columns(database, table, &count, error);

    sqlite3_str_appendf(sql, "INSERT INTO \"%w\" VALUES (?", table);
    for (unsigned i = 1; i < count; i++)
        sqlite3_str_appendall(sql, ",?");
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    if (!status && !text)
        status = fail_memory(error);
    if (!status && sqlite3_prepare_v3(database->connection, text, -1, SQLITE_PREPARE_PERSISTENT,
                                      &statement, NULL) != SQLITE_OK)
        status = fail(database->connection, MT_ERR_OUTPUT, error);
    sqlite3_free(text);
    if (status)
        return status;
    mt_grow_to(&database->prepared, &database->capacity, (size_t)database->count + 1,
               sizeof(sqlite3_stmt *));
    database->prepared[database->count++] = statement;
    return MT_OK;
}

static int bind(sqlite3_stmt *statement, int at, const struct mt_value *value)
{
    switch (value->kind) {
    case MT_VALUE_NULL: return sqlite3_bind_null(statement, at);
    case MT_VALUE_INTEGER: return sqlite3_bind_int64(statement, at, value->integer);
    case MT_VALUE_REAL: return sqlite3_bind_double(statement, at, value->real);
    case MT_VALUE_TEXT: break;
    }
    return sqlite3_bind_text64(statement, at, value->text, value->length, SQLITE_STATIC,
                               SQLITE_UTF8);
}

static enum mt_status insert(struct mt_database *database, unsigned prepared,
                             const struct mt_value *values, unsigned count, struct mt_error *error)
{
    sqlite3_stmt *statement = database->prepared[prepared];
    int code = SQLITE_OK;

    for (unsigned i = 0; i < count && code == SQLITE_OK; i++)
        code = bind(statement, (int)i + 1, &values[i]);
    if (code == SQLITE_OK)
        (void)sqlite3_step(statement);
    code = code == SQLITE_OK ? sqlite3_reset(statement) : code;
    if (code == SQLITE_NOMEM)
        return fail_memory(error);
    return code == SQLITE_OK ? MT_OK : fail(database->connection, MT_ERR_OUTPUT, error);
}

/* A question. Its text is untrusted, and so is the file. */

struct asked {
    const struct mt_database_question *question;
    sqlite3 *connection;
    uint64_t until_ns; /* 0 = no limit */
    bool is_late;
};

enum {
    MAX_SQL_BYTES = 1 << 20,
    MAX_VALUE_BYTES = 1 << 26,
    MAX_COLUMNS = 100,
    MAX_DEPTH = 200,
    MAX_TERMS = 100,         /* of UNION, and arguments of a function */
    MAX_PATTERN_BYTES = 256, /* of LIKE, whose time grows with the number of its marks */
    MAX_HEAP_BYTES = 1 << 30,
    INSTRUCTIONS_A_LOOK = 200 /* of SQLite's machine, between two looks at the clock */
};
#define MAX_SPILL_BYTES ((uint64_t)8 << 30)
#define READS_ONLY      "only statements that read are allowed: SELECT, WITH or VALUES"

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && sqlite3_stricmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

static void note_table(const struct asked *asked, const char *table)
{
    const struct mt_database_question *question = asked->question;

    if (question->table && table && !sqlite3_stricmp(table, question->table))
        *question->reads_table = true;
}

/* Reading and nothing else. PRAGMA as a function of the statement (pragma_table_info) reads. The
 * functions that are refused read files, load code, or change what a later function does. */
static int authorize(void *context, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    static const char *const pragmas[] = {"table_info", "table_list", "table_xinfo", NULL};
    static const char *const functions[] = {"load_extension", "readfile",       "writefile",
                                            "edit",           "fts3_tokenizer", NULL};

    (void)c;
    (void)d;
    switch (action) {
    case SQLITE_READ: note_table(context, a); return SQLITE_OK;
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION: return is_one_of(b, functions) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA: return is_one_of(a, pragmas) ? SQLITE_OK : SQLITE_DENY;
    default: return SQLITE_DENY;
    }
}

static int look_at_clock(void *context)
{
    struct asked *asked = context;

    asked->is_late |= asked->until_ns && mt_now_ns() > asked->until_ns;
    return asked->is_late;
}

static void limit(sqlite3 *connection)
{
    static const char *const modules[] = {"json_each", "json_tree", NULL};

    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
    sqlite3_limit(connection, SQLITE_LIMIT_SQL_LENGTH, MAX_SQL_BYTES);
    sqlite3_limit(connection, SQLITE_LIMIT_COLUMN, MAX_COLUMNS);
    sqlite3_limit(connection, SQLITE_LIMIT_EXPR_DEPTH, MAX_DEPTH);
    sqlite3_limit(connection, SQLITE_LIMIT_COMPOUND_SELECT, MAX_TERMS);
    sqlite3_limit(connection, SQLITE_LIMIT_FUNCTION_ARG, MAX_TERMS);
    sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES);
    sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(connection, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    sqlite3_limit(connection, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_hard_heap_limit64(MAX_HEAP_BYTES);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)NULL);
    /* A word in double quotes is a name and never a text, so a wrong name is an error. */
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DML, 0, (int *)NULL);
    /* A file could describe tables for them, with contents that they do not expect. */
    (void)sqlite3_drop_modules(connection, (const char **)modules);
}

/* "file:run.db?immutable=1". SQLite takes such a file as it is: it makes no locks, no journal and
 * no shared memory, and looks for none beside it. */
static void add_uri(struct mt_buf *out, const char *path)
{
    mt_buf_add_text(out, *path == '/' ? "file://" : "file:");
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("/._-", c))
            mt_buf_add_char(out, *path);
        else
            mt_buf_printf(out, "%%%02x", (unsigned)c);
    }
    mt_buf_add_text(out, "?immutable=1");
}

static enum mt_status open_for_reading(struct asked *asked, struct mt_error *error)
{
    static const char *const functions[] = {"SELECT 1 FROM pragma_table_info('') LIMIT 0",
                                            "SELECT 1 FROM json_each('[]') LIMIT 0",
                                            "SELECT 1 FROM json_tree('[]') LIMIT 0"};
    struct mt_buf uri = {0};

    add_uri(&uri, asked->question->path);
    int code = sqlite3_open_v2(uri.data, &asked->connection,
                               SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
    mt_buf_release(&uri);
    if (code != SQLITE_OK)
        return fail(asked->connection, MT_ERR_IO, error);
    limit(asked->connection);
    /* A file that becomes shorter would end the program if it were mapped. */
    if (sqlite3_exec(asked->connection,
                     "PRAGMA cell_size_check = ON; PRAGMA query_only = ON; PRAGMA mmap_size = 0",
                     NULL, NULL, NULL) != SQLITE_OK)
        return fail(asked->connection, MT_ERR_IO, error);
    /* The first use of these tables declares them, which the authorizer would refuse. */
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        (void)sqlite3_exec(asked->connection, functions[i], NULL, NULL, NULL);
    sqlite3_set_authorizer(asked->connection, authorize, asked);
    sqlite3_progress_handler(asked->connection, INSTRUCTIONS_A_LOOK, look_at_clock, asked);
    return MT_OK;
}

static enum mt_status fail_late(const struct asked *asked, struct mt_error *error)
{
    if (asked->question->is_late)
        *asked->question->is_late = true;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "it took more than %llu s",
                   (unsigned long long)(asked->question->time_limit_ns / 1000000000u));
}

static enum mt_status fail_question(const struct asked *asked, struct mt_error *error)
{
    int code = sqlite3_errcode(asked->connection);

    if (asked->is_late)
        return fail_late(asked, error);
    if (code == SQLITE_AUTH || !strcmp(sqlite3_errmsg(asked->connection), "not authorized"))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, READS_ONLY);
    if (code == SQLITE_NOMEM && sqlite3_memory_highwater(0) > MAX_HEAP_BYTES / 2)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "it needs more than 1 GiB of memory");
    return fail(asked->connection, MT_ERR_USAGE, error);
}

/* Only blanks and comments may follow a statement. */
static enum mt_status check_rest(const struct asked *asked, const char *rest,
                                 struct mt_error *error)
{
    while (*rest) {
        sqlite3_stmt *more = NULL;
        int code = sqlite3_prepare_v2(asked->connection, rest, -1, &more, &rest);

        sqlite3_finalize(more);
        if (code == SQLITE_NOMEM)
            return fail_question(asked, error);
        if (more || code != SQLITE_OK)
            return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "more than one statement");
    }
    return MT_OK;
}

static enum mt_status prepare_question(struct asked *asked, sqlite3_stmt **statement,
                                       struct mt_error *error)
{
    const char *rest;

    if (sqlite3_prepare_v2(asked->connection, asked->question->sql, -1, statement, &rest) !=
        SQLITE_OK)
        return fail_question(asked, error);
    if (!*statement)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "the statement is empty");
    if (!sqlite3_stmt_readonly(*statement) || !sqlite3_column_count(*statement))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, READS_ONLY);
    return check_rest(asked, rest, error);
}

/* A parameter is ":name", and also "@name" or "$name". */
static int parameter_at(sqlite3_stmt *statement, const char *name)
{
    int at = sqlite3_bind_parameter_count(statement);

    for (; at; at--) {
        const char *known = sqlite3_bind_parameter_name(statement, at);

        if (known && !strcmp(known + 1, name))
            break;
    }
    return at;
}

/* Every parameter must have a value, because SQLite takes NULL for it, and every value a
 * parameter. */
static enum mt_status bind_parameters(const struct asked *asked, sqlite3_stmt *statement,
                                      struct mt_error *error)
{
    const struct mt_database_question *question = asked->question;
    int count = sqlite3_bind_parameter_count(statement);

    for (int at = 1; at <= count; at++) {
        const char *name = sqlite3_bind_parameter_name(statement, at);
        size_t i = 0;

        while (i < question->parameter_count && name && strcmp(question->names[i], name + 1) != 0)
            i++;
        if (!name || i == question->parameter_count)
            return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                           "the parameter %s has no value: add --set %s=VALUE", name ? name : "?",
                           name ? name + 1 : "NAME");
        if (bind(statement, at, &question->values[i]) != SQLITE_OK)
            return fail_question(asked, error);
    }
    for (size_t i = 0; i < question->parameter_count; i++)
        if (!parameter_at(statement, question->names[i]))
            return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "the statement has no parameter :%s",
                           question->names[i]);
    return MT_OK;
}

static struct mt_value value_at(sqlite3_stmt *statement, int column)
{
    struct mt_value value = {.kind = MT_VALUE_TEXT};

    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL: return (struct mt_value){.kind = MT_VALUE_NULL};
    case SQLITE_INTEGER:
        return (struct mt_value){.kind = MT_VALUE_INTEGER,
                                 .integer = sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
        value.kind = MT_VALUE_REAL;
        value.real = sqlite3_column_double(statement, column);
        value.text = (const char *)sqlite3_column_text(statement, column);
        break;
    default: value.text = sqlite3_column_blob(statement, column); break;
    }
    value.length = (size_t)sqlite3_column_bytes(statement, column);
    if (!value.text)
        value = (struct mt_value){.kind = MT_VALUE_TEXT, .text = ""};
    return value;
}

static enum mt_status tell_rows(struct asked *asked, sqlite3_stmt *statement,
                                struct mt_error *error)
{
    const struct mt_database_question *question = asked->question;
    struct mt_value values[MAX_COLUMNS];
    const char *names[MAX_COLUMNS];
    int count = sqlite3_column_count(statement), code;

    for (int i = 0; i < count; i++) {
        names[i] = sqlite3_column_name(statement, i);
        names[i] = names[i] ? names[i] : "";
    }
    if (question->on_columns)
        question->on_columns(question->context, names, (unsigned)count);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < count; i++)
            values[i] = value_at(statement, i);
        if (!question->on_row(question->context, values, (unsigned)count))
            return MT_OK;
        if (look_at_clock(asked))
            return fail_late(asked, error);
    }
    return code == SQLITE_DONE ? MT_OK : fail_question(asked, error);
}

/* Bounds the file into which SQLite sorts, which has no name. */
static void limit_spill(struct rlimit *before)
{
    if (getrlimit(RLIMIT_FSIZE, before))
        *before = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit limited = *before;
    if (limited.rlim_cur > MAX_SPILL_BYTES)
        limited.rlim_cur = MAX_SPILL_BYTES;
    (void)setrlimit(RLIMIT_FSIZE, &limited);
}

static enum mt_status ask(const struct mt_database_question *question, struct mt_error *error)
{
    struct asked asked = {.question = question};
    sqlite3_stmt *statement = NULL;
    struct rlimit before;

    limit_spill(&before);
    if (question->time_limit_ns)
        asked.until_ns = mt_now_ns() + question->time_limit_ns;
    enum mt_status status = open_for_reading(&asked, error);
    if (!status)
        status = prepare_question(&asked, &statement, error);
    if (!status)
        status = bind_parameters(&asked, statement, error);
    if (!status)
        status = tell_rows(&asked, statement, error);
    sqlite3_finalize(statement);
    sqlite3_close(asked.connection);
    sqlite3_hard_heap_limit64(0);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    return status;
}

const struct mt_database_library *mt_database_library(struct mt_error *error)
{
    static const struct mt_database_library library = {.version = sqlite3_libversion,
                                                       .create = create,
                                                       .execute = execute,
                                                       .prepare = prepare,
                                                       .insert = insert,
                                                       .close = close_database,
                                                       .ask = ask};

    (void)error;
    return &library;
}
