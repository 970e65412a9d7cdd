/* What kind of program a command starts: can the collector get into it? */
#ifndef MT_RECORD_PROGRAM_KIND_H
#define MT_RECORD_PROGRAM_KIND_H

#include <limits.h>
#include <stdbool.h>

enum mt_program_kind {
    MT_PROGRAM_DYNAMIC,        /* the loader preloads what LD_PRELOAD names */
    MT_PROGRAM_MISSING,        /* no such file, here or in PATH */
    MT_PROGRAM_IS_FOLDER,      /* ... */
    MT_PROGRAM_NOT_EXECUTABLE, /* no permission */
    MT_PROGRAM_NO_INTERPRETER, /* of a script: what #! names is missing */
    MT_PROGRAM_STATIC,         /* loads no libraries */
    MT_PROGRAM_SECURE,         /* setuid, setgid, capabilities: the loader ignores LD_PRELOAD */
    MT_PROGRAM_OTHER_MACHINE,  /* 32 bits or another processor: cannot load ours */
    MT_PROGRAM_OTHER_LOADER,   /* not glibc's: ours might stop it */
    MT_PROGRAM_REFUSES         /* its loader was asked and cannot load the library */
};

struct mt_program {
    enum mt_program_kind kind;
    char path[PATH_MAX];   /* of the file that is run, once found */
    char binary[PATH_MAX]; /* its interpreter's, if it is a script; else as path */
    char reason[200];      /* of REFUSES, as the loader says it */
};

/* Looks `name` up as execvp does and reads what it finds, through at most four
 * #! lines. Runs nothing. */
void mt_program_look(const char *name, struct mt_program *program);

/* Can it run at all? MISSING to NO_INTERPRETER cannot. */
bool mt_program_runs(const struct mt_program *program);

/* Asks the loader of a DYNAMIC program whether it can load `library` into it
 * (as ldd does, without running the program): REFUSES and its reason if not.
 * Some milliseconds. */
void mt_program_try_preload(struct mt_program *program, const char *library);

/* The exit status of a shell for what cannot run: 127 missing, else 126. */
int mt_program_exit_code(const struct mt_program *program);

/* "it is statically linked", ...; what stands behind "cannot ..., because". */
const char *mt_program_reason(const struct mt_program *program);

#endif
