/* What redaction may keep: names that are made of words that CUDA, Python and machine learning
 * frameworks use, and folders that are the same on every machine. A name that is not known is
 * private. Redaction keeps nothing because of the text around it. */
#ifndef MT_TRACE_PUBLIC_NAMES_H
#define MT_TRACE_PUBLIC_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the name consists of known words, numbers of at most six digits, and "_.+-:#":
 * "max_pool2d_1", "BiasAdd", "python3.12". O(length). */
bool mt_public_name(const char *text, size_t length);

/* The same for an element of the path of an operation: known names, and the names of functions in
 * the transformations of JAX, such as "jvp(jit(train))". Names of functions stay everywhere. */
bool mt_public_element(const char *text, size_t length);

/* Returns whether the name has the extension of a source file, a library or another file that
 * frameworks read: "train.py", "libcudart.so.13", "x.cpp:12". */
bool mt_public_file_name(const char *text, size_t length);

/* Returns the start of the public end of a folder, `length` bytes with a '/' at their end: 0 if the
 * whole folder is public, `length` if nothing is. Everything below site-packages/ is public. Below
 * torch/, aten/, c10/, caffe2/, lib/python3.N/ and the folders of the system, each name has to be
 * known. O(length). */
size_t mt_public_folder(const char *path, size_t length);

#endif
