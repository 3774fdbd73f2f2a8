/* README.md describes the protocol of holders. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "files.h"

#include <sys/ioctl.h>

/* ring.c */

/* Both streams in order of arrival. */
enum { KEPT_BYTES = 1024 * 1024, MOST_READ = 64 * 1024, RING_BYTES = KEPT_BYTES + MOST_READ, RING_UNIT = 64 * 1024 };

struct ring {
  char *bytes;
  uint64_t *runs; /* position after each run of one stream, doubled, plus 1 for errors */
  size_t size, first, count;
  uint64_t oldest, total, lap; /* bytes since the process began; `lap` is that of the byte at the front */
};

/* At most RING_BYTES, in units. A smaller ring keeps three quarters of its size, and runs of 64 bytes on average. */
bool open_ring(struct ring *ring, size_t size);
/* Another read would drop the oldest output. */
bool is_full(const struct ring *ring);
/* One more unit would keep it. */
bool may_grow(const struct ring *ring);
bool grow_ring(struct ring *ring);
/* As read(2). */
ssize_t fill_ring(struct ring *ring, int fd, char stream);
/* Contiguous, at most MOST_READ. Skips dropped output. */
size_t read_ring(const struct ring *ring, uint64_t *from, char *stream, const char **bytes);

/* child.c */

struct child {
  pid_t pid;
  int input, outputs[2]; /* -1 if absent or closed; a terminal is both */
  int report;            /* `p` and the pid inside if it differs; then, if the program does not run, `c` or `e` and an errno */
};

struct program {
  struct order order;
  bool input, terminal;
  struct winsize size;
};

/* The program's ends. `master` is that of its terminal, or -1. */
struct ends {
  int streams[3], report;
};

enum problem open_ends(const struct program *program, int master, struct child *child, struct ends *ends);
void close_ends(const struct program *program, const struct ends *ends);
enum problem begin_child(const struct program *program, struct child *child);

/* holder.c */

/* Acceptance byte, and a frame with the state, ms since the end, and stored bytes. */
enum { GREETING_HEAD = 1 + 5, GREETING_BYTES = GREETING_HEAD + 1 + 8 + 8, LONGEST_ID = 64, LONGEST_ROOM = 32 };
/* Kind, position, length, bytes. The fixed part of a record. */
enum { PIECE_HEAD = 1 + 8 + 4, RECORD_FIXED = 1 + 4 + 4 + 8 };

/* For a holder outside of the sandbox. */
struct outside {
  int sandbox; /* pidfd of its first process */
  enum problem (*begin)(const struct program *program, struct child *child);
  /* The terminal's foreground group, or else the command's. */
  void (*signal)(int number);
  /* The kernel's count of kills for lack of memory. */
  unsigned long long (*out_of_memory)(void);
  void (*forget)(void);
};

struct holding {
  const char *id;
  struct program program;
  long long timeout_ms; /* 0: no timeout */
  int listener, starter;
  bool follows, paces; /* the starter also reads */
  bool bound;          /* is hung up when its last follower disconnects, or if none connects in time */
  const struct outside *outside; /* NULL in a Pod */
};

/* Serves until the process is forgotten. There must be one thread and no other descriptors. */
_Noreturn void hold_process(const struct holding *holding);
/* Same user. */
bool is_own(int socket);

#endif
