/* Shortens demangled C++ symbols to the part that people use. */
#ifndef MT_ANALYZER_CXX_NAME_H
#define MT_ANALYZER_CXX_NAME_H

#include <stddef.h>

/* Maximum length of a name; longer ones are cut. */
#define MT_CXX_NAME_SIZE 256

/* The qualified name without return type, arguments, template arguments and anonymous namespaces:
 *     at::Tensor at::_sum_to<c10::SymInt>(at::Tensor, bool)  ->  at::_sum_to
 * Other text is returned unchanged. Returns `name`. */
char *mt_cxx_name(const char *symbol, char name[MT_CXX_NAME_SIZE]);

/* Its last two components: "DeviceCachingAllocator::malloc". Points into name. */
const char *mt_cxx_last_components(const char *name);

#endif
