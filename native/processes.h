/* What the parts of processes in a Pod share. README.md has the protocol. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "files.h"

#include <sys/ioctl.h>

/* ring.c */

/* The end of what a process printed, both streams in the order in which it came. Its memory is taken as it is used. */
enum { KEPT_BYTES = 1024 * 1024, MOST_READ = 64 * 1024, RING_BYTES = KEPT_BYTES + MOST_READ, MOST_RUNS = 16 * 1024 };

/* Bytes of one stream that follow each other, up to this position. */
struct run {
  uint64_t end;
  char stream;
};

struct ring {
  char *bytes;
  struct run *runs;
  size_t first, count;
  uint64_t oldest, total; /* positions: bytes since the process began */
};

bool open_ring(struct ring *ring);
/* Whether another read would drop the oldest. */
bool is_full(const struct ring *ring);
/* Reads once; as read(2). */
ssize_t fill_ring(struct ring *ring, int fd, char stream);
/* The bytes from a position on, as many as lie together, at most MOST_READ. What is dropped is passed over. */
size_t read_ring(const struct ring *ring, uint64_t *from, char *stream, const char **bytes);

/* child.c */

struct child {
  pid_t pid;
  int input, outputs[2]; /* -1 where there is none, or no more; a terminal is both the input and the first output */
  int report;            /* ends where the program runs; else it says why not: `c` or `e`, and an errno */
};

/* What is to be run, and how. */
struct program {
  struct order order;
  bool input, terminal;
  struct winsize size;
};

enum problem begin_child(const struct program *program, struct child *child);

/* holder.c */

/* What a holder says to whoever connects, before anything is asked: its state, milliseconds since the end, bytes kept. */
enum { GREETING_BYTES = 1 + 8 + 8, LONGEST_ID = 64, LONGEST_ROOM = 32 };
/* A piece of content: a kind, a position, a length, and so many bytes. A record begins with so many fixed ones. */
enum { PIECE_HEAD = 1 + 8 + 4, RECORD_FIXED = 1 + 4 + 4 + 8 };

struct holding {
  const char *id;
  struct program program;
  long long timeout_ms; /* 0: none */
  int listener, starter;
  bool follows, paces; /* whoever starts it reads it too */
};

/* Starts the program and serves those who ask about it, until it is forgotten. Has one thread, and no descriptor besides. */
_Noreturn void hold_process(const struct holding *holding);
/* Whether the other end is of the same user. */
bool is_own(int socket);

#endif
