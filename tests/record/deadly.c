/* A library that kills the process that loads it. */
#include <signal.h>

__attribute__((constructor)) static void kill_process(void)
{
    raise(SIGABRT);
}
