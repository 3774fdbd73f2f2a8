/* What the parts of `launcher logs` share. */
#ifndef LOGS_H
#define LOGS_H

#include <stdbool.h>
#include <stddef.h>

/* Below the folder of logs: the fifos, named by the sandboxes' ids. */
#define PIPES "pipes"

/*
 * Whose a log is, as a link that leads nowhere: PIPES/ID.of beside the fifo, made before it, and ID/of from the first line on.
 * Its text is what the spawner made of the tenant's name.
 */
#define OWNER "of"

/* A UUID. */
enum { ID_LENGTH = 36, OWNER_LENGTH = 16 };

extern struct logs {
  int folder;
  long long file_bytes;  /* of one file; a sandbox has two at most */
  long long total_bytes; /* of all files together */
  long long retention;   /* seconds that a log stays after its last line */
  long long used;        /* of total_bytes, as far as is known */
  long long moved;       /* how `used` moved since the sweep under way began */
} logs;

/*
 * One sandbox's log: the folder ID, and in it files named by the position at which each begins. A position counts bytes
 * from the log's beginning, those of removed files too, so it never means another place.
 */
struct log {
  char id[ID_LENGTH + 1];
  bool known;           /* what follows was read from its folder */
  long long begins;     /* the file that is written to */
  long long before;     /* the one before it, -1 without one */
  bool in_line;         /* its last record does not end its line */
};

/* log-files.c */

bool is_id(const char *name);
/* Not all that may be used is used, and the disk has some to spare. */
bool has_room(void);
/* Bytes that the disk has beyond those that are left to others: 5 % of it, 1 GiB at most. Below 0: so many too few. */
long long spare_bytes(void);
/* Writes the text as records; answers how many bytes they have. What can't be written is lost. */
long long write_records(struct log *log, const char *text, size_t length);
/* Ends a line that was begun. */
void close_line(struct log *log);

/* log-sweep.c */

/* Starts a process that removes old logs, and as many as it takes to stay within `total_bytes`. Answers a descriptor to wait for, or -1. */
int begin_sweep(int pipes);
/* Learns from it how much is used now; answers -1. */
int finish_sweep(int fd);

#endif
