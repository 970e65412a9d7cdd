/* A program that loads no libraries. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    puts("hello");
    return argc > 2 ? atoi(argv[2]) : 0;
}
