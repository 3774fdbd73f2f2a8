/* Runs outside the sandbox and outlives the spawner; no process inside sees it. Ends with the sandbox. */
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { STARTER_FD = 3, MOST_ORDER = 4 * 1024 * 1024, SCORE_BYTES = 16 };

static struct {
  char *bytes; /* freed after the program runs */
  size_t length;
  struct order order;
  int folder; /* with its socket */
  int score; /* OOM score file, with the previous score */
  char score_before[SCORE_BYTES];
  ssize_t score_bytes;
} hold;

static bool take(void *to, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t got = read(STARTER_FD, (char *)to + at, size - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += (size_t)got;
  }
  return true;
}

/* The sender continues to use the socket. */
static void take_order(void) {
  unsigned char head[4];
  if (!take(head, sizeof head)) _exit(EXIT_COULD_NOT); /* cancelled */
  const size_t length = read_number(head);
  char *bytes = length <= MOST_ORDER ? mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  if (bytes == MAP_FAILED) fail("the order is too long", 0);
  if (!take(bytes, length)) fail("the order was cut off", 0);
  read_joining(bytes, length);
  const struct order *order = joining();
  if (!order->holder || !order->told || strlen(order->process) > LONGEST_ID) fail("the order names no holder", 0);
  hold.bytes = bytes;
  hold.length = length;
  hold.order = *order;
}

static char *copy_of(const char *text) {
  char *copy = strdup(text);
  if (!copy) fail("no memory", 0);
  return copy;
}

/* Frees up to 4 MiB of arguments and variables. */
static void keep_of_order(void) {
  struct order *order = &hold.order;
  order->process = copy_of(order->process);
  order->told = copy_of(order->told);
  order->cgroups.items = calloc(order->cgroups.count + 1, sizeof *order->cgroups.items);
  if (!order->cgroups.items) fail("no memory", 0);
  for (size_t i = 0; i < order->cgroups.count; i++) order->cgroups.items[i] = copy_of(joining()->cgroups.items[i]);
}

static void forget_order(void) {
  free(hold.order.args.items);
  free(hold.order.env.items);
  munmap(hold.bytes, hold.length);
}

/* If memory runs out, the child is killed first. */
static void prefer_child(void) {
  hold.score = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  if (hold.score >= 0) hold.score_bytes = pread(hold.score, hold.score_before, SCORE_BYTES, 0);
  prefer_for_oom();
}

static void prefer_itself_no_more(void) {
  if (hold.score < 0) return;
  if (hold.score_bytes > 0 && pwrite(hold.score, hold.score_before, (size_t)hold.score_bytes, 0) < 0) errno = 0;
  close(hold.score);
}

/*
 * One of the sandbox's own has a name in its /dev/pts. No process inside can change /dev, and if its first process still runs afterwards,
 * the pid was the right one. Else one of the host's.
 */
static int open_master(void) {
  enum { FLAGS = O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC };
  const struct order *order = &hold.order;
  char path[64];
  struct stat found;
  snprintf(path, sizeof path, "/proc/%ld/root/dev/pts/ptmx", order->pid);
  int master = order->bare ? -1 : open(path, FLAGS | O_NOFOLLOW);
  if (master >= 0) {
    int same = open_process((pid_t)order->pid, order->start_time);
    const bool is_its_own = same >= 0 && fstat(master, &found) == 0 && found.st_rdev == makedev(5, 2);
    if (same >= 0) close(same);
    if (is_its_own) return master;
    close(master);
  }
  return open("/dev/ptmx", FLAGS);
}

static enum problem begin(const struct program *program, struct child *child) {
  struct ends ends;
  const int master = program->terminal ? open_master() : -1;
  if (program->terminal && master < 0) return NO_TERMINAL;
  enum problem problem = open_ends(program, master, child, &ends);
  if (problem) return problem;
  hand_over(ends.streams);
  child->pid = join_sandbox(ends.streams, ends.report);
  prefer_itself_no_more();
  close_ends(program, &ends);
  forget_order();
  return child->pid > 0 ? DONE : NOT_FOUND;
}

/* In v2's file or v1's. */
static unsigned long long count_in(const char *cgroup, const char *name) {
  unsigned long long count = 0;
  char path[PATH_MAX], line[128];
  snprintf(path, sizeof path, "%s/%s", cgroup, name);
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, "oom_kill ", 9) == 0) {
      count = strtoull(line + 9, NULL, 10);
      break;
    }
  if (file) fclose(file);
  return count;
}

static unsigned long long out_of_memory(void) {
  const struct list *cgroups = &hold.order.cgroups;
  unsigned long long count = 0;
  for (size_t i = 0; i < cgroups->count; i++) count += count_in(cgroups->items[i], "memory.events") + count_in(cgroups->items[i], "memory.oom_control");
  return count;
}

static void forget(void) {
  unlinkat(hold.folder, hold.order.process, 0);
}

int run_hold(void) {
  static struct outside outside = {.begin = begin, .signal = signal_joined, .out_of_memory = out_of_memory, .forget = forget};
  leave_own_file("hold");
  take_order();
  close_from(STARTER_FD + 1);
  reset_process();
  prefer_child();
  /* Processes inside can't inspect this process through /proc: its memory is the caller's, its file the host's. */
  if (prctl(PR_SET_DUMPABLE, 0) < 0) fail("prctl", errno);
  outside.sandbox = find_sandbox();
  keep_of_order();
  const struct order *order = &hold.order;
  hold.folder = open(order->holder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (hold.folder < 0) fail("the socket's folder", errno);
  struct holding holding = {
      .id = order->process,
      .program = {.order = *order, .input = order->input, .terminal = order->columns >= 0},
      .timeout_ms = order->timeout_ms,
      .bound = order->bound,
      .listener = listen_outside(order->holder, order->process, SOCK_NONBLOCK),
      .starter = STARTER_FD,
      .outside = &outside,
  };
  holding.program.size = (struct winsize){.ws_col = (unsigned short)order->columns, .ws_row = (unsigned short)order->rows};
  umask(022);
  if (fcntl(STARTER_FD, F_SETFL, O_NONBLOCK) < 0 || fcntl(STARTER_FD, F_SETFD, FD_CLOEXEC) < 0) fail("fcntl", errno);
  hold_process(&holding);
}
