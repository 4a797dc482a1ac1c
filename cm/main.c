/* cm: the Central Manager's command line, and its daemon. */
#include "cm/cli/verbs.h"

int main(int argc, char **argv)
{
    return mfs_program_run(&mfs_cm_program, argc, argv);
}
