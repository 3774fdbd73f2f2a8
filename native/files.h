/* Shared by the parts of `launcher files`. README.md describes the protocol. */
#ifndef FILES_H
#define FILES_H

#include "launcher.h"

#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* Why a call was refused. GONE: the caller has disconnected. */
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

/* One connection: a request, its body, and its answer. */
struct call {
  int input, output; /* one socket, or two pipes */
  char *request; /* NUL-terminated tokens: the operation, then names and values by turns */
  size_t length;
  char *body; /* buffer of PIECE bytes; those from `at` to `filled` are unread */
  size_t at, filled;
  uint32_t left; /* unread bytes of the current frame */
  bool body_over;
  char *out; /* buffer of PIECE bytes for the answer */
  size_t gathered;
  time_t told; /* time of the last send */
  bool keeps; /* is a call in a Pod */
  int keeper; /* a socket that repeats the answer; -1 if there is no such socket */
  char *answer; /* the answer to repeat, as a frame */
  size_t answered;
  char detail[512]; /* sent after the problem's word: an entry's name, a size */
};

/* files-wire.c */

/* Reads the request. */
enum problem read_request(struct call *call);
/* Returns the value of this name, or NULL. */
const char *asked(const struct call *call, const char *name);
/* Parses the value as a number up to `max`; false if it is missing or invalid. */
bool asked_number(const struct call *call, const char *name, unsigned long long max, unsigned long long *value);
enum problem send_bytes(struct call *call, const void *bytes, size_t size);
enum problem send_frame(struct call *call, char type, const void *payload, size_t size);
/* Begins a frame whose payload the caller sends. */
enum problem begin_frame(struct call *call, char type, size_t size);
/* Adds to the buffer; `flush_out` sends the buffer as a frame of data. */
enum problem gather(struct call *call, const void *bytes, size_t size);
enum problem flush_out(struct call *call);
/* Returns the next available bytes of the body; size 0 at its end. */
enum problem next_piece(struct call *call, char **piece, size_t *size);
/* Reads exactly `size` bytes of the body; CHANGED if it ends earlier. `to` may be NULL. */
enum problem read_body(struct call *call, void *to, uint64_t size);
/* Sends the problem to the caller. */
void refuse(struct call *call, enum problem problem);
/*
 * Reads until the caller disconnects, at most 10 s: closing first could lose sent data. Returns whether the caller sent a byte, which
 * confirms the answer.
 */
bool await_leave(struct call *call);

/* files-again.c */

/* Opens a socket that repeats the request's answer, by its `id`. */
void open_keeper(struct call *call);
/* Repeats the answer to callers for a while. */
void keep_answer(struct call *call);
enum problem call_answer(struct call *call);
/* Called regularly during long work: sends a sign of life, and detects that the caller is gone. */
enum problem still_wanted(struct call *call);
enum problem problem_of(int error);
/* Returns the problem's word in the protocol. */
const char *problem_word(enum problem problem);
size_t put_number(unsigned char *to, uint64_t value, size_t bytes);
/* Reads four bytes, big-endian. */
uint32_t read_number(const void *bytes);
/* Encodes a file's stat. `name` is the file's name in `folder`; if given, adds a link's target and the metadata. */
enum { METADATA_BYTES = 4096, STAT_FIXED = 33, STAT_BYTES = STAT_FIXED + 2 * PATH_BYTES + 2 + METADATA_BYTES };
size_t put_stat(unsigned char to[STAT_BYTES], const struct stat *found, const char *path, int folder, const char *name);

/* files-place.c */

/* A resolved name: the open folder that holds it, and the last part of the path. */
struct place {
  int parent;
  char name[NAME_MAX + 1];
};

/* Opens without following magic links, such as those of /proc, which would lead into this process. */
int open_safely(int at, const char *path, int flags, mode_t mode, unsigned long long resolve);
/* Finds the place of a path; `parents` creates missing folders. The caller closes `parent`. */
enum problem find_place(const char *path, bool parents, struct place *place);
/* The same, but follows a link in the last part. */
enum problem follow_place(const char *path, bool parents, struct place *place);
/* Opens a folder for reading; follows a link in the last part. */
enum problem open_folder(const char *path, int *folder);
/* Opens a regular file for reading. Never opens anything else. */
enum problem open_file(const char *path, int *file, struct stat *found);
/* Reads a link; false if it is not a link any more. */
bool read_link(int at, const char *name, char target[PATH_BYTES]);
/* Replaces the home of an isolated sandbox by that of a bare sandbox. */
bool own_path(const char *path, char own[PATH_BYTES]);
extern const char *bare_home;

/*
 * Locks the placing of names in this sandbox, across all its processes, from the check of a name until the change. BUSY if another holds
 * the lock for long.
 */
enum problem begin_placing(void);
void end_placing(void);
/* A file that the Pod's call processes lock; -1 if one process serves all calls. */
extern int placing_lock;

/* A file that is being written, in its future folder. */
struct draft {
  int parent, file;
  char name[40]; /* empty if it has no name yet */
};

enum problem begin_draft(int parent, struct draft *draft);
enum problem place_draft(struct draft *draft, const char *name, bool replace);
/* Closes the draft, and removes it unless it was placed. */
void leave_draft(struct draft *draft);
enum problem write_whole(int file, const char *bytes, size_t size);
/* Makes an unused name for a file that gets its real name soon. */
void spare_name(char name[40]);
bool is_spare_name(const char *name);

/* files-metadata.c */

/* Stores the request's metadata with a file that is being written. */
enum problem keep_metadata(const struct call *call, int file);
/*
 * Reads a file's metadata: keys and values by turns, each with a NUL. Returns the number of bytes. Skips values that exceed the buffer or
 * are not printable.
 */
size_t read_metadata(int parent, const char *name, char metadata[METADATA_BYTES]);
/* Copies clients' metadata to another file, as far as its file system takes them. */
void copy_metadata(int from, int to);

/* files-walk.c */

struct names {
  char **items;
  size_t count, room;
};

/* Reads names after `from` (NULL: all), the first `most` in order (0: all). Reads `folder` from its beginning, and leaves it open. */
enum problem read_names(int folder, const char *from, size_t most, struct names *names);
/* Reads at most `most` names in any order; no names mean that the folder is empty. */
enum problem read_some_names(int folder, size_t most, struct names *names);
void free_names(struct names *names);

/* A walk down a tree of any depth with one open folder, the current one. */
struct trail {
  int folder;
  struct step *steps;
  size_t depth, room;
};

struct step {
  dev_t device;
  ino_t inode;
  char *name; /* name of the entered subfolder */
  struct names names;
  size_t next;
};

/* Starts at `folder`, and takes ownership of it. */
enum problem begin_trail(struct trail *trail, int folder);
/* Enters the folder of that name; the step above keeps `names`. */
enum problem descend(struct trail *trail, const char *name, struct names *names, size_t next);
/* Goes up; CHANGED if the folder above is not the one that the walk came from. */
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
/* All requests about the process that `process` names. */
enum problem call_process(struct call *call);

/* tar, files-tar.c */

enum { BLOCK = 512 };

struct tar_header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2], uname[32],
      gname[32], major[8], minor[8], prefix[155], pad[12];
};

/* Sums a header's bytes, with blanks in the checksum field. */
unsigned tar_checksum(const struct tar_header *header);
void put_octal(char *field, size_t size, unsigned long long value);
/* Parses octal, or the binary form of GNU tar; false if it is neither. */
bool read_tar_number(const char *field, size_t size, unsigned long long *value);

#endif
