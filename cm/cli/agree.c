#include "cm/cli/agree.h"

#include <stdio.h>
#include <unistd.h>

bool mfs_agree_can_ask(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool mfs_agree(const char *what)
{
    char answer[8] = "";

    if (!mfs_agree_can_ask())
        return false;
    fprintf(stderr, "%s\nGo on? [y/N] ", what);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}
