/*
 * Modes that exec starts in a Pod's container. A command first prints its pid. Orders come on fd 0, because the audit logs of API servers
 * contain arguments.
 */
#include "launcher.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { MOST_ORDER = 4 * 1024 * 1024, MOST_PROCESSES = 32 * 1024, ROUNDS = 30, GRACE_SECONDS = 1 };

static void say_number(void) {
  if (dprintf(1, "%d\n", (int)getpid()) < 0) _exit(EXIT_COULD_NOT);
}

/* Reads nothing that follows. */
static void take_order(size_t length, struct order *order) {
  char *bytes = length <= MOST_ORDER ? malloc(length + 1) : NULL;
  if (!bytes) fail("the order is too long", 0);
  for (size_t at = 0; at < length;) {
    ssize_t got = read(0, bytes + at, length - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("the order was cut off", got < 0 ? errno : 0);
    at += (size_t)got;
  }
  parse_order(bytes, length, order);
}

static size_t read_length(const char *text) {
  unsigned long long length;
  if (!parse_number(text, MOST_ORDER, &length)) fail("the order's length is none", 0);
  return (size_t)length;
}

/* If input arrives after the program has ended, the runtime drops output that it has not passed on. */
static void await_end(void) {
  char dropped[16 * 1024];
  for (ssize_t got; (got = read(0, dropped, sizeof dropped)) > 0 || (got < 0 && errno == EINTR);) continue;
}

void take_environment(const struct list *env) {
  const char *encoding = getenv("LANG");
  if (!encoding || !*encoding) setenv("LANG", "C.UTF-8", 1);
  for (size_t i = 0; i < env->count; i++) putenv(env->items[i]);
}

_Noreturn static void become(char **argv) {
  reset_process();
  execvp(argv[0], argv);
  const int error = errno;
  complain(argv[0], error);
  _exit(exit_code_of_exec(error));
}

/* After the order's marker, on both streams: background processes may hold them open for long. */
int run_exec(const char *length) {
  struct order order;
  int status;
  find_home();
  say_number();
  take_order(read_length(length), &order);
  if (order.args.count == 0 || !order.told) fail("the order names no command", 0);
  if (order.cwd && enter_folder(order.cwd) < 0) {
    complain(order.cwd, errno);
    await_end();
    return EXIT_COULD_NOT;
  }
  pid_t command = fork();
  if (command == 0) {
    take_environment(&order.env);
    become(order.args.items);
  }
  if (command < 0) fail("fork", errno);
  while (waitpid(command, &status, 0) < 0 && errno == EINTR) continue;
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  signal(SIGPIPE, SIG_IGN);
  for (int fd = 1; fd <= 2; fd++)
    if (dprintf(fd, "%s%d\n", order.told, code) < 0) continue; /* nobody reads this stream any more */
  await_end();
  return 0;
}

/* The terminal does not echo or interpret the order. The line `ready` confirms it. */
int run_terminal(char **argv) {
  const size_t length = read_length(argv[0]);
  struct order order = {0};
  find_home();
  struct termios usual, raw;
  if (length > 0) {
    if (tcgetattr(0, &usual) < 0) fail("the terminal is none", errno);
    raw = usual;
    cfmakeraw(&raw);
    if (tcsetattr(0, TCSANOW, &raw) < 0) fail("the terminal", errno);
  }
  say_number();
  if (length > 0) {
    take_order(length, &order);
    if (tcsetattr(0, TCSANOW, &usual) < 0) fail("the terminal", errno);
    if (dprintf(1, "ready\n") < 0) _exit(EXIT_COULD_NOT);
  }
  setenv("TERM", "xterm-256color", 1);
  take_environment(&order.env);
  become(argv + 1);
}

static int number_of(const char *text, unsigned long long max) {
  unsigned long long number;
  if (!parse_number(text, max, &number) || number == 0) fail("a number is none", 0);
  return (int)number;
}

/* The foreground group of its terminal, or the process itself. */
int run_signal(const char *process, const char *number) {
  const pid_t pid = number_of(process, INT_MAX), group = foreground_group(pid);
  return kill(group > 0 ? -group : pid, number_of(number, 64)) < 0;
}

struct seen {
  pid_t pid, parent, session;
  bool meant;
};

static int by_pid(const void *one, const void *other) {
  const pid_t a = ((const struct seen *)one)->pid, b = ((const struct seen *)other)->pid;
  return (a > b) - (a < b);
}

static size_t look(struct seen *seen) {
  size_t count = 0;
  DIR *folder = opendir("/proc");
  if (!folder) fail("/proc", errno);
  for (struct dirent *entry; count < MOST_PROCESSES && (entry = readdir(folder)) != NULL;) {
    unsigned long long pid;
    struct seen *next = &seen[count];
    if (!parse_number(entry->d_name, INT_MAX, &pid)) continue;
    next->meant = false;
    next->pid = (pid_t)pid;
    if (read_kin(next->pid, &next->parent, &next->session)) count++;
  }
  closedir(folder);
  qsort(seen, count, sizeof *seen, by_pid);
  return count;
}

static bool is_meant(const struct seen *seen, size_t count, pid_t pid) {
  const struct seen wanted = {.pid = pid}, *found = bsearch(&wanted, seen, count, sizeof *seen, by_pid);
  return found && found->meant;
}

static void mark(struct seen *seen, size_t count) {
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t i = 0; i < count; i++) {
      if (seen[i].meant || !is_meant(seen, count, seen[i].parent)) continue;
      seen[i].meant = grown = true;
    }
  }
}

/* Kills what survives the signal for a second, until no process is left. A process once seen stays marked, even if its parent is gone. */
int run_end(const char *process, const char *signal_number) {
  static struct seen before[MOST_PROCESSES], now[MOST_PROCESSES];
  const pid_t root = number_of(process, INT_MAX), own = getpid();
  int number = number_of(signal_number, 64);
  size_t known = 0;
  for (int round = 0; round < ROUNDS; round++) {
    const size_t count = look(now);
    for (size_t i = 0; i < count; i++)
      now[i].meant = now[i].pid == root || now[i].session == root || is_meant(before, known, now[i].pid);
    mark(now, count);
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
      if (now[i].meant && now[i].pid != own && (kill(now[i].pid, number) == 0 || errno != ESRCH)) left++;
    if (left == 0) return 0;
    if (number != SIGKILL) sleep(GRACE_SECONDS);
    else usleep(1000);
    number = SIGKILL;
    memcpy(before, now, count * sizeof *now);
    known = count;
  }
  return 1;
}
