/* The streams of a process, and in a Pod its start. */
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { REPORT_FD = 3 };

static int tell(char what) {
  const int error = errno;
  const char report[2] = {what, (char)error};
  if (write(REPORT_FD, report, sizeof report) < 0) return error; /* the holder is gone, so this process ends soon */
  return error;
}

_Noreturn static void become(const struct program *program, const struct ends *ends, pid_t holder) {
  const struct order *order = &program->order;
  /* A process without a holder could be neither listed nor ended. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != holder) _exit(EXIT_COULD_NOT);
  setsid();
  for (int fd = 0; fd < 3; fd++)
    if (dup2(ends->streams[fd], fd) < 0) _exit(EXIT_COULD_NOT);
  if (dup2(ends->report, REPORT_FD) < 0 || fcntl(REPORT_FD, F_SETFD, FD_CLOEXEC) < 0) _exit(EXIT_COULD_NOT);
  close_from(REPORT_FD + 1);
  if (program->terminal && ioctl(0, TIOCSCTTY, 0) < 0) _exit(EXIT_COULD_NOT);
  if (program->terminal) setenv("TERM", "xterm-256color", 1);
  take_environment(&order->env);
  reset_process();
  if (order->cwd && enter_folder(order->cwd) < 0) {
    tell('c');
    _exit(EXIT_COULD_NOT);
  }
  execvp(order->args.items[0], order->args.items);
  const int error = tell('e');
  complain(order->args.items[0], error);
  _exit(exit_code_of_exec(error));
}

/* By its name, because some kernels of Pods lack the ioctl. A terminal of another devpts has no name in this one. */
static int open_other_end(int master, bool is_given) {
  char name[64];
  const int unlocked = 0;
  if (is_given) return ioctl(master, TIOCSPTLCK, &unlocked) < 0 ? -1 : ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (unlockpt(master) < 0 || ptsname_r(master, name, sizeof name) != 0) return -1;
  return open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static bool open_terminal(const struct program *program, int given, struct child *child, int ends[3]) {
  const int master = given >= 0 ? given : posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (master < 0) return false;
  child->input = child->outputs[0] = master;
  ends[0] = ends[1] = ends[2] = open_other_end(master, given >= 0);
  return ends[0] >= 0 && ioctl(master, TIOCSWINSZ, &program->size) == 0;
}

static bool open_pipe(int *reads, int *writes, int *own) {
  int both[2];
  if (pipe2(both, O_CLOEXEC) < 0) return false;
  *reads = both[0];
  *writes = both[1];
  return fcntl(*own, F_SETFL, O_NONBLOCK) == 0;
}

static bool open_pipes(const struct program *program, struct child *child, int ends[3]) {
  if (!open_pipe(&child->outputs[0], &ends[1], &child->outputs[0]) || !open_pipe(&child->outputs[1], &ends[2], &child->outputs[1])) return false;
  if (program->input) return open_pipe(&ends[0], &child->input, &child->input);
  return (ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
}

enum problem open_ends(const struct program *program, int master, struct child *child, struct ends *ends) {
  *child = (struct child){.input = -1, .outputs = {-1, -1}};
  if (program->terminal && !open_terminal(program, master, child, ends->streams)) return NO_TERMINAL;
  if (!program->terminal && !open_pipes(program, child, ends->streams)) return TOO_MANY;
  return open_pipe(&child->report, &ends->report, &child->report) ? DONE : TOO_MANY;
}

void close_ends(const struct program *program, const struct ends *ends) {
  close(ends->report);
  for (int i = 0; i < (program->terminal ? 1 : 3); i++) close(ends->streams[i]);
}

enum problem begin_child(const struct program *program, struct child *child) {
  struct ends ends;
  const pid_t holder = getpid();
  enum problem problem = open_ends(program, -1, child, &ends);
  if (problem) return problem;
  child->pid = fork();
  if (child->pid < 0) return TOO_MANY;
  if (child->pid == 0) become(program, &ends, holder);
  close_ends(program, &ends);
  return DONE;
}
