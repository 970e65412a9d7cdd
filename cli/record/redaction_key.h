/* Keeps the salt of redactions in a file, so that all traces of a job are redacted consistently:
 * equal hosts, jobs and devices become equal texts in all traces. */
#ifndef MT_CLI_REDACTION_KEY_H
#define MT_CLI_REDACTION_KEY_H

#include "redaction.h"

/* Reads the salt from the first bytes of the file. If the file does not exist, creates it with
 * random bytes, readable only by its owner. An existing file that is shorter than a salt is an
 * error and is not changed. Several processes may call the function at the same time. Prints
 * errors; returns an exit code. */
int mt_redaction_key_read(const char *path, struct mt_redaction *redaction);

#endif
