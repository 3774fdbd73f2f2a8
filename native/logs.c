/*
 * From fifos into bounded files, for all sandboxes of a data folder. May be killed at any time: the sandboxes keep the fifos open, and the
 * next process finds them by path.
 */
#include "launcher.h"
#include "logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  BUCKETS = 4096,
  ROUND = 512,               /* fifos read between two pauses */
  PAUSE_MS = 5,              /* one read per fifo between two pauses bounds a flood */
  HELD_PAUSE_MS = 50,        /* between tries to write held output */
  HELD_BYTES = 64 * 1024,    /* of the end of a flood */
  SWEEP_MS = 60 * 1000,      /* between sweeps */
  SWEEP_REST = 50,           /* pause as a multiple of its duration */
  SWEEP_SOON_MS = 2 * 1000,  /* while space is short */
};

/* In one sandbox. */
static const long long BURST_BYTES = 2 * 1024 * 1024, BYTES_PER_SECOND = 1024 * 1024;

struct source {
  struct source *next;      /* in its bucket */
  struct source *next_held; /* with held output */
  int fifo;
  struct log log;
  long long allowance; /* negative after writing ahead */
  long long allowed_at;
  bool holding;
  unsigned long long dropped;
  char *held; /* HELD_BYTES while output is held */
  size_t held_length;
};

static struct {
  int epoll;   /* the fifos */
  int control; /* everything else */
  int inotify, pipes, sweep;
  struct source *buckets[BUCKETS];
  struct source *held;
  size_t count;
  bool alone; /* the starter is gone: end with the last sandbox */
  long long swept_at, sweep_took;
  char input[HELD_BYTES];
} pump;

static char STARTER, ARRIVALS, SWEEP;

static void open_folder(const char *folder);
static void look_at_control(void);
static bool take_all(void);
static void wait_for(int fd, void *what);
static void find_fifos(void);
static void read_arrivals(void);
static void add(const char *id);
static struct source **place_of(const char *id);
static bool take(struct source *source);
static void keep(struct source *source, size_t length);
static void hold(struct source *source, size_t length);
static void release(struct source *source);
static void release_held(void);
static void allow(struct source *source);
static void end(struct source *source);
static void sweep_when_due(void);

int run_logs(char **argv) {
  unsigned long long file_bytes, total_bytes, retention;
  if (!parse_number(argv[1], 1ULL << 40, &file_bytes) || file_bytes < 4096 || !parse_number(argv[2], 1ULL << 60, &total_bytes) ||
      !parse_number(argv[3], 1ULL << 40, &retention))
    fail("called as: launcher logs FOLDER FILE_BYTES TOTAL_BYTES RETENTION_SECONDS", 0);
  reset_process();
  umask(077);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_IGN); /* sweeps leave no zombies */
  close_from(3);
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    set_limit(RLIMIT_NOFILE, files);
  }
  logs = (struct logs){.folder = -1, .file_bytes = (long long)file_bytes, .total_bytes = (long long)total_bytes, .retention = (long long)retention};
  open_folder(argv[0]);
  pump.sweep = -1;
  pump.swept_at = now_ms() - SWEEP_MS;
  find_fifos();

  for (long long rested_at = 0;;) {
    sweep_when_due();
    /* Opens new fifos during a pause: output of a short-lived process must not be missed. */
    long long rest = rested_at - now_ms();
    struct pollfd ready[] = {{.fd = pump.control, .events = POLLIN}, {.fd = rest > 0 ? -1 : pump.epoll, .events = POLLIN}};
    if (poll(ready, LENGTH(ready), rest > 0 ? (int)rest : pump.held ? HELD_PAUSE_MS : has_room() ? SWEEP_MS : SWEEP_SOON_MS) < 0 && errno != EINTR) fail("poll", errno);
    if (ready[0].revents) look_at_control();
    if (ready[1].revents && take_all()) rested_at = now_ms() + PAUSE_MS;
    release_held();
    if (pump.alone && pump.count == 0) return 0;
  }
}

static void look_at_control(void) {
  struct epoll_event events[8];
  int count = epoll_wait(pump.control, events, LENGTH(events), 0);
  for (int i = 0; i < count; i++) {
    void *what = events[i].data.ptr;
    char byte[64];
    if (what == &ARRIVALS) read_arrivals();
    else if (what == &SWEEP) {
      pump.sweep = finish_sweep(pump.sweep);
      pump.sweep_took = now_ms() - pump.swept_at;
    } else if (read(0, byte, sizeof byte) <= 0) {
      pump.alone = true;
      epoll_ctl(pump.control, EPOLL_CTL_DEL, 0, NULL);
    }
  }
}

/* Equal shares. False if nothing was read. */
static bool take_all(void) {
  static struct epoll_event events[ROUND];
  bool some = false;
  int count = epoll_wait(pump.epoll, events, ROUND, 0);
  for (int i = 0; i < count; i++) some |= take(events[i].data.ptr);
  return some;
}

static void open_folder(const char *folder) {
  logs.folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  pump.pipes = logs.folder < 0 ? -1 : openat(logs.folder, PIPES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (pump.pipes < 0) fail(folder, errno);
  if (flock(logs.folder, LOCK_EX | LOCK_NB) < 0) fail("another one has the folder", errno);
  pump.epoll = epoll_create1(EPOLL_CLOEXEC);
  pump.control = epoll_create1(EPOLL_CLOEXEC);
  pump.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  char pipes[4096];
  snprintf(pipes, sizeof pipes, "%s/" PIPES, folder);
  if (pump.epoll < 0 || pump.control < 0 || pump.inotify < 0 || inotify_add_watch(pump.inotify, pipes, IN_MOVED_TO | IN_ONLYDIR) < 0) fail("inotify", errno);
  pump.alone = fcntl(0, F_GETFD) < 0 || epoll_ctl(pump.control, EPOLL_CTL_ADD, 0, &(struct epoll_event){.events = EPOLLIN, .data.ptr = &STARTER}) < 0;
  wait_for(pump.inotify, &ARRIVALS);
}

static void wait_for(int fd, void *what) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};
  if (epoll_ctl(pump.control, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll", errno);
}

/* From before the start, or after the kernel dropped events. */
static void find_fifos(void) {
  int fd = openat(pump.pipes, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = fd < 0 ? NULL : fdopendir(fd);
  if (!folder) fail("read the folder of fifos", errno);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) add(entry->d_name);
  closedir(folder);
}

/* A fifo gets its name after its writer has opened it. */
static void read_arrivals(void) {
  _Alignas(struct inotify_event) char bytes[16 * 1024];
  for (ssize_t got; (got = read(pump.inotify, bytes, sizeof bytes)) > 0;) {
    const struct inotify_event *event;
    for (char *at = bytes; at < bytes + got; at += sizeof *event + event->len) {
      event = (const struct inotify_event *)at;
      if (event->mask & IN_Q_OVERFLOW) find_fifos();
      else if (event->len > 0) add(event->name);
    }
  }
}

static void add(const char *id) {
  if (!is_id(id)) return;
  struct source **place = place_of(id);
  if (*place) return;
  int fifo = openat(pump.pipes, id, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  struct stat found;
  if (fifo < 0) return;
  struct source *source = fstat(fifo, &found) == 0 && S_ISFIFO(found.st_mode) ? calloc(1, sizeof *source) : NULL;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
  if (!source || epoll_ctl(pump.epoll, EPOLL_CTL_ADD, fifo, &event) < 0) {
    close(fifo);
    free(source);
    return;
  }
  *source = (struct source){.fifo = fifo, .allowance = BURST_BYTES, .allowed_at = now_ms()};
  strcpy(source->log.id, id);
  *place = source;
  pump.count += 1;
  fchmod(fifo, 0622 | S_ISVTX); /* the launcher waits for this mark */
  take(source); /* a fifo without writers gives no event */
}

static struct source **place_of(const char *id) {
  unsigned hash = 2166136261U;
  for (const char *at = id; *at; at++) hash = (hash ^ (unsigned char)*at) * 16777619U;
  struct source **place = &pump.buckets[hash % BUCKETS];
  while (*place && strcmp((*place)->log.id, id) != 0) place = &(*place)->next;
  return place;
}

/* False if nothing was read. */
static bool take(struct source *source) {
  ssize_t got = read(source->fifo, pump.input, sizeof pump.input);
  if (got > 0) keep(source, (size_t)got);
  else if (got == 0) end(source);
  return got > 0;
}

static void keep(struct source *source, size_t length) {
  allow(source);
  if (source->allowance > 0 && !source->holding && has_room()) source->allowance -= write_records(&source->log, pump.input, length);
  else hold(source, length);
}

/* Drops the middle of a flood. */
static void hold(struct source *source, size_t length) {
  if (!source->holding) {
    source->holding = true;
    source->next_held = pump.held;
    pump.held = source;
    source->held = malloc(HELD_BYTES);
  }
  if (!source->held) {
    source->dropped += length;
    return;
  }
  size_t together = source->held_length + length;
  size_t surplus = together > HELD_BYTES ? together - HELD_BYTES : 0;
  source->dropped += surplus;
  source->held_length -= surplus;
  memmove(source->held, source->held + surplus, source->held_length);
  memcpy(source->held + source->held_length, pump.input, length);
  source->held_length += length;
}

static void release(struct source *source) {
  const char *from = source->held;
  size_t length = source->held_length;
  if (source->dropped > 0) {
    /* From the start of a line on. */
    const char *line = length > 0 ? memchr(from, '\n', length) : NULL;
    size_t skipped = line ? (size_t)(line + 1 - from) : 0;
    char marker[96];
    int size = snprintf(marker, sizeof marker, "[sandpool: %llu bytes of output were dropped here]\n", source->dropped + skipped);
    close_line(&source->log);
    source->allowance -= write_records(&source->log, marker, (size_t)size);
    from += skipped;
    length -= skipped;
  }
  if (length > 0) source->allowance -= write_records(&source->log, from, length);
  free(source->held);
  source->held = NULL;
  source->held_length = 0;
  source->dropped = 0;
  source->holding = false;
}

static void release_held(void) {
  for (struct source **at = &pump.held; *at;) {
    struct source *source = *at;
    allow(source);
    if (source->allowance > 0 && has_room()) {
      *at = source->next_held;
      release(source);
    } else at = &source->next_held;
  }
}

static void allow(struct source *source) {
  long long now = now_ms();
  source->allowance += (now - source->allowed_at) * BYTES_PER_SECOND / 1000;
  if (source->allowance > BURST_BYTES) source->allowance = BURST_BYTES;
  source->allowed_at = now;
}

/* Nothing can write any more. Removes the fifo last: its absence shows that the log is complete. */
static void end(struct source *source) {
  for (struct source **at = &pump.held; *at; at = &(*at)->next_held) {
    if (*at != source) continue;
    *at = source->next_held;
    if (has_room()) release(source);
    break;
  }
  free(source->held);
  struct source **place = place_of(source->log.id);
  char owner[ID_LENGTH + sizeof "." OWNER];
  snprintf(owner, sizeof owner, "%s." OWNER, source->log.id);
  unlinkat(pump.pipes, owner, 0);
  unlinkat(pump.pipes, source->log.id, 0);
  *place = source->next;
  close(source->fifo);
  free(source);
  pump.count -= 1;
}

static void sweep_when_due(void) {
  long long since = now_ms() - pump.swept_at;
  if (pump.sweep >= 0 || since < (has_room() ? SWEEP_MS : SWEEP_SOON_MS) || since < pump.sweep_took * SWEEP_REST) return;
  pump.swept_at += since;
  pump.sweep = begin_sweep(pump.pipes);
  if (pump.sweep >= 0) wait_for(pump.sweep, &SWEEP);
}
