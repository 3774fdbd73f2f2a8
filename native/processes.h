/* What the parts of processes that have a holder share. README.md has the protocol. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "files.h"

#include <sys/ioctl.h>

/* ring.c */

/* The end of what a process printed, both streams in the order in which it came. Its memory is taken as it is used. */
enum { KEPT_BYTES = 1024 * 1024, MOST_READ = 64 * 1024, RING_BYTES = KEPT_BYTES + MOST_READ, RING_UNIT = 64 * 1024 };

struct ring {
  char *bytes;
  uint64_t *runs; /* bytes of one stream that follow each other: the position behind them, doubled, and 1 for errors */
  size_t size, first, count;
  uint64_t oldest, total, lap; /* positions: bytes since the process began; the lap's is of the byte at the front */
};

/* RING_BYTES at most, in units. It keeps three quarters of fewer, and runs of 64 bytes on average. */
bool open_ring(struct ring *ring, size_t size);
/* Whether another read would drop the oldest. */
bool is_full(const struct ring *ring);
/* Whether one would, and one unit more would keep it. */
bool may_grow(const struct ring *ring);
bool grow_ring(struct ring *ring);
/* Reads once; as read(2). */
ssize_t fill_ring(struct ring *ring, int fd, char stream);
/* The bytes from a position on, as many as lie together, at most MOST_READ. What is dropped is passed over. */
size_t read_ring(const struct ring *ring, uint64_t *from, char *stream, const char **bytes);

/* child.c */

struct child {
  pid_t pid;
  int input, outputs[2]; /* -1 where there is none, or no more; a terminal is both the input and the first output */
  int report;            /* `p` and its number inside, where that is another; then where the program does not run `c` or `e`, and an errno */
};

/* What is to be run, and how. */
struct program {
  struct order order;
  bool input, terminal;
  struct winsize size;
};

/* The program's ends of its streams, and the one of the report. `master` is of its terminal; -1: any. */
struct ends {
  int streams[3], report;
};

enum problem open_ends(const struct program *program, int master, struct child *child, struct ends *ends);
void close_ends(const struct program *program, const struct ends *ends);
enum problem begin_child(const struct program *program, struct child *child);

/* holder.c */

/*
 * What a holder says to whoever connects, before anything is asked: that it takes the request, and in a frame that nobody
 * has to read its state, milliseconds since the end, bytes kept.
 */
enum { GREETING_HEAD = 1 + 5, GREETING_BYTES = GREETING_HEAD + 1 + 8 + 8, LONGEST_ID = 64, LONGEST_ROOM = 32 };
/* A piece of content: a kind, a position, a length, and so many bytes. A record begins with so many fixed ones. */
enum { PIECE_HEAD = 1 + 8 + 4, RECORD_FIXED = 1 + 4 + 4 + 8 };

/* How one holds a process that runs in a sandbox where the holder itself is not. */
struct outside {
  int sandbox; /* a pidfd of its first process */
  enum problem (*begin)(const struct program *program, struct child *child);
  /* To the group in the foreground of its terminal, without one to its own. */
  void (*signal)(int number);
  /* Of how many processes of the sandbox the kernel has said that memory ran out. */
  unsigned long long (*out_of_memory)(void);
  /* Removes the socket. */
  void (*forget)(void);
};

struct holding {
  const char *id;
  struct program program;
  long long timeout_ms; /* 0: none */
  int listener, starter;
  bool follows, paces; /* whoever starts it reads it too */
  bool bound;          /* it ends with whoever reads it from its start on */
  const struct outside *outside; /* NULL in a Pod: the holder is in the sandbox */
};

/* Starts the program and serves those who ask about it, until it is forgotten. Has one thread, and no descriptor besides. */
_Noreturn void hold_process(const struct holding *holding);
/* Whether the other end is of the same user. */
bool is_own(int socket);

#endif
