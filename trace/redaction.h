/* Replaces what in a trace identifies a person, a machine or a place of files. This is
 * the one rule about what that is: `memtrace info --secrets` counts the texts that it
 * would change. Equal texts become equal texts, as long as the salt is the same; the
 * salt is random and kept nowhere, so nobody can find a text by trying.
 *
 *   file      the folder is hashed, the name of the file stays. Only the beginning goes
 *             where what follows identifies nobody: site-packages/, dist-packages/,
 *             lib/python3.12/, aten/src/, torch/csrc/. Folders of the system stay.
 *   words     (functions, phases, marks, settings) paths in them, as above
 *   thread    hashed, except for the names that Python and PyTorch give
 *   host, command, boot id, job, UUID of a device   hashed
 *
 * What was redacted stays as it is when it is redacted again. */
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

/* Draws a salt; MT_ERR_IO if the system has no random numbers. */
enum mt_status mt_redaction_init(struct mt_redaction *redaction) MT_MUST_USE;

/* Appends the text as it may be shown to anybody. O(length). */
void mt_redact(const struct mt_redaction *redaction, enum mt_text_kind kind, const char *text,
               size_t length, struct mt_buf *out);

/* Does redaction change it? */
bool mt_text_identifies(enum mt_text_kind kind, const char *text, size_t length);

#endif
