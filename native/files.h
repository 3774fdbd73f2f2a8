/* What the parts of `launcher files` share. README.md has the protocol. */
#ifndef FILES_H
#define FILES_H

#include "launcher.h"

#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* Why a call was refused. GONE: nobody is left to be told. */
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

/* One connection: a request, what comes behind it, and its answer. */
struct call {
  int input, output; /* one socket, or two pipes */
  char *request; /* NUL-terminated tokens: what to do, then names and values in turn */
  size_t length;
  char *body; /* PIECE bytes that came, of which those from `at` to `filled` are not used yet */
  size_t at, filled;
  uint32_t left; /* of the frame that is being read */
  bool body_over;
  char *out; /* PIECE bytes of an answer that is gathered */
  size_t gathered;
  time_t told; /* when something was last sent */
  bool keeps; /* it is one of a Pod */
  int keeper; /* a socket where the answer can be asked for again; -1 where it can not */
  char *answer; /* and that, as a frame */
  size_t answered;
  char detail[512]; /* said behind the problem's word: an entry's name, a size */
};

/* files-wire.c */

/* Reads the request. */
enum problem read_request(struct call *call);
/* The value of this name, or NULL. */
const char *asked(const struct call *call, const char *name);
/* The value as a number up to `max`; false where it is not given or is none. */
bool asked_number(const struct call *call, const char *name, unsigned long long max, unsigned long long *value);
enum problem send_bytes(struct call *call, const void *bytes, size_t size);
enum problem send_frame(struct call *call, char type, const void *payload, size_t size);
/* Begins a frame whose payload the caller sends. */
enum problem begin_frame(struct call *call, char type, size_t size);
/* Adds to what is gathered; `flush_out` sends that as a frame of data. */
enum problem gather(struct call *call, const void *bytes, size_t size);
enum problem flush_out(struct call *call);
/* The next of the body, as many as there are; none at its end. */
enum problem next_piece(struct call *call, char **piece, size_t *size);
/* Exactly so many bytes of the body; CHANGED where it ends before. `to` may be NULL. */
enum problem read_body(struct call *call, void *to, uint64_t size);
/* Says the problem. */
void refuse(struct call *call, enum problem problem);
/*
 * Reads until the caller is gone, 10 s at most: what was said to him is lost where this end goes first. Whether he said
 * anything more, as who has heard the answer does.
 */
bool await_leave(struct call *call);

/* files-again.c */

/* From now on the answer to the request can be asked for again, by its `id`. */
void open_keeper(struct call *call);
/* Gives the answer to those who ask, for a while. */
void keep_answer(struct call *call);
enum problem call_answer(struct call *call);
/* Called now and then by what takes long: says that it is at work, and finds that nobody waits any more. */
enum problem still_wanted(struct call *call);
enum problem problem_of(int error);
/* What is said of a problem. */
const char *problem_word(enum problem problem);
size_t put_number(unsigned char *to, uint64_t value, size_t bytes);
/* Of four bytes, the high one first. */
uint32_t read_number(const void *bytes);
/* A file as it is told. With `name`, which it has in `folder`, also where a link leads, and what is kept with a file. */
enum { METADATA_BYTES = 4096, STAT_FIXED = 33, STAT_BYTES = STAT_FIXED + 2 * PATH_BYTES + 2 + METADATA_BYTES };
size_t put_stat(unsigned char to[STAT_BYTES], const struct stat *found, const char *path, int folder, const char *name);

/* files-place.c */

/* Where a name is: the folder that holds it, opened, and the last part of the path. */
struct place {
  int parent;
  char name[NAME_MAX + 1];
};

/* Opens without following magic links, such as those of /proc, which would lead into this process. */
int open_safely(int at, const char *path, int flags, mode_t mode, unsigned long long resolve);
/* Fills the place of a path; with `parents` the missing folders above are made. The caller closes `parent`. */
enum problem find_place(const char *path, bool parents, struct place *place);
/* The same, and where the last part is a link, the place that it leads to. */
enum problem follow_place(const char *path, bool parents, struct place *place);
/* A folder, opened for reading; its last link is followed. */
enum problem open_folder(const char *path, int *folder);
/* A regular file, opened for reading, and nothing else ever opened. */
enum problem open_file(const char *path, int *file, struct stat *found);
/* Reads a link; false where it is none any more. */
bool read_link(int at, const char *name, char target[PATH_BYTES]);
/* With the home of a bare sandbox in place of that of an isolated one. */
bool own_path(const char *path, char own[PATH_BYTES]);
extern const char *bare_home;

/*
 * From a look at a name until it is what it is to be: no other call of this sandbox comes between, whichever process it
 * has. BUSY where another holds that for long.
 */
enum problem begin_placing(void);
void end_placing(void);
/* A file that all such processes lock; -1 where one process has all calls. */
extern int placing_lock;

/* A file that is being written, in the folder where it will be. */
struct draft {
  int parent, file;
  char name[40]; /* empty where it has none yet */
};

enum problem begin_draft(int parent, struct draft *draft);
enum problem place_draft(struct draft *draft, const char *name, bool replace);
/* Closes it, and removes it where it was not placed. */
void leave_draft(struct draft *draft);
enum problem write_whole(int file, const char *bytes, size_t size);
/* A name that nothing has yet, for what gets its own at the next moment. */
void spare_name(char name[40]);
bool is_spare_name(const char *name);

/* files-metadata.c */

/* Keeps what the request has with a file that is being written. */
enum problem keep_metadata(const struct call *call, int file);
/*
 * Keys and values in turn, each with a NUL, of what is kept with a file; returns how many bytes. What is beyond that, or
 * not printable, is left out.
 */
size_t read_metadata(int parent, const char *name, char metadata[METADATA_BYTES]);

/* files-walk.c */

struct names {
  char **items;
  size_t count, room;
};

/*
 * Names in a folder from `from` on (NULL: all), the first `most` of them in order (0: all). `folder` is read from its
 * beginning and stays open.
 */
enum problem read_names(int folder, const char *from, size_t most, struct names *names);
/* Some names in a folder, at most so many, in no order; none: it is empty. */
enum problem read_some_names(int folder, size_t most, struct names *names);
void free_names(struct names *names);

/* A way down a tree, however deep, with one folder open: the one where it stands. */
struct trail {
  int folder;
  struct step *steps;
  size_t depth, room;
};

struct step {
  dev_t device;
  ino_t inode;
  char *name; /* of the folder below that was entered */
  struct names names;
  size_t next;
};

/* Stands in `folder`, which is then the trail's. */
enum problem begin_trail(struct trail *trail, int folder);
/* Enters a folder of that name; `names` are left to the step above. */
enum problem descend(struct trail *trail, const char *name, struct names *names, size_t next);
/* Goes back; CHANGED where what is above is no longer what it was. */
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

/* processes.c: the calls about processes of a Pod */

enum problem call_start(struct call *call);
enum problem call_processes(struct call *call);
/* All that is asked of the one that `process` names. */
enum problem call_process(struct call *call);

/* tar, files-tar.c */

enum { BLOCK = 512 };

struct tar_header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2], uname[32],
      gname[32], major[8], minor[8], prefix[155], pad[12];
};

/* The sum of a header's bytes, its own field as blanks. */
unsigned tar_checksum(const struct tar_header *header);
void put_octal(char *field, size_t size, unsigned long long value);
/* Octal, or the binary form of GNU tar; false where it is neither. */
bool read_tar_number(const char *field, size_t size, unsigned long long *value);

#endif
