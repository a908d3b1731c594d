/* The main of a program of tests that has none of its own. */
#include "test.h"

int main(void)
{
    return tests_run();
}
