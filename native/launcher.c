#include "launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "start") == 0 && argc == 2) return run_start();
  if (strcmp(mode, "init") == 0) return run_init(argv + 2);
  if (strcmp(mode, "join") == 0 && argc == 2) return run_join();
  if (strcmp(mode, "hold") == 0 && argc == 2) return run_hold();
  if (strcmp(mode, "files") == 0 && argc == 2) return run_files();
  if (strcmp(mode, "call") == 0 && argc == 2) return run_call();
  if (strcmp(mode, "run") == 0 && argc == 3) return run_exec(argv[2]);
  if (strcmp(mode, "terminal") == 0 && argc >= 4) return run_terminal(argv + 2);
  if (strcmp(mode, "signal") == 0 && argc == 4) return run_signal(argv[2], argv[3]);
  if (strcmp(mode, "end") == 0 && argc == 4) return run_end(argv[2], argv[3]);
  if (strcmp(mode, "watch") == 0 && argc == 2) return run_watch();
  if (strcmp(mode, "logs") == 0 && argc == 6) return run_logs(argv + 2);
  if (strcmp(mode, "forward") == 0 && argc == 2) return run_forward();
  fail("called as: launcher start | init [ARGV...] | join | hold | files | call | run BYTES | terminal BYTES ARGV... | signal PID NUMBER | end PID NUMBER | watch | forward | logs FOLDER FILE_BYTES TOTAL_BYTES RETENTION_SECONDS", 0);
}

void complain(const char *what, int error) {
  char line[512];
  const char *reason = error ? strerror(error) : NULL;
  int length = snprintf(line, sizeof line, "launcher: %s%s%s\n", what, reason ? ": " : "", reason ? reason : "");
  if (length < 0) return;
  size_t size = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
  line[size - 1] = '\n';
  if (write(2, line, size) < 0) return; /* nobody reads stderr any more */
}

void fail(const char *what, int error) {
  complain(what, error);
  _exit(EXIT_COULD_NOT);
}

int exit_code_of_exec(int error) {
  return error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

char *read_whole(int fd, size_t limit, size_t *length) {
  size_t size = 0, room = 16 * 1024;
  char *bytes = malloc(room + 1);
  for (;;) {
    if (!bytes) fail("no memory", 0);
    ssize_t got = read(fd, bytes + size, room - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read the order", errno);
    if (got == 0) break;
    size += (size_t)got;
    if (size > limit) fail("the order is too long", 0);
    if (size == room) bytes = realloc(bytes, (room *= 2) + 1);
  }
  bytes[size] = 0;
  *length = size;
  return bytes;
}

size_t split_line(char *line, const char **fields, size_t most) {
  size_t count = 0;
  for (char *rest = line, *field; count < most && (field = strtok_r(NULL, " \n", &rest)); count++) fields[count] = field;
  return count;
}

void close_from(int first) {
  if (syscall(SYS_close_range, first, ~0U, 0) < 0) fail("close_range", errno);
}

int memfd_of(const char *name, const void *bytes, size_t length) {
  int fd = memfd_create(name, 0);
  if (fd < 0) fail("memfd_create", errno);
  for (size_t at = 0; at < length;) {
    ssize_t put = pwrite(fd, (const char *)bytes + at, length - at, (off_t)at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write to a memfd", errno);
    at += (size_t)put;
  }
  return fd;
}

long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}
