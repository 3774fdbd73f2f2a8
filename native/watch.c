/* By pidfds, so that a reused pid is never signalled. */
#include "launcher.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KEY_LENGTH = 128, LINE_LENGTH = 256, BUCKETS = 4096 };

struct entry {
  struct entry *next; /* in its bucket, or in the dropped list */
  int pidfd;          /* -1 after it was dropped */
  pid_t pid;
  unsigned long long start_time;
  char key[KEY_LENGTH + 1];
};

static struct {
  int epoll;
  struct entry *buckets[BUCKETS];
  struct entry *dropped; /* freed at the end of a round: another event of it may refer to them */
  char line[LINE_LENGTH];
  size_t line_length;
  bool line_too_long;
} watch;

static bool read_lines(void);
static void obey(char *line);
static void watch_process(const char *key, const char *pid_text, const char *start_text);
static struct entry **place_of(const char *key);
static void drop(struct entry **place);
static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

int run_watch(void) {
  reset_process();
  signal(SIGPIPE, SIG_IGN);
  close_from(3);
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    set_limit(RLIMIT_NOFILE, files);
  }
  watch.epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event input = {.events = EPOLLIN};
  if (watch.epoll < 0 || epoll_ctl(watch.epoll, EPOLL_CTL_ADD, 0, &input) < 0) fail("epoll", errno);

  for (;;) {
    struct epoll_event events[64];
    int count = epoll_wait(watch.epoll, events, LENGTH(events), -1);
    if (count < 0 && errno != EINTR) fail("epoll", errno);
    bool more = true;
    for (int i = 0; i < count; i++) {
      struct entry *entry = events[i].data.ptr;
      if (!entry) {
        more = read_lines();
      } else if (entry->pidfd >= 0) {
        say("gone %s\n", entry->key);
        drop(place_of(entry->key));
      }
    }
    while (watch.dropped) {
      struct entry *entry = watch.dropped;
      watch.dropped = entry->next;
      free(entry);
    }
    if (fflush(stdout) != 0) return 1; /* nobody reads the answers any more */
    if (!more) return 0;
  }
}

/* False at the end of the file. */
static bool read_lines(void) {
  char bytes[4096];
  ssize_t got = read(0, bytes, sizeof bytes);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  for (ssize_t i = 0; i < got; i++) {
    if (bytes[i] != '\n') {
      if (watch.line_length < LINE_LENGTH - 1 && bytes[i] != 0) watch.line[watch.line_length++] = bytes[i];
      else watch.line_too_long = true;
      continue;
    }
    watch.line[watch.line_length] = 0;
    if (watch.line_too_long) say("error a line is too long or holds a NUL\n");
    else obey(watch.line);
    watch.line_length = 0;
    watch.line_too_long = false;
  }
  return got > 0;
}

static void obey(char *line) {
  char *words[5], *rest = line;
  size_t count = 0;
  while (count < LENGTH(words) && (words[count] = strsep(&rest, " ")) != NULL) count++;
  const char *verb = words[0];
  const char *key = count > 1 ? words[1] : "";
  if (*key == 0 || strlen(key) > KEY_LENGTH) {
    say("error a key of 1 to %d characters is needed\n", KEY_LENGTH);
  } else if (strcmp(verb, "watch") == 0 && count == 4) {
    watch_process(key, words[2], words[3]);
  } else if (strcmp(verb, "kill") == 0 && count == 2) {
    struct entry *entry = *place_of(key);
    /* The caller wants it dead anyway. */
    if (!entry) say("gone %s\n", key);
    else if (syscall(SYS_pidfd_send_signal, entry->pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
      say("error kill %s: %s\n", key, strerrorname_np(errno));
  } else if (strcmp(verb, "drop") == 0 && count == 2) {
    drop(place_of(key));
  } else {
    say("error not understood: watch KEY PID STARTTIME, kill KEY or drop KEY\n");
  }
}

static void watch_process(const char *key, const char *pid_text, const char *start_text) {
  unsigned long long pid, start_time;
  if (!parse_number(pid_text, INT_MAX, &pid) || pid == 0 || !parse_number(start_text, ULLONG_MAX, &start_time)) {
    say("error watch %s: malformed pid or start time\n", key);
    return;
  }
  struct entry **place = place_of(key);
  if (*place && (*place)->pid == (pid_t)pid && (*place)->start_time == start_time) {
    say("watching %s\n", key);
    return;
  }
  int pidfd = open_process((pid_t)pid, start_time);
  if (pidfd < 0) {
    if (errno == ESRCH) say("gone %s\n", key);
    else say("error watch %s: %s\n", key, strerrorname_np(errno));
    return;
  }
  struct entry *entry = calloc(1, sizeof *entry);
  struct epoll_event exit_event = {.events = EPOLLIN, .data.ptr = entry};
  if (!entry || epoll_ctl(watch.epoll, EPOLL_CTL_ADD, pidfd, &exit_event) < 0) {
    say("error watch %s: %s\n", key, strerrorname_np(errno));
    close(pidfd);
    free(entry);
    return;
  }
  drop(place);
  place = place_of(key);
  *entry = (struct entry){.next = *place, .pidfd = pidfd, .pid = (pid_t)pid, .start_time = start_time};
  strcpy(entry->key, key);
  *place = entry;
  say("watching %s\n", key);
}

/* Or the link to its future place. */
static struct entry **place_of(const char *key) {
  unsigned hash = 2166136261U;
  for (const char *at = key; *at; at++) hash = (hash ^ (unsigned char)*at) * 16777619U;
  struct entry **place = &watch.buckets[hash % BUCKETS];
  while (*place && strcmp((*place)->key, key) != 0) place = &(*place)->next;
  return place;
}

static void drop(struct entry **place) {
  struct entry *entry = *place;
  if (!entry) return;
  *place = entry->next;
  close(entry->pidfd); /* the last reference, so epoll forgets it too */
  entry->pidfd = -1;
  entry->next = watch.dropped;
  watch.dropped = entry;
}

static void say(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vprintf(format, values);
  va_end(values);
}
