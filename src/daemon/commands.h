/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's subcommands: each takes the words from its own name on and returns an exit status.
 */
#ifndef DAEMON_COMMANDS_H
#define DAEMON_COMMANDS_H

int command_serve(int argc, char **argv);
int command_vhost_user_blk(int argc, char **argv);

/* Their help, to stdout. */
void command_serve_help(void);
void command_vhost_user_blk_help(void);

#endif
