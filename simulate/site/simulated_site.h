/* The site of a dry run: simulated CUDA libraries for the PyTorch of a command's Python, under the
 * names, with the functions and with the versions that its libraries ask for. Nothing of the user's
 * environment is changed, no GPU is touched, no compiler is needed.
 *
 * The program gets them by LD_PRELOAD of one library that needs all of them: the loader matches
 * later requests by name with what is there, before it looks anywhere else (DT_RPATH and installed
 * nvidia-* packages included). */
#ifndef MT_SIMULATED_SITE_H
#define MT_SIMULATED_SITE_H

#include <limits.h>
#include <stdbool.h>

#include "status.h"

struct mt_simulated_site_request {
    char *const *command;           /* as execvp gets it; ends with NULL */
    const char *cache_folder;       /* NULL: the user's (site_cache.h) */
    const char *simulated_library;  /* absolute path of libmemtrace-simulated-cuda.so */
    const char *python_shim_folder; /* what goes before PYTHONPATH; NULL: nothing */
};

struct mt_simulated_site {
    char folder[PATH_MAX];      /* where the libraries lie */
    char cache[PATH_MAX];       /* where it lies; for temporary folders too (mt_cache_begin) */
    char preload[PATH_MAX];     /* for LD_PRELOAD; holds neither space nor colon */
    char cupti[PATH_MAX];       /* for MEMTRACE_CUPTI: the simulated one */
    char cudnn[PATH_MAX];       /* the program's own libcudnn_graph.so.9; empty: there is none */
    char python_path[PATH_MAX]; /* to put in front of PYTHONPATH; empty: nothing */
    char torch_version[64];     /* "2.11.0+cu130" */
    char torch_folder[PATH_MAX];
    char cuda_version[16];    /* "13.0": what PyTorch was built for */
    char python[PATH_MAX];    /* the interpreter that was asked */
    char python_version[16];  /* "3.12" */
    char python_from[64];     /* why this one: "the command", "VIRTUAL_ENV", ...; also on failure */
    unsigned library_count;   /* that were made */
    unsigned function_count;  /* in them */
    unsigned simulated_count; /* of those: with an answer of their own, not a constant */
    bool was_made;            /* now; false: it was in the cache */
};

/* Finds the Python and its PyTorch without importing it (it runs that Python for a moment, up to 60
 * seconds), makes the libraries or takes them from the cache. 0.1 s, the first time 1 s.
 * MT_ERR_UNSUPPORTED: this machine, Python or PyTorch cannot be simulated; MT_ERR_USAGE: there is
 * no Python or PyTorch; MT_ERR_OUTPUT: no folder can be written; MT_ERR_IO, MT_ERR_FORMAT: a
 * library of PyTorch cannot be read. The text is one line for the user with what to do. */
enum mt_status mt_simulated_site_prepare(const struct mt_simulated_site_request *request,
                                         struct mt_simulated_site *site,
                                         struct mt_error *error) MT_MUST_USE;

#endif
