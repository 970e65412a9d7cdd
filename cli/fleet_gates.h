/* Rules that a whole job has to keep to, and a case of each for each group of ranks. */
#ifndef MT_CLI_FLEET_GATES_H
#define MT_CLI_FLEET_GATES_H

#include "fleet_job.h"
#include "fleet_rules.h"
#include "job_document.h"
#include "job_report.h"
#include "json.h"

enum mt_fleet_gate_state {
    MT_FLEET_PASS,
    MT_FLEET_FAIL,
    MT_FLEET_NOT_EVALUATED, /* which is no pass */
    MT_FLEET_WARN
};

enum mt_fleet_gate_unit { MT_FLEET_BYTES, MT_FLEET_PPM, MT_FLEET_RANKS };

/* A rule for the ranks of a group. */
struct mt_fleet_gate {
    const char *rule, *group; /* "max-peak reserved", "pp 3" or "all ranks" */
    enum mt_fleet_gate_state state;
    bool is_optional;             /* not evaluated is no failure */
    const char *doubt;            /* why it may not hold, or cannot be evaluated; NULL: nothing */
    uint32_t row;                 /* the worst of the group; MT_NO_ROW: none */
    uint64_t actual, limit, warn; /* in its unit; UINT64_MAX = no such bound */
    uint64_t base;                /* that the limit follows from */
    bool has_base;
    enum mt_fleet_gate_unit unit; /* bytes, millionths of the mean, or a number of ranks */
};

struct mt_fleet_gates {
    struct mt_arena arena;
    struct mt_fleet_rules rules;
    struct mt_fleet_job base; /* of the rules; without files: none */
    struct mt_fleet_gate *list;
    uint32_t count, failed;
    size_t capacity;
};

/* Reads the options and the budget; says what is wrong. enum mt_exit. */
int mt_fleet_gates_read(struct mt_fleet_gates *gates, const struct mt_fleet_gate_options *options);

/* Reads the job of --base; nothing without one. Says what is wrong; enum mt_exit. */
int mt_fleet_gates_open_base(struct mt_fleet_gates *gates, const char *mesh, uint64_t jobs);

/* Groups are those of the first axis; without axes, all ranks are one. A rule that the ranks that
 * are there keep does not pass if one is missing, cut, incomplete or out of memory. MT_ERR_FORMAT:
 * the base cannot be compared. */
enum mt_status mt_fleet_gates_check(struct mt_fleet_gates *gates,
                                    const struct mt_job_report *report,
                                    struct mt_error *error) MT_MUST_USE;
void mt_fleet_gates_text(struct mt_buf *out, struct mt_fleet_gates *gates,
                         const struct mt_job_report *report, const struct mt_style *style);
void mt_fleet_gates_json(struct mt_json *json, const struct mt_fleet_gates *gates,
                         const struct mt_job_report *report);
/* JUnit XML: a case a rule and group. */
void mt_fleet_gates_junit(struct mt_buf *out, struct mt_fleet_gates *gates,
                          const struct mt_job_report *report);
/* The gates of a page and of a summary; they live as long as `gates`. */
enum mt_status mt_fleet_gates_document(struct mt_fleet_gates *gates,
                                       const struct mt_job_report *report,
                                       struct mt_job_document *document) MT_MUST_USE;
void mt_fleet_gates_release(struct mt_fleet_gates *gates);

#endif
