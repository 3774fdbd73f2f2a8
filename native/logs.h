#ifndef LOGS_H
#define LOGS_H

#include <stdbool.h>
#include <stddef.h>

/* A fifo's name is the sandbox's id. */
#define PIPES "pipes"

/*
 * The target of a dangling link: PIPES/ID.of, created before the fifo, and ID/of after the first line. It is the spawner's hash of the
 * tenant's name.
 */
#define OWNER "of"

/* A UUID. */
enum { ID_LENGTH = 36, OWNER_LENGTH = 16 };

extern struct logs {
  int folder;
  long long file_bytes;  /* one file; a sandbox has at most two */
  long long total_bytes; /* all files */
  long long retention;   /* seconds after the last line */
  long long used;        /* known part of total_bytes */
  long long moved;       /* change of `used` since the current sweep began */
} logs;

/* Files in the folder ID are named by the position of their first byte. Positions count removed bytes too. */
struct log {
  char id[ID_LENGTH + 1];
  bool known;           /* the fields below were read */
  long long begins;     /* current file */
  long long before;     /* previous file, or -1 */
  bool in_line;         /* the last record does not end its line */
};

/* log-files.c */

bool is_id(const char *name);
/* Within the limits, and the disk has space to spare. */
bool has_room(void);
/* Beyond the reserve for others: 5 %, at most 1 GiB. Negative if the reserve is not free. */
long long spare_bytes(void);
/* Returns the bytes of its records. Drops what can't be written. */
long long write_records(struct log *log, const char *text, size_t length);
void close_line(struct log *log);

/* log-sweep.c */

/* Removes expired logs, and more to stay within `total_bytes`. Returns a descriptor to wait for, or -1. */
int begin_sweep(int pipes);
/* Returns -1. */
int finish_sweep(int fd);

#endif
