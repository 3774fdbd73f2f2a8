/* See README.md. */
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>

/* As in a shell. */
enum { EXIT_COULD_NOT = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

#define LAUNCHER_INSIDE "/.sandpool/launcher"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* launcher.c */

/* `launcher: WHAT: REASON` on fd 2; no reason if `error` is 0. */
void complain(const char *what, int error);
/* Exits with 125. */
_Noreturn void fail(const char *what, int error);
/* 127 if the program does not exist, else 126. */
int exit_code_of_exec(int error);
/* At most `limit` bytes, and a NUL. Exits on failure. */
char *read_whole(int fd, size_t limit, size_t *length);
/* In place, into at most `most` fields; returns their number. */
size_t split_line(char *line, const char **fields, size_t most);
/* Exits before Linux 5.9. */
void close_from(int first);
/* Without close-on-exec. */
int memfd_of(const char *name, const void *bytes, size_t length);
long long now_ms(void);

/* order.c */

struct list {
  char **items; /* ends with NULL */
  size_t count;
};

struct limit {
  int resource;
  struct rlimit value;
};

/* -1: number not given. */
struct order {
  long uid, gid, inside_uid, inside_gid, pid;
  unsigned long long start_time;
  const char *bwrap, *cwd, *output, *told;
  bool bare; /* no bwrap, no namespaces, no filter */
  bool network; /* start: makes the sandbox's network itself */
  const char *holder, *process; /* hold: of its socket */
  bool input, bound;
  long columns, rows, timeout_ms; /* hold: of its terminal; 0 without one */
  struct list cgroups, env, args;
  struct list tmpfs; /* folders and mount options by turns */
  struct list folders; /* volumes and paths by turns */
  struct limit limits[8];
  size_t limit_count;
};

/* Exits with 125 if it is malformed or lacks its `go`. */
void read_order(int fd, struct order *order);
/* The bytes must stay valid. */
void parse_order(char *bytes, size_t length, struct order *order);
/* Decimal, up to `max`. */
bool parse_number(const char *text, unsigned long long max, unsigned long long *value);

/* process.c */

/* Signals and umask (022). */
void reset_process(void);
/* To be called before the process becomes undumpable. */
void prefer_for_oom(void);
/* The process must be single-threaded. */
void enter_cgroups(const struct list *cgroups);
/* Capped by the own hard limit. */
void set_limit(int resource, struct rlimit value);
/* Except the bounding set. Sets no_new_privs. */
void drop_capabilities(void);
/* The daemon's keyring is then out of reach. Ignores failures. */
void leave_keyring(void);
/* Returns a pidfd, or -1 with ESRCH: a reused pid is never mistaken for the process. `start_time` is field 22 of its stat. */
int open_process(pid_t pid, unsigned long long start_time);
/* 0 without a terminal. */
pid_t foreground_group(pid_t pid);
/* False if it does not exist or has ended. */
bool read_kin(pid_t pid, pid_t *parent, pid_t *session);

/* folder.c */

/* -1 with errno if a part of the path is not a folder, or leads out. */
int open_beneath(const char *volume, const char *path);

/* network.c */

/* Enters a new network with only a loopback, where every port is free and `ping` works. Needs root. */
void make_network(void);

/* listen.c */

/* Mode 0600. `flags` as in socket(2). */
int listen_outside(const char *folder, const char *name, int flags);

/* join.c */

/* Exits on failure. */
void read_joining(char *bytes, size_t length);
const struct order *joining(void);
/* As MODE, if the sandbox could write to the file. */
void leave_own_file(const char *mode);
/* Returns a pidfd of its first process. */
int find_sandbox(void);
/* To the sandbox's user. */
void hand_over(const int streams[3]);
/* As a child. Reports its pid and whether it runs on `report` (README.md). 0 if nothing was started. */
pid_t join_sandbox(const int streams[3], int report);
/* The terminal's foreground group, or else the command's. */
void signal_joined(int number);

/* exec.c */

/* With the default encoding unless the image or template sets one. */
void take_environment(const struct list *env);

/* home.c */

/* Links /home/user to it if possible. */
void find_home(void);
/* Maps /home/user to the home if it does not exist. */
int enter_folder(const char *path);

/* files.c */

/* Returns after `idle_ms` without requests. */
void serve_files(int listener, int idle_ms);

/* seccomp.c */

/* For main processes and joined ones. */
const struct sock_fprog *syscall_filter(void);

/* listener.c */

/* To be called before the filter is installed. */
void open_diagnosis(void);
/* Who would take a connection to this port of the loopback address: 0 if the uid does, EACCES if another, ECONNREFUSED if nobody. */
int whose_port(sa_family_t family, unsigned port, uid_t uid);

/* modes */

int run_start(void);
int run_init(char **argv);
int run_join(void);
int run_hold(void);
int run_files(void);
int run_call(void);
int run_exec(const char *length);
int run_terminal(char **argv);
int run_signal(const char *process, const char *number);
int run_end(const char *process, const char *signal_number);
int run_watch(void);
int run_logs(char **argv);
int run_forward(void);

#endif
