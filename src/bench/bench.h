/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subcommand `ringside bench`: what the program calls.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

/* argv[0] is the subcommand.  The exit status. */
int command_bench(int argc, char **argv);

/* Prints the options on the standard output. */
void command_bench_help(void);

#endif
