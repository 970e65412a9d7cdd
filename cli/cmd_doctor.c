/* memtrace doctor: what the collector can record on this machine. */
#include <string.h>

#include "annexes.h"
#include "backends.h"
#include "cli.h"
#include "database.h"
#include "json.h"
#include "probes.h"
#include "terminal.h"
#include "util.h"

static const char *state_word(enum mt_probe_state state)
{
    switch (state) {
    case MT_PROBE_OK: return "ok";
    case MT_PROBE_DEGRADED: return "degraded";
    case MT_PROBE_MISSING: break;
    }
    return "missing";
}

static void check_pictures(struct mt_probe_result *result)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_png_available(&error))
        mt_probe_set(result, MT_PROBE_OK, "", "cairo");
    else
        mt_probe_set(
            result, MT_PROBE_DEGRADED,
            "install them, and build memtrace again if it was built without; memtrace from "
            "pip needs none",
            "only .svg pictures: %s", error.text);
}

static void check_terminal(struct mt_probe_result *result)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_terminal_available(&error))
        mt_probe_set(result, MT_PROBE_OK, "", "ncurses");
    else
        mt_probe_set(result, MT_PROBE_DEGRADED,
                     "install it, and build memtrace again if it was built without",
                     "no memtrace view: %s", error.text);
}

static void check_sql(struct mt_probe_result *result)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    const struct mt_database_library *library = mt_database_library(&error);

    if (library)
        mt_probe_set(result, MT_PROBE_OK, "", "SQLite %s", library->version());
    else
        mt_probe_set(result, MT_PROBE_DEGRADED,
                     "install it, and build memtrace again if it was built without",
                     "no memtrace sql and no export sqlite: %s", error.text);
}

/* After those of the collector. */
static const struct mt_probe own_probes[] = {
    {"pictures", "PNG pictures", check_pictures, 10},
    {"terminal", "memtrace view", check_terminal, 10},
    {"sql", "memtrace sql", check_sql, 10},
};

static void add_text(struct mt_buf *out, const struct mt_probe *probe,
                     const struct mt_probe_result *result)
{
    const struct mt_style *style = mt_stdout_style();
    const char *color = result->state == MT_PROBE_OK         ? style->green
                        : result->state == MT_PROBE_DEGRADED ? style->yellow
                                                             : style->red;

    mt_buf_printf(out, "%-10s %s%-9s%s ", probe->name, color, state_word(result->state),
                  style->reset);
    mt_buf_add_printable(out, result->text, strlen(result->text));
    mt_buf_add_char(out, '\n');
    if (*result->fix) {
        mt_buf_printf(out, "%-20s -> ", "");
        mt_buf_add_printable(out, result->fix, strlen(result->fix));
        mt_buf_add_char(out, '\n');
    }
}

static void add_json(struct mt_json *json, const struct mt_probe *probe,
                     const struct mt_probe_result *result)
{
    mt_json_object_begin(json, NULL);
    mt_json_text(json, "name", probe->name);
    mt_json_text(json, "what", probe->what);
    mt_json_text(json, "state", state_word(result->state));
    mt_json_text(json, "text", result->text);
    mt_json_text(json, "mend", *result->fix ? result->fix : NULL);
    mt_json_object_end(json);
}

/* Runs a check and returns true if it is not missing. Without `json`, prints the result. */
static bool check_one(const struct mt_probe *probe, struct mt_json *json, struct mt_buf *out,
                      int *printed)
{
    struct mt_probe_result result;

    mt_probe_run(probe, &result);
    if (json)
        add_json(json, probe, &result);
    else {
        add_text(out, probe, &result);
        *printed = mt_print_answer(out, false);
        mt_buf_reset(out);
    }
    return result.state != MT_PROBE_MISSING;
}

/* Runs all checks and returns true if nothing is missing. As text, prints each result
 * immediately. */
static bool check_all(bool as_json, struct mt_buf *out, int *printed)
{
    struct mt_json json;
    bool complete = true;

    mt_json_init(&json, out, true);
    if (as_json) {
        mt_json_object_begin(&json, NULL);
        mt_json_text(&json, "schema", "memtrace.doctor/1");
        mt_json_array_begin(&json, "checks");
    }
    for (const struct mt_probe *probe = mt_probes; probe->name && *printed == MT_EXIT_OK; probe++)
        complete &= check_one(probe, as_json ? &json : NULL, out, printed);
    for (size_t i = 0; mt_annex_probes[i] && *printed == MT_EXIT_OK; i++)
        complete &= check_one(mt_annex_probes[i], as_json ? &json : NULL, out, printed);
    for (size_t i = 0; i < MT_ARRAY_LEN(own_probes) && *printed == MT_EXIT_OK; i++)
        complete &= check_one(&own_probes[i], as_json ? &json : NULL, out, printed);
    if (as_json) {
        mt_json_array_end(&json);
        mt_json_bool(&json, "complete", complete);
        mt_json_object_end(&json);
        mt_buf_add_char(out, '\n');
    }
    return complete;
}

int mt_cmd_doctor(const struct mt_command *command, int argc, char **argv)
{
    bool as_json = false;
    const struct mt_option options[] = {
        {"json", 0, MT_OPTION_FLAG, NULL, "print one JSON document", &as_json},
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL},
    };
    struct mt_buf out = {0};
    char **arguments;
    int count, code = mt_options_parse(command, options, argc, argv, 0, 0, &arguments, &count);

    if (code >= 0)
        return code;
    code = MT_EXIT_OK;
    bool complete = check_all(as_json, &out, &code);
    if (as_json)
        code = mt_print(&out);
    mt_buf_release(&out);
    return code != MT_EXIT_OK ? code : complete ? MT_EXIT_OK : MT_EXIT_BUDGET;
}
