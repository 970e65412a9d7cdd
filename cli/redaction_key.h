/* The salt of redactions in a file, so that several traces of one job are redacted alike: equal
 * hosts, jobs and devices become equal texts in all of them. */
#ifndef MT_CLI_REDACTION_KEY_H
#define MT_CLI_REDACTION_KEY_H

#include "redaction.h"

/* Fills the salt from the first bytes of the file, which is made with random bytes if it is not
 * there, readable by its owner only. Another file that is shorter than a salt is refused and stays
 * as it is. Several processes may call it at the same time. Returns an exit code; prints the
 * reason. */
int mt_redaction_key_read(const char *path, struct mt_redaction *redaction);

#endif
