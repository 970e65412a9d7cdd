/* The salt of redactions in a file, so that several traces of one job are redacted consistently:
 * equal hosts, jobs and devices become equal texts in all of them. */
#ifndef MT_CLI_REDACTION_KEY_H
#define MT_CLI_REDACTION_KEY_H

#include "redaction.h"

/* Reads the salt from the first bytes of the file. If the file does not exist, creates it with
 * random bytes, readable by its owner only. An existing file that is shorter than a salt is an
 * error and stays unchanged. Several processes may call it at the same time. Returns an exit
 * code; prints the reason. */
int mt_redaction_key_read(const char *path, struct mt_redaction *redaction);

#endif
