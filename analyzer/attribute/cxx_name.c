/* One pass over the symbol: skips brackets of every kind with their contents; a space outside of
 * brackets ends a return type. */
#include "cxx_name.h"

#include "util.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define ANONYMOUS "(anonymous namespace)::"
#define OPERATOR  "operator"

/* Position after the bracket that closes the one at `at`. In templates the '>' of "->" closes
 * nothing. */
static const char *skip_brackets(const char *at)
{
    int depth = 0;

    for (; *at; at++) {
        if (*at == '<' || *at == '(' || *at == '{' || *at == '[')
            depth++;
        else if ((*at == '>' && at[-1] != '-') || *at == ')' || *at == '}' || *at == ']')
            depth--;
        if (depth == 0)
            return at + 1;
    }
    return at;
}

static bool is_identifier(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Length of "operator<<", "operator()", ... at `at`, 0 if it is not an operator. */
static size_t operator_length(const char *symbol, const char *at)
{
    size_t length = sizeof OPERATOR - 1;

    if (strncmp(at, OPERATOR, length) || (at > symbol && is_identifier(at[-1])) ||
        is_identifier(at[length]))
        return 0;
    if (!strncmp(at + length, "()", 2))
        return length + 2;
    return length + strspn(at + length, "<>=!+-*/%^&|~,[]");
}

/* "f.llvm.7574463793130541339", "f.constprop.0", "f.localalias" -> "f" */
static void cut_clone(char *name)
{
    static const char *const marks[] = {".llvm.", ".localalias", ".constprop.", ".isra.",
                                        ".part.", ".cold",       ".lto_priv."};

    for (size_t i = 0; i < MT_ARRAY_LEN(marks); i++) {
        char *at = strstr(name, marks[i]);

        if (at && at > name)
            *at = '\0';
    }
}

char *mt_cxx_name(const char *symbol, char name[MT_CXX_NAME_SIZE])
{
    const char *at = symbol;
    size_t length = 0, copied;

    while (*at && length < MT_CXX_NAME_SIZE - 1) {
        if (!strncmp(at, ANONYMOUS, sizeof ANONYMOUS - 1)) {
            at += sizeof ANONYMOUS - 1;
        } else if ((copied = operator_length(symbol, at)) > 0) {
            if (copied > MT_CXX_NAME_SIZE - 1 - length)
                copied = MT_CXX_NAME_SIZE - 1 - length;
            memcpy(name + length, at, copied);
            length += copied;
            at += copied;
        } else if (*at == '<') {
            at = skip_brackets(at);
        } else if (*at == '(') {
            at = skip_brackets(at);
            if (strncmp(at, "::", 2)) /* the scope of a lambda continues after its arguments */
                break;
        } else if (*at == '{') {
            at = skip_brackets(at);
            copied = sizeof "{lambda}" - 1;
            if (copied > MT_CXX_NAME_SIZE - 1 - length)
                break;
            memcpy(name + length, "{lambda}", copied);
            length += copied;
        } else if (*at == ' ') {
            if (at[1] != '<') /* "operator<< <char>" */
                length = 0;
            at++;
        } else {
            name[length++] = *at++;
        }
    }
    if (length == 0) {
        length = strnlen(symbol, MT_CXX_NAME_SIZE - 1);
        memcpy(name, symbol, length);
    }
    name[length] = '\0';
    cut_clone(name);
    return name;
}

const char *mt_cxx_last_components(const char *name)
{
    const char *at = name + strlen(name);
    int separators = 0;

    while (at - name >= 2) {
        if (at[-1] == ':' && at[-2] == ':' && ++separators == 2)
            return at;
        at--;
    }
    return name;
}
