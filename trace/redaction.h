/* Replaces everything in a trace that identifies a person, a machine or a location of files.
 * `memtrace info --secrets` uses the same rules to count the texts that would change. With the same
 * salt, equal texts become equal texts. The salt is random, so nobody without it can find a text by
 * trial. Only `--redact-key` stores it (cli/cmd_import.c).
 *
 * Nothing stays because it does not look like a path: what stays is known (public_names.h).
 *
 *   file      the folder is hashed, the name of the file stays. Only the start is replaced if the
 *             rest is public, such as site-packages/, lib/python3.12/ or torch/nn/.
 *   words     (functions, phases, marks, settings) a word with '/', a backslash or "%2F" is a path
 *             or a sequence of elements, such as "step/forward". In a sequence, each unknown
 *             element is hashed alone. In a path, a public end stays, and the name of a file if its
 *             extension or the whole name is known. "~user" and "user@host" are hashed. Single
 *             names stay.
 *   thread    hashed, except for the names that Python, PyTorch and CUDA give
 *   host, command, boot id, job, UUID of a device   hashed
 *
 * Redacting a redacted text does not change it. */
#ifndef MT_TRACE_REDACTION_H
#define MT_TRACE_REDACTION_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "status.h"

enum mt_text_kind {
    MT_TEXT_FILE,
    MT_TEXT_WORDS,
    MT_TEXT_THREAD,
    MT_TEXT_HOST,
    MT_TEXT_COMMAND,
    MT_TEXT_BOOT,
    MT_TEXT_JOB,
    MT_TEXT_UUID
};

struct mt_redaction {
    unsigned char salt[16];
};

/* Draws a salt; MT_ERR_IO if the system provides no random numbers. */
enum mt_status mt_redaction_init(struct mt_redaction *redaction) MT_MUST_USE;

/* Appends the redacted text. O(length). */
void mt_redact(const struct mt_redaction *redaction, enum mt_text_kind kind, const char *text,
               size_t length, struct mt_buf *out);

/* Returns whether redaction changes the text. */
bool mt_text_identifies(enum mt_text_kind kind, const char *text, size_t length);

#endif
