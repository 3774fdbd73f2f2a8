/* Shared by the parts of `launcher logs`. */
#ifndef LOGS_H
#define LOGS_H

#include <stdbool.h>
#include <stddef.h>

/* Folder of the fifos, below the logs' folder. A fifo's name is the sandbox's id. */
#define PIPES "pipes"

/*
 * The owner of a log, as the target of a dangling link: PIPES/ID.of beside the fifo, created before it, and ID/of after the first line. The
 * target is the spawner's hash of the tenant's name.
 */
#define OWNER "of"

/* A UUID. */
enum { ID_LENGTH = 36, OWNER_LENGTH = 16 };

extern struct logs {
  int folder;
  long long file_bytes;  /* limit of one file; a sandbox has at most two */
  long long total_bytes; /* limit of all files together */
  long long retention;   /* seconds to keep a log after its last line */
  long long used;        /* known part of total_bytes */
  long long moved;       /* change of `used` since the current sweep began */
} logs;

/*
 * One sandbox's log: the folder ID, with files named by the position of their first byte. A position counts bytes from the log's beginning,
 * removed bytes too, so it never changes its meaning.
 */
struct log {
  char id[ID_LENGTH + 1];
  bool known;           /* the fields below were read from the folder */
  long long begins;     /* the current file */
  long long before;     /* the previous file, or -1 */
  bool in_line;         /* the last record does not end its line */
};

/* log-files.c */

bool is_id(const char *name);
/* Whether logs may use more space, and the disk has space to spare. */
bool has_room(void);
/* Free bytes of the disk beyond the reserve for others: 5 %, at most 1 GiB. Negative if the reserve is not free. */
long long spare_bytes(void);
/* Writes the text as records; returns their bytes. Drops text that can't be written. */
long long write_records(struct log *log, const char *text, size_t length);
/* Ends an unfinished line. */
void close_line(struct log *log);

/* log-sweep.c */

/* Starts a process that removes expired logs, and more to stay within `total_bytes`. Returns a descriptor to wait for, or -1. */
int begin_sweep(int pipes);
/* Reads the new usage from the sweep; returns -1. */
int finish_sweep(int fd);

#endif
