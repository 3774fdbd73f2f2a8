/* Shared by the parts about processes that have a holder. README.md describes the protocol. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "files.h"

#include <sys/ioctl.h>

/* ring.c */

/* The latest output of a process, both streams in order of arrival. Memory is allocated on use. */
enum { KEPT_BYTES = 1024 * 1024, MOST_READ = 64 * 1024, RING_BYTES = KEPT_BYTES + MOST_READ, RING_UNIT = 64 * 1024 };

struct ring {
  char *bytes;
  uint64_t *runs; /* runs of bytes of one stream: the position after each run, doubled, plus 1 for errors */
  size_t size, first, count;
  uint64_t oldest, total, lap; /* positions: bytes since the process began; `lap` is that of the byte at the front */
};

/* Allocates at most RING_BYTES, in units. A smaller ring keeps three quarters of its size, and runs of 64 bytes on average. */
bool open_ring(struct ring *ring, size_t size);
/* Whether another read would drop the oldest output. */
bool is_full(const struct ring *ring);
/* Whether another read would drop output, and one more unit would keep it. */
bool may_grow(const struct ring *ring);
bool grow_ring(struct ring *ring);
/* Reads once, like read(2). */
ssize_t fill_ring(struct ring *ring, int fd, char stream);
/* Returns the contiguous bytes from a position on, at most MOST_READ. Skips dropped output. */
size_t read_ring(const struct ring *ring, uint64_t *from, char *stream, const char **bytes);

/* child.c */

struct child {
  pid_t pid;
  int input, outputs[2]; /* -1 if absent or closed; a terminal is both the input and the first output */
  int report;            /* `p` and the pid inside if it differs; then, if the program does not run, `c` or `e` and an errno */
};

/* The program and its terms. */
struct program {
  struct order order;
  bool input, terminal;
  struct winsize size;
};

/* The program's ends of its streams and of the report. `master` is the master of its terminal; -1 if none is given. */
struct ends {
  int streams[3], report;
};

enum problem open_ends(const struct program *program, int master, struct child *child, struct ends *ends);
void close_ends(const struct program *program, const struct ends *ends);
enum problem begin_child(const struct program *program, struct child *child);

/* holder.c */

/*
 * Greeting to each connection, before any request: an acceptance byte, and an optional frame with the state, milliseconds since the end,
 * and stored bytes.
 */
enum { GREETING_HEAD = 1 + 5, GREETING_BYTES = GREETING_HEAD + 1 + 8 + 8, LONGEST_ID = 64, LONGEST_ROOM = 32 };
/* A piece of content: kind, position, length and bytes. The fixed part of a record. */
enum { PIECE_HEAD = 1 + 8 + 4, RECORD_FIXED = 1 + 4 + 4 + 8 };

/* Callbacks for a holder outside of the process's sandbox. */
struct outside {
  int sandbox; /* a pidfd of its first process */
  enum problem (*begin)(const struct program *program, struct child *child);
  /* Signals the terminal's foreground group, or without a terminal the command's group. */
  void (*signal)(int number);
  /* Returns the kernel's count of the sandbox's processes killed for lack of memory. */
  unsigned long long (*out_of_memory)(void);
  /* Removes the socket. */
  void (*forget)(void);
};

struct holding {
  const char *id;
  struct program program;
  long long timeout_ms; /* 0: no timeout */
  int listener, starter;
  bool follows, paces; /* the starter also reads the output */
  bool bound;          /* is hung up when its last follower disconnects, or if none connects in time */
  const struct outside *outside; /* NULL in a Pod: the holder is in the sandbox */
};

/* Starts the program and serves requests about it until it is forgotten. The process must have one thread and no other descriptors. */
_Noreturn void hold_process(const struct holding *holding);
/* Whether the peer has the same user. */
bool is_own(int socket);

#endif
