/* README.md describes the protocol of `launcher files`. */
#ifndef FILES_H
#define FILES_H

#include "launcher.h"

#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* GONE: the caller has disconnected. */
enum problem {
  DONE,
  NOT_FOUND,
  EXISTS,
  CHANGED,
  IS_A_FOLDER,
  NOT_A_FOLDER,
  NOT_A_FILE,
  NOT_EMPTY,
  DENIED,
  NO_SPACE,
  CANNOT_MOVE,
  BUSY,
  BAD_PATH,
  BAD_RANGE,
  BAD_CURSOR,
  BAD_ARCHIVE,
  NO_METADATA,
  TOO_MANY,
  ENDED,
  CLOSED,
  FULL,
  NO_FOLDER,
  NO_TERMINAL,
  TAKEN_BACK,
  BROKEN,
  GONE,
};

enum { PATH_BYTES = PATH_MAX, PIECE = 256 * 1024 };

struct call {
  int input, output; /* one socket, or two pipes */
  char *request; /* NUL-terminated: the operation, then names and values by turns */
  size_t length;
  char *body; /* PIECE bytes; unread from `at` to `filled` */
  size_t at, filled;
  uint32_t left; /* unread in the current frame */
  bool body_over;
  char *out; /* PIECE bytes */
  size_t gathered;
  time_t told; /* last send */
  bool keeps; /* in a Pod */
  int keeper; /* repeats the answer; or -1 */
  char *answer; /* as a frame */
  size_t answered;
  char detail[512]; /* follows the problem's word */
};

/* files-wire.c */

enum problem read_request(struct call *call);
/* NULL without such a name. */
const char *asked(const struct call *call, const char *name);
/* False if it is missing, invalid or above `max`. */
bool asked_number(const struct call *call, const char *name, unsigned long long max, unsigned long long *value);
enum problem send_bytes(struct call *call, const void *bytes, size_t size);
enum problem send_frame(struct call *call, char type, const void *payload, size_t size);
/* The caller sends the payload. */
enum problem begin_frame(struct call *call, char type, size_t size);
/* `flush_out` sends the buffer as a frame of data. */
enum problem gather(struct call *call, const void *bytes, size_t size);
enum problem flush_out(struct call *call);
/* Size 0 at the end of the body. */
enum problem next_piece(struct call *call, char **piece, size_t *size);
/* CHANGED if the body ends earlier. `to` may be NULL. */
enum problem read_body(struct call *call, void *to, uint64_t size);
void refuse(struct call *call, enum problem problem);
/* At most 10 s: closing first could lose sent data. True if the caller has confirmed the answer by a byte. */
bool await_leave(struct call *call);

/* files-again.c */

/* Repeats the answer by the request's `id`. */
void open_keeper(struct call *call);
void keep_answer(struct call *call);
enum problem call_answer(struct call *call);
/* To be called regularly during long work: sends a sign of life, and detects that the caller is gone. */
enum problem still_wanted(struct call *call);
enum problem problem_of(int error);
/* In the protocol. */
const char *problem_word(enum problem problem);
size_t put_number(unsigned char *to, uint64_t value, size_t bytes);
/* Big-endian. */
uint32_t read_number(const void *bytes);
/* If `name` in `folder` is given, adds a link's target and the metadata. */
enum { METADATA_BYTES = 4096, STAT_FIXED = 33, STAT_BYTES = STAT_FIXED + 2 * PATH_BYTES + 2 + METADATA_BYTES };
size_t put_stat(unsigned char to[STAT_BYTES], const struct stat *found, const char *path, int folder, const char *name);

/* files-place.c */

/* The open folder, and the last part of the path. */
struct place {
  int parent;
  char name[NAME_MAX + 1];
};

/* Never follows magic links, such as those of /proc, which would lead into this process. */
int open_safely(int at, const char *path, int flags, mode_t mode, unsigned long long resolve);
/* `parents` creates missing folders. The caller closes `parent`. */
enum problem find_place(const char *path, bool parents, struct place *place);
/* Follows a link in the last part. */
enum problem follow_place(const char *path, bool parents, struct place *place);
enum problem open_folder(const char *path, int *folder);
/* Never opens anything but a regular file. */
enum problem open_file(const char *path, int *file, struct stat *found);
/* False if it is not a link any more. */
bool read_link(int at, const char *name, char target[PATH_BYTES]);
/* A bare sandbox has another home. */
bool own_path(const char *path, char own[PATH_BYTES]);
extern const char *bare_home;

/* From the check of a name until the change, across all processes of the sandbox. BUSY if another holds it for long. */
enum problem begin_placing(void);
void end_placing(void);
/* In a Pod; -1 if one process serves all calls. */
extern int placing_lock;

/* Written in its future folder. */
struct draft {
  int parent, file;
  char name[40]; /* empty if it has no name yet */
};

enum problem begin_draft(int parent, struct draft *draft);
enum problem place_draft(struct draft *draft, const char *name, bool replace);
/* Removes it unless it was placed. */
void leave_draft(struct draft *draft);
enum problem write_whole(int file, const char *bytes, size_t size);
/* For a file that gets its real name soon. */
void spare_name(char name[40]);
bool is_spare_name(const char *name);

/* files-metadata.c */

/* To a file that is being written. */
enum problem keep_metadata(const struct call *call, int file);
/* Keys and values by turns, each with a NUL. Skips values that exceed the buffer or are not printable. */
size_t read_metadata(int parent, const char *name, char metadata[METADATA_BYTES]);
/* Copies clients' metadata to another file, as far as its file system takes them. */
void copy_metadata(int from, int to);

/* files-walk.c */

struct names {
  char **items;
  size_t count, room;
};

/* In order after `from` (NULL: all), at most `most` (0: all). */
enum problem read_names(int folder, const char *from, size_t most, struct names *names);
/* In any order; none if the folder is empty. */
enum problem read_some_names(int folder, size_t most, struct names *names);
void free_names(struct names *names);

/* At any depth with one open folder, the current one. */
struct trail {
  int folder;
  struct step *steps;
  size_t depth, room;
};

struct step {
  dev_t device;
  ino_t inode;
  char *name; /* the entered subfolder */
  struct names names;
  size_t next;
};

/* Takes ownership of `folder`. */
enum problem begin_trail(struct trail *trail, int folder);
/* The step above keeps `names`. */
enum problem descend(struct trail *trail, const char *name, struct names *names, size_t next);
/* CHANGED if the folder above is not the one that the walk came from. */
enum problem ascend(struct trail *trail, struct names *names, size_t *next, char **left);
void end_trail(struct trail *trail);

/* the calls */

enum problem call_stat(struct call *call);
enum problem call_read(struct call *call);
enum problem call_write(struct call *call);
enum problem call_remove(struct call *call);
enum problem call_move(struct call *call);
enum problem call_mkdir(struct call *call);
enum problem call_list(struct call *call);
enum problem call_watch(struct call *call);
enum problem call_pack(struct call *call);
enum problem call_unpack(struct call *call);

/* processes.c: calls about processes of a Pod */

enum problem call_start(struct call *call);
enum problem call_processes(struct call *call);
/* By `process`. */
enum problem call_process(struct call *call);

enum { BLOCK = 512 };

struct tar_header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2], uname[32],
      gname[32], major[8], minor[8], prefix[155], pad[12];
};

/* With blanks in the checksum field. */
unsigned tar_checksum(const struct tar_header *header);
void put_octal(char *field, size_t size, unsigned long long value);
/* Octal, or the binary form of GNU tar. */
bool read_tar_number(const char *field, size_t size, unsigned long long *value);

#endif
