#include "cli.h"

int main(void) { return MT_EXIT_USAGE; }
