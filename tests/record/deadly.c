/* A library that kills whoever loads it. */
#include <signal.h>

__attribute__((constructor)) static void kill_process(void)
{
    raise(SIGABRT);
}
