/* See program_kind.h. Reads the file like the kernel and the loader: #! lines, then the ELF header
 * and the program headers. */
#include "program_kind.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "environment.h"
#include "io.h"

enum { MAX_SCRIPTS = 4, MAX_HEADERS = 64, FIRST_BYTES = 256, OUTPUT_BYTES = 65536 };

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE
#endif

static enum mt_program_kind look_at_file(const char *path)
{
    struct stat facts;

    if (stat(path, &facts) < 0)
        return errno == EACCES ? MT_PROGRAM_NOT_EXECUTABLE : MT_PROGRAM_MISSING;
    if (S_ISDIR(facts.st_mode))
        return MT_PROGRAM_IS_FOLDER;
    return access(path, X_OK) == 0 ? MT_PROGRAM_DYNAMIC : MT_PROGRAM_NOT_EXECUTABLE;
}

/* Like execvp: finds the first file in PATH that may be executed. A file that may not be executed
 * is remembered, and the search continues. A folder that may not be searched has no files, as in a
 * shell: PATH may be that of another user. */
static enum mt_program_kind search_path(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH");
    enum mt_program_kind found = MT_PROGRAM_MISSING;

    for (at = at ? at : "/bin:/usr/bin";; at++) {
        size_t length = strcspn(at, ":");
        enum mt_program_kind kind = MT_PROGRAM_MISSING;
        if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, at, length ? "/" : "", name) <
            PATH_MAX)
            kind = look_at_file(path);
        if (kind == MT_PROGRAM_DYNAMIC)
            return kind;
        if (kind == MT_PROGRAM_NOT_EXECUTABLE && access(path, F_OK) == 0)
            found = kind;
        at += length;
        if (!*at)
            return found;
    }
}

static enum mt_program_kind find(const char *name, char path[PATH_MAX])
{
    if (!*name || strlen(name) >= PATH_MAX)
        return MT_PROGRAM_MISSING;
    if (!strchr(name, '/'))
        return search_path(name, path);
    memcpy(path, name, strlen(name) + 1);
    return look_at_file(path);
}

/* Copies the program that a "#!" line names to `path`. Returns false if there is no such line. */
static bool script_interpreter(const char *bytes, size_t length, char path[PATH_MAX])
{
    const char *at = bytes + 2, *end = bytes + length;
    size_t count = 0;

    if (length < 2 || bytes[0] != '#' || bytes[1] != '!')
        return false;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    for (; at < end && *at != ' ' && *at != '\t' && *at != '\n'; at++)
        path[count++] = *at;
    path[count] = '\0';
    return count > 0;
}

/* Returns true if the kernel would set AT_SECURE for the loader. */
static bool is_secure(const char *path)
{
    struct stat facts;

    if (stat(path, &facts) < 0)
        return false;
    if ((facts.st_mode & S_ISUID) && facts.st_uid != geteuid())
        return true;
    if ((facts.st_mode & S_ISGID) && (facts.st_mode & S_IXGRP) && facts.st_gid != getegid())
        return true;
    return geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Returns the number of bytes that were read, up to `length`, or -1. */
static ssize_t read_at(int fd, void *bytes, size_t length, uint64_t offset)
{
    size_t done = 0;
    ssize_t got = 1;

    while (done < length && got > 0) {
        got = mt_io_pread(fd, (char *)bytes + done, length - done, offset + done);
        done += got > 0 ? (size_t)got : 0;
    }
    return got < 0 ? -1 : (ssize_t)done;
}

static enum mt_program_kind kind_of_loader(int fd, const Elf64_Phdr *header)
{
    char loader[PATH_MAX];
    size_t length = header->p_filesz < sizeof loader ? header->p_filesz : sizeof loader - 1;
    ssize_t count = read_at(fd, loader, length, header->p_offset);

    loader[count > 0 ? count : 0] = '\0';
    return strstr(loader, "ld-linux") ? MT_PROGRAM_DYNAMIC : MT_PROGRAM_OTHER_LOADER;
}

static enum mt_program_kind kind_of_elf(int fd, const Elf64_Ehdr *elf)
{
    Elf64_Phdr headers[MAX_HEADERS];
    size_t count = elf->e_phnum < MAX_HEADERS ? elf->e_phnum : MAX_HEADERS;

    if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != OWN_MACHINE)
        return MT_PROGRAM_OTHER_MACHINE;
    if (elf->e_phentsize != sizeof *headers ||
        read_at(fd, headers, count * sizeof *headers, elf->e_phoff) !=
            (ssize_t)(count * sizeof *headers))
        return MT_PROGRAM_DYNAMIC; /* damaged: exec will report it */
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_INTERP)
            return kind_of_loader(fd, &headers[i]);
    return MT_PROGRAM_STATIC;
}

/* Handles one file. Sets the kind, or returns true and the next program in program->binary. */
static bool read_one(struct mt_program *program)
{
    union {
        char bytes[FIRST_BYTES];
        Elf64_Ehdr elf;
    } first;
    int fd = mt_io_open(program->binary, O_RDONLY, 0);
    ssize_t count = fd < 0 ? -1 : read_at(fd, first.bytes, sizeof first.bytes, 0);
    bool script = false;

    if (is_secure(program->binary))
        program->kind = MT_PROGRAM_SECURE;
    else if (count >= (ssize_t)sizeof first.elf && !memcmp(first.bytes, ELFMAG, SELFMAG))
        program->kind = kind_of_elf(fd, &first.elf);
    else if (count >= 0 &&
             !(script = script_interpreter(first.bytes, (size_t)count, program->binary)))
        snprintf(program->binary, sizeof program->binary, "/bin/sh"); /* as execvp does */
    if (fd >= 0)
        close(fd);
    return script;
}

void mt_program_look(const char *name, struct mt_program *program)
{
    memset(program, 0, sizeof *program);
    program->kind = find(name, program->path);
    if (program->kind != MT_PROGRAM_DYNAMIC)
        return;
    memcpy(program->binary, program->path, sizeof program->path);
    for (int depth = 0; depth < MAX_SCRIPTS && read_one(program); depth++) {
        program->kind = look_at_file(program->binary);
        if (program->kind == MT_PROGRAM_DYNAMIC)
            continue;
        program->kind = MT_PROGRAM_NO_INTERPRETER;
        return;
    }
}

bool mt_program_runs(const struct mt_program *program)
{
    return program->kind == MT_PROGRAM_DYNAMIC || program->kind > MT_PROGRAM_NO_INTERPRETER;
}

/* Runs in the child: the loader lists the libraries that it would load, and the program does not
 * run. */
static void list_libraries(const struct mt_program *program, const char *library, int output)
{
    char preload[PATH_MAX + sizeof "LD_PRELOAD="], search[PATH_MAX + sizeof MT_SEARCH_PATH "="];
    char trace[] = "LD_TRACE_LOADED_OBJECTS=1", *environment[] = {trace, preload, NULL, NULL};
    char *arguments[] = {(char *)(uintptr_t)program->binary, NULL};
    const char *word = mt_record_preload_word(library);

    if (strlen(library) < PATH_MAX) {
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", word);
        snprintf(search, sizeof search, MT_SEARCH_PATH "=%.*s", (int)(word - library), library);
        environment[2] = word > library ? search : NULL;
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execve(program->binary, arguments, environment);
    }
    _exit(127);
}

/* Reads all output of `fd`, up to capacity - 1. */
static size_t read_all(int fd, char *text, size_t capacity)
{
    char rest[512];
    size_t length = 0;

    for (;;) {
        bool full = length + 1 >= capacity;
        ssize_t count =
            mt_io_read(fd, full ? rest : text + length, full ? sizeof rest : capacity - 1 - length);
        if (count <= 0)
            break;
        length += full ? 0 : (size_t)count;
    }
    text[length] = '\0';
    return length;
}

/* Copies the loader's message: of the line with the name of the library and an error, the part
 * after the name. */
static void set_reason(struct mt_program *program, const char *text, const char *library)
{
    const char *at = strstr(text, "ERROR: "), *word = mt_record_preload_word(library);
    const char *name = strstr(at ? at : text, word);

    if (name)
        at = name + strlen(word);
    if (!at)
        at = "its loader fails without a message";
    at += strspn(at, "': ");
    snprintf(program->reason, sizeof program->reason, "%.*s", (int)strcspn(at, "\n"), at);
    program->kind = MT_PROGRAM_REFUSES;
}

void mt_program_try_preload(struct mt_program *program, const char *library)
{
    char *text = malloc(OUTPUT_BYTES);
    int ends[2], status = 0;

    if (!text || program->kind != MT_PROGRAM_DYNAMIC || pipe(ends) < 0) {
        free(text);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        list_libraries(program, library, ends[1]);
    }
    close(ends[1]);
    if (child > 0) {
        read_all(ends[0], text, OUTPUT_BYTES);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        if (status != 0 || strstr(text, "cannot be preloaded"))
            set_reason(program, text, library);
    }
    close(ends[0]);
    free(text);
}

int mt_program_exit_code(const struct mt_program *program)
{
    return program->kind == MT_PROGRAM_MISSING ? 127 : 126;
}

const char *mt_program_reason(const struct mt_program *program)
{
    switch (program->kind) {
    case MT_PROGRAM_DYNAMIC: return "";
    case MT_PROGRAM_MISSING: return "no such program";
    case MT_PROGRAM_IS_FOLDER: return "it is a folder";
    case MT_PROGRAM_NOT_EXECUTABLE: return "permission denied";
    case MT_PROGRAM_NO_INTERPRETER: return "the interpreter in its first line is missing";
    case MT_PROGRAM_STATIC: return "it is statically linked";
    case MT_PROGRAM_SECURE: return "it runs with the privileges of another user (such as setuid)";
    case MT_PROGRAM_OTHER_MACHINE: return "it is built for another processor";
    case MT_PROGRAM_OTHER_LOADER: return "its C library is not glibc";
    case MT_PROGRAM_REFUSES: return program->reason;
    }
    return "";
}
