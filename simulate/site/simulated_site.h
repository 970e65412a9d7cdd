/* The site of a dry run: simulated CUDA libraries for the PyTorch of a command's Python, with the
 * names, functions and versions that PyTorch's libraries require. The user's environment is not
 * changed, and no GPU or compiler is needed.
 *
 * LD_PRELOAD loads one library that needs all of them. For later requests, the loader uses a loaded
 * library of the same name before it searches anywhere, including DT_RPATH and installed nvidia-*
 * packages. */
#ifndef MT_SIMULATED_SITE_H
#define MT_SIMULATED_SITE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "python_of_command.h"
#include "status.h"

struct mt_simulated_site_request {
    char *const *command;           /* as for execvp; ends with NULL */
    const char *cache_folder;       /* NULL: the user's (site_cache.h) */
    const char *simulated_library;  /* absolute path of libmemtrace-simulated-cuda.so */
    const char *python_shim_folder; /* folder to put in front of PYTHONPATH; NULL: none */
    /* Called before a Python is run. NULL: not */
    void (*before_python)(void *context, const struct mt_python_choice *choice);
    void *context;
};

struct mt_simulated_site {
    char folder[PATH_MAX]; /* of the libraries */
    char cache[PATH_MAX]; /* the folder of all sites; also for temporary folders (mt_cache_begin) */
    char preload[PATH_MAX];     /* for LD_PRELOAD; has neither space nor colon */
    char cupti[PATH_MAX];       /* for MEMTRACE_CUPTI: the simulated one */
    char cudnn[PATH_MAX];       /* the program's own libcudnn_graph.so.9; empty: there is none */
    char python_path[PATH_MAX]; /* to put in front of PYTHONPATH; empty: nothing */
    char torch_version[64];     /* "2.11.0+cu130" */
    char torch_folder[PATH_MAX];
    char cuda_version[16];   /* "13.0": what PyTorch was built for */
    char python[PATH_MAX];   /* the interpreter that was queried */
    char python_version[16]; /* "3.12" */
    char python_from[64];   /* the source of the choice: "the command", "VIRTUAL_ENV", ...; also set
                               on failure */
    unsigned library_count; /* libraries in the site */
    unsigned function_count;  /* functions in these libraries */
    unsigned simulated_count; /* of these functions, those with an implementation */
    uint64_t library_bytes;   /* sum of the sizes of the libraries */
    bool was_made;            /* true: built by this call; false: from the cache */
};

/* Finds the Python and its PyTorch without importing it (mt_wheel_find). Then builds the libraries,
 * or takes them from the cache. Takes 0.1 s, the first time 1 s. MT_ERR_UNSUPPORTED: this machine,
 * Python or PyTorch cannot be simulated; MT_ERR_USAGE: there is no Python or PyTorch;
 * MT_ERR_OUTPUT: no folder can be written; MT_ERR_IO, MT_ERR_FORMAT: a library of PyTorch cannot be
 * read. The text of *error is one line that states what to do. */
enum mt_status mt_simulated_site_prepare(const struct mt_simulated_site_request *request,
                                         struct mt_simulated_site *site,
                                         struct mt_error *error) MT_MUST_USE;

/* Reads the counts of a site from the text of its file MT_SITE_FACTS. Returns false if it is cut.
 */
bool mt_site_facts_read(const char *text, struct mt_simulated_site *site);

#endif
