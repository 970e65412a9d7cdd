/* Determines what kind of program a command starts, and whether the collector can be loaded into
 * it. */
#ifndef MT_RECORD_PROGRAM_KIND_H
#define MT_RECORD_PROGRAM_KIND_H

#include <limits.h>
#include <stdbool.h>

enum mt_program_kind {
    MT_PROGRAM_DYNAMIC,        /* the loader loads the libraries in LD_PRELOAD */
    MT_PROGRAM_MISSING,        /* no such file, here or in PATH */
    MT_PROGRAM_IS_FOLDER,      /* the name is that of a folder */
    MT_PROGRAM_NOT_EXECUTABLE, /* no permission */
    MT_PROGRAM_NO_INTERPRETER, /* a script whose #! names a missing program */
    MT_PROGRAM_STATIC,         /* loads no libraries */
    MT_PROGRAM_SECURE,         /* setuid, setgid, capabilities: the loader ignores LD_PRELOAD */
    MT_PROGRAM_OTHER_MACHINE,  /* 32 bits or another processor: cannot load the collector */
    MT_PROGRAM_OTHER_LOADER,   /* not glibc's: a preloaded collector might keep it from starting */
    MT_PROGRAM_REFUSES         /* its loader reported that it cannot load the library */
};

struct mt_program {
    enum mt_program_kind kind;
    char path[PATH_MAX];   /* of the file that the command names, if it was found */
    char binary[PATH_MAX]; /* of the script's interpreter; equals `path` if it is not a script */
    char reason[200];      /* of REFUSES: the message of the loader */
};

/* Looks up `name` like execvp, and follows at most four #! lines. Reads files and runs nothing. */
void mt_program_look(const char *name, struct mt_program *program);

/* Returns false if the program cannot run (MISSING to NO_INTERPRETER). */
bool mt_program_runs(const struct mt_program *program);

/* Runs the loader of a DYNAMIC program to check whether it can load `library` (like ldd, without
 * running the program). If it cannot, sets REFUSES and the reason. Takes milliseconds. */
void mt_program_try_preload(struct mt_program *program, const char *library);

/* Returns a shell's exit status for a program that cannot run: 127 if missing, otherwise 126. */
int mt_program_exit_code(const struct mt_program *program);

/* Returns a clause that follows "because", such as "it is statically linked". */
const char *mt_program_reason(const struct mt_program *program);

#endif
