#include "process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "grow.h"

enum { READINGS = 8 };

struct process {
    pid_t pid, parent;
    bool is_meant;
};

struct tree {
    struct process *processes; /* by pid */
    size_t count, capacity;
};

void mt_process_tree_keep(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL);
}

/* Reads the parent from "PID (name) S PARENT ..."; 0 if the process is gone. The name may contain
 * anything. */
static pid_t parent_of(pid_t pid)
{
    char path[64], line[512];
    const char *end = NULL;
    size_t length;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    end = strrchr(line, ')');
    return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : 0;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Lists all processes of the machine, or as many as fit in memory. */
static void read_processes(struct tree *tree)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;

    tree->count = 0;
    while (folder && (entry = readdir(folder))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid <= 0)
            continue;
        if (tree->count == tree->capacity &&
            mt_grow(&tree->processes, &tree->capacity, tree->count + 1, sizeof *tree->processes))
            break;
        tree->processes[tree->count++] = (struct process){pid, parent_of(pid), false};
    }
    if (folder)
        closedir(folder);
    if (tree->count)
        qsort(tree->processes, tree->count, sizeof *tree->processes, by_pid);
}

static bool is_meant(const struct tree *tree, pid_t pid)
{
    const struct process key = {.pid = pid};
    const struct process *found = NULL;

    if (tree->count)
        found = bsearch(&key, tree->processes, tree->count, sizeof key, by_pid);
    return found && found->is_meant;
}

/* memtrace's own helper, which receives signals as a witness, is not part of the command. */
static bool is_witness(pid_t pid)
{
    char path[64], name[32] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    file = fopen(path, "re");
    if (file && !fgets(name, sizeof name, file))
        *name = '\0';
    if (file)
        fclose(file);
    return !strcmp(name, "signal-witness\n");
}

/* Marks the children of marked processes. Returns false if there are none. */
static bool mark_children(struct tree *tree)
{
    bool any = false;

    for (size_t i = 0; i < tree->count; i++) {
        struct process *process = &tree->processes[i];

        if (process->is_meant || !is_meant(tree, process->parent))
            continue;
        process->is_meant = true;
        any = true;
    }
    return any;
}

/* The targets of a signal. */
struct aim {
    pid_t root;
    bool is_below; /* only descendants of the root, not the root itself */
};

static void mark(struct tree *tree, const struct aim *aim)
{
    pid_t adopter = aim->is_below ? aim->root : getpid();

    for (size_t i = 0; i < tree->count; i++) {
        struct process *process = &tree->processes[i];

        process->is_meant = (process->pid == aim->root && !aim->is_below) ||
                            (process->parent == adopter && !is_witness(process->pid));
    }
    while (mark_children(tree))
        continue;
}

static void end(const struct aim *aim, int signal)
{
    struct tree tree = {0};
    size_t before = 0, count = 0;

    for (int reading = 0;
         reading < (signal == SIGKILL ? READINGS : 1) && (!reading || count > before); reading++) {
        before = count;
        count = 0;
        read_processes(&tree);
        mark(&tree, aim);
        for (size_t i = 0; i < tree.count; i++) {
            if (!tree.processes[i].is_meant)
                continue;
            kill(tree.processes[i].pid, signal);
            count++;
        }
        /* no memory, or no /proc: signal at least the command */
        if (aim->root && !aim->is_below && !is_meant(&tree, aim->root))
            kill(aim->root, signal);
    }
    free(tree.processes);
}

void mt_process_tree_end(pid_t root, int signal)
{
    const struct aim aim = {root, false};

    end(&aim, signal);
}

void mt_process_tree_end_below(pid_t root, int signal)
{
    const struct aim aim = {root, true};

    end(&aim, signal);
}
