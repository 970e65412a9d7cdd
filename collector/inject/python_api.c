/* See python_api.h. */
#include "python_api.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* Stores the address of a function in a pointer to function, in the way that POSIX requires. */
static bool find(void *library, const char *name, void *pointer)
{
    void *address = dlsym(library, name);

    memcpy(pointer, &address, sizeof address);
    return address != NULL;
}

/* "3.11.7 (main, ..." from Py_GetVersion: 3.9 and 3.10 have no Py_Version. */
static uint32_t parse_version(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, &end, 10) : 0;

    return major < 256 && minor < 256 ? (uint32_t)(major << 24 | minor << 16) : 0;
}

static uint32_t read_version(void *library)
{
    const char *(*get_version)(void);
    const unsigned long *version;

    if (find(library, "Py_Version", &version))
        return (uint32_t)*version;
    if (find(library, "Py_GetVersion", &get_version))
        return parse_version(get_version());
    return 0;
}

static bool find_in(void *library, struct mt_python_api *api)
{
    void *type;

    if (!find(library, "PyCode_Type", &type))
        return false;
    api->code_type = type;
    api->version = read_version(library);
    find(library, "_PyRuntime", &api->runtime);
    find(library, "PyGC_Disable", &api->gc_disable);
    find(library, "PyGC_Enable", &api->gc_enable);
    return find(library, "PyUnicode_Type", &api->text_type) &&
           find(library, "PyBytes_Type", &api->bytes_type) &&
           find(library, "Py_IsInitialized", &api->is_initialized) &&
           (find(library, "Py_IsFinalizing", &api->is_finalizing) ||
            find(library, "_Py_IsFinalizing", &api->is_finalizing)) &&
           find(library, "PyGILState_GetThisThreadState", &api->this_thread) &&
           find(library, "Py_AddPendingCall", &api->add_pending) &&
           (find(library, "PyThreadState_GetUnchecked", &api->current_thread) ||
            find(library, "_PyThreadState_UncheckedGet", &api->current_thread)) &&
           find(library, "PyEval_GetFrame", &api->get_frame) &&
           find(library, "PyFrame_GetBack", &api->get_back) &&
           find(library, "PyFrame_GetCode", &api->get_code) &&
           find(library, "PyFrame_GetLineNumber", &api->get_line) &&
           find(library, "PyObject_GetAttrString", &api->get_attribute) &&
           find(library, "PyUnicode_AsUTF8AndSize", &api->get_text) &&
           find(library, "PyBytes_AsString", &api->get_bytes) &&
           find(library, "PyLong_AsLong", &api->get_long) &&
           find(library, "PyErr_Occurred", &api->error) &&
           find(library, "PyErr_Clear", &api->clear_error) &&
           find(library, "Py_IncRef", &api->increase) && find(library, "Py_DecRef", &api->decrease);
}

/* Copies the path of the first library called libpython3... to `data`. */
static int remember_library(struct dl_phdr_info *info, size_t bytes, void *data)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    size_t length = strlen(info->dlpi_name);

    (void)bytes;
    if (strncmp(name, "libpython3", 10) != 0 || length >= 4096)
        return 0;
    memcpy(data, info->dlpi_name, length + 1);
    return 1;
}

bool mt_python_api_find(struct mt_python_api *api)
{
    char path[4096];
    void *library;

    *api = (struct mt_python_api){0};
    if (find_in(RTLD_DEFAULT, api))
        return true;
    /* a program that embeds Python may not export its symbols */
    if (!dl_iterate_phdr(remember_library, path))
        return false;
    library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD); /* stays open, so that it is not unloaded */
    return library && find_in(library, api);
}
