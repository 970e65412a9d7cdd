/* Selects requests: "site=~embedding,size>=20MiB,phase=~forward".
 *
 * Conditions that all have to hold, separated by commas:
 *   site=~REGEX   a frame of the stack has this in its function or in its
 *                 "file:line"; regular expressions are POSIX's extended ones
 *   phase=~REGEX  the phase's path ("step#3/forward") has it
 *   size OP SIZE  of >= > <= < =, the requested bytes
 * A comma belongs to the regular expression unless a condition follows it. */
#ifndef MT_ANALYZER_REQUEST_SELECTOR_H
#define MT_ANALYZER_REQUEST_SELECTOR_H

#include <stdbool.h>

#include "source.h"

struct mt_request_selector;

/* The text may be freed afterwards. MT_ERR_USAGE with a reason. */
enum mt_status mt_request_selector_new(const char *text, struct mt_request_selector **selector,
                                       struct mt_error *error) MT_MUST_USE;
void mt_request_selector_free(struct mt_request_selector *selector); /* accepts NULL */

/* Whether it has a condition on phases. */
bool mt_request_selector_wants_phase(const struct mt_request_selector *selector);

/* A request, and its origin. */
struct mt_request_facts {
    const struct mt_event *event;
    const char *phase_path; /* NULL = in no phase */
    uint32_t phase;         /* number of that phase; each is matched once */
};

/* Every frame and phase is matched once; a stack then costs one lookup. */
void mt_request_selector_match(struct mt_request_selector *selector,
                               const struct mt_symbols *symbols,
                               const struct mt_request_facts *facts, bool *matches);

#endif
