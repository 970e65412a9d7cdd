#include "libraries.h"

#include "ascii.h"
#include "frame_judge.h"
#include "util.h"

#include <string.h>

/* Its builds may link other libraries, especially NCCL, into its own files. */
static const char pytorch[] = "PyTorch";

/* memtrace's own: the functions of NCCL that the recorder wraps, and in a dry run (simulate/driver)
 * those of many libraries. */
static const char own[] = "libmemtrace-";

/* Prefixes of file names, first match wins. NULL: no evidence; the caller decides. */
static const struct {
    const char *beginning, *library;
} files[] = {
    {"libcuda.so", NULL},
    {"libcudart", NULL},
    {"libcupti", NULL},
    {own, NULL},
    {"libnccl", "NCCL"},
    {"libnvshmem", "NVSHMEM"},
    {"nvshmem_", "NVSHMEM"},
    {"libcublasLt", "cuBLASLt"},
    {"libcublas", "cuBLAS"},
    {"libnvblas", "cuBLAS"},
    {"libcudnn", "cuDNN"},
    {"libcusolver", "cuSOLVER"},
    {"libcusparseLt", "cuSPARSELt"},
    {"libcusparse", "cuSPARSE"},
    {"libcufft", "cuFFT"},
    {"libcurand", "cuRAND"},
    {"libcutensor", "cuTENSOR"},
    {"libcufile", "cuFile"},
    {"libcudss", "cuDSS"},
    {"libnvinfer", "TensorRT"},
    {"libnvjpeg", "nvJPEG"},
    {"libnpp", "NPP"},
    {"libnvcomp", "nvCOMP"},
    {"librmm", "RMM"},
    {"libcudf", "cuDF"},
    {"libcuml", "cuML"},
    {"libucp", "UCX"},
    {"libuct", "UCX"},
    {"libucs", "UCX"},
    {"libucm", "UCX"},
    {"libmpi", "MPI"},
    {"libonnxruntime", "ONNX Runtime"},
    {"libtensorflow", "TensorFlow"},
    {"xla_cuda_plugin", "XLA"},
    {"libjax", "XLA"},
    {"libc10", pytorch},
    {"libtorch", pytorch},
    {"libtriton", "Triton"},
};

/* Libraries by the names of their functions: those recorded with source lines, because a frame has
 * no room for both line and library, and those that are linked into PyTorch. */
static const struct {
    const char *beginning, *library;
} prefixes[] = {
    {"nccl", "NCCL"}, {"pnccl", "NCCL"}, {"nvshmem", "NVSHMEM"},
    {"ucp_", "UCX"},  {"uct_", "UCX"},   {"rmm::", "RMM"},
};

/* Entry points of NCCL: its public functions that may take memory (nccl.h), also with a "p" prefix,
 * and the functions of its threads. If only source lines are known, another function that begins
 * with "nccl" may be the program's own. */
static const char *const nccl_entries[] = {
    "ncclCommInitRank",
    "ncclCommInitRankConfig",
    "ncclCommInitAll",
    "ncclCommInitRankScalable",
    "ncclCommSplit",
    "ncclCommShrink",
    "ncclCommGrow",
    "ncclCommRegister",
    "ncclMemAlloc",
    "ncclCommWindowRegister",
    "ncclReduce",
    "ncclBcast",
    "ncclBroadcast",
    "ncclAllReduce",
    "ncclReduceScatter",
    "ncclAllGather",
    "ncclAlltoAll",
    "ncclGather",
    "ncclScatter",
    "ncclSend",
    "ncclRecv",
    "ncclGroupStart",
    "ncclGroupEnd",
    "ncclDevCommCreate",
    "ncclAsyncJobMain",
    "ncclProxyService",
    "ncclProxyServiceUDS",
    "ncclProxyProgress",
};

/* Prefixes of function names, first match wins. */
static const struct {
    const char *beginning, *what;
} functions[] = {
    {"ncclCommInitAll", "communicators, one a device"},
    {"ncclCommInit", "communicator"},
    {"ncclCommSplit", "communicator"},
    {"ncclCommShrink", "communicator"},
    {"ncclCommGrow", "communicator"},
    {"ncclCommRegister", "registered user buffers"},
    {"ncclCommWindowRegister", "registered user buffers"},
    {"ncclMemAlloc", "memory for user buffers"},
    {"ncclDevCommCreate", "device communicator"},
    {"nccl", "connections"},
    {"cublasCreate", "handle"},
    {"cublasLtCreate", "handle"},
    {"cudnnCreate", "handle"},
    {"cusolverDnCreate", "handle"},
    {"cusolverSpCreate", "handle"},
    {"cusparseCreate", "handle"},
    {"cusparseLtInit", "handle"},
    {"cutensorCreate", "handle"},
    {"cufftPlan", "plan"},
    {"cufftMakePlan", "plan"},
    {"cufftXtMakePlan", "plan"},
    {"curandCreateGenerator", "generator"},
    {"nvshmem_init", "symmetric heap"},
    {"nvshmemx_init", "symmetric heap"},
    {"nvshmemx_hostlib_init", "symmetric heap"},
    {"nvshmem_malloc", "symmetric heap"},
    {"cublas", "workspace"},
    {"cusolver", "workspace"},
};

/* Calls of the driver and its runtime that take memory for graphs. */
static const char *const graph_calls[] = {"cudaGraph", "cuGraph"};

enum { NOT_LISTED = -1 };

/* "[libnccl.so.2]", or "/usr/lib/libnccl.so.2 (build id 5e7...)" if names were not resolved. */
static const char *base_of_module(const char *file)
{
    return *file == '[' ? file + 1 : mt_code_base_name(file);
}

static int row_of(const char *base)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(files); i++)
        if (mt_begins_with(base, files[i].beginning))
            return (int)i;
    return NOT_LISTED;
}

static bool has_name(const char *function)
{
    return *function && !mt_begins_with(function, "+0x") && !mt_begins_with(function, "0x");
}

static bool is_graph_call(const char *function)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(graph_calls); i++)
        if (mt_begins_with(function, graph_calls[i]))
            return true;
    return false;
}

/* Whether it is a file of source code, not of a library. */
static bool is_source(const char *file)
{
    return *file && *file != '[' && !strstr(file, ".so");
}

static const char *library_by_name(const char *function)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(prefixes); i++)
        if (mt_begins_with(function, prefixes[i].beginning))
            return prefixes[i].library;
    return NULL;
}

/* The library of a frame's file. In memtrace's own files, the name of the function decides. */
static const char *library_of_row(int row, const char *function)
{
    if (row == NOT_LISTED)
        return NULL;
    return files[row].beginning == own ? library_by_name(function) : files[row].library;
}

struct walk {
    struct mt_stack_owner owner;
    const char *file_library; /* library of the files of the owner's frames */
    bool in_source; /* frames of a library that so far, or always, only its source names */
};

static bool begin_graph(struct walk *walk, uint32_t frame)
{
    walk->owner = (struct mt_stack_owner){"CUDA graphs", MT_NO_ID, frame, NULL};
    return false;
}

static bool enters_nccl(const char *function)
{
    const char *name = *function == 'p' ? function + 1 : function;
    const size_t length = strcspn(name, "(");

    for (size_t i = 0; i < MT_ARRAY_LEN(nccl_entries); i++)
        if (strlen(nccl_entries[i]) == length && !strncmp(name, nccl_entries[i], length))
            return true;
    return false;
}

static const char *library_of_source(const char *function)
{
    const char *library = library_by_name(function);

    return library && !strcmp(library, "NCCL") && !enters_nccl(function) ? NULL : library;
}

/* A frame with a source line: belongs to the current library, as far as is known. */
static bool take_source(struct walk *walk, uint32_t frame, const char *function)
{
    const char *library = library_of_source(function);
    struct mt_stack_owner *owner = &walk->owner;

    if (owner->library && !walk->in_source)
        return false;
    walk->in_source = true;
    if (owner->module == MT_NO_ID && !owner->library)
        owner->module = frame;
    if (library && (!owner->library || !strcmp(owner->library, library))) {
        *owner = (struct mt_stack_owner){library, MT_NO_ID, frame, NULL};
        return true;
    }
    return true;
}

static bool take_library(struct walk *walk, uint32_t frame, const char *library,
                         const char *function)
{
    struct mt_stack_owner *owner = &walk->owner;
    const char *before = walk->file_library ? walk->file_library : owner->library;
    const char *linked = library == pytorch ? library_by_name(function) : NULL;

    if (!owner->library && owner->module == MT_NO_ID && !library)
        owner->module = frame;
    if (owner->module != MT_NO_ID || !library || (before && strcmp(before, library) != 0))
        return false;
    walk->file_library = library;
    if (linked)
        owner->library = linked;
    else if (!owner->library)
        owner->library = library;
    if (linked || (has_name(function) && !strcmp(owner->library, library)))
        owner->call = frame;
    return true;
}

/* Returns false at the end of the walk. */
static bool take_frame(struct walk *walk, const struct mt_symbols *symbols, uint32_t id)
{
    const char *function = mt_symbols_text(symbols, symbols->frames[id].function);
    const char *file = mt_symbols_text(symbols, symbols->frames[id].file);
    int row = row_of(base_of_module(file));
    const char *library = library_of_row(row, function);
    bool is_at_start = !walk->owner.library && walk->owner.module == MT_NO_ID;

    if (!mt_code_is_native(function, file))
        return false;
    if (is_at_start && row != NOT_LISTED && !library)
        return !is_graph_call(function) || begin_graph(walk, id);
    return is_source(file) ? take_source(walk, id, function)
                           : take_library(walk, id, library, function);
}

struct mt_stack_owner mt_stack_owner(const struct mt_symbols *symbols, uint32_t stack)
{
    struct walk walk = {.owner = {NULL, MT_NO_ID, MT_NO_ID, NULL}};
    struct mt_stack_owner *owner = &walk.owner;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent)
        if (symbols->stacks[stack].frame >= symbols->frame_count ||
            !take_frame(&walk, symbols, symbols->stacks[stack].frame))
            break;
    if (owner->call != MT_NO_ID)
        owner->what =
            mt_library_what(mt_symbols_text(symbols, symbols->frames[owner->call].function));
    return *owner;
}

const char *mt_library_what(const char *function)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(functions); i++)
        if (mt_begins_with(function, functions[i].beginning))
            return functions[i].what;
    return NULL;
}

bool mt_libraries_is_nccl_range(const char *range, const char **call)
{
    static const char domain[] = "NCCL: ";

    if (!mt_begins_with(range, domain))
        return false;
    *call = range + sizeof domain - 1;
    return true;
}

bool mt_makes_communicators(const char *call)
{
    return mt_begins_with(call, "ncclCommInitAll");
}

bool mt_makes_communicator(const char *call)
{
    const char *what = mt_library_what(call);

    return what && !strcmp(what, "communicator");
}
