#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* Bytes of a file of the kernel's; a larger one is not read. */
enum { MOST_UNSIZED = 4 * 1024 * 1024 };

struct move {
  struct place from, to;
};

static bool asked_for(const struct call *call, const char *name) { return asked(call, name) != NULL; }

static const char *path_of(const struct call *call) {
  const char *path = asked(call, "path");
  return path ? path : "";
}

static enum problem tell(struct call *call, char type, const struct place *place, const unsigned char *more, size_t size) {
  unsigned char text[STAT_BYTES + 32];
  struct stat found;
  if (fstatat(place->parent, place->name, &found, AT_SYMLINK_NOFOLLOW) < 0) return problem_of(errno);
  size_t at = put_stat(text, &found, "", place->parent, place->name);
  memcpy(text + at, more, size);
  return send_frame(call, type, text, at + size);
}

enum problem call_stat(struct call *call) {
  struct place place;
  enum problem problem = find_place(path_of(call), false, &place);
  if (problem) return problem;
  problem = tell(call, 'E', &place, NULL, 0);
  close(place.parent);
  return problem;
}

static enum problem range_of(struct call *call, unsigned long long size, unsigned long long *start, unsigned long long *end) {
  unsigned long long suffix;
  *start = 0;
  *end = size;
  if (asked_number(call, "suffix", LLONG_MAX, &suffix)) {
    *start = suffix < size ? size - suffix : 0;
    return DONE;
  }
  if (!asked_number(call, "start", LLONG_MAX, start)) return DONE;
  if (*start >= size) {
    snprintf(call->detail, sizeof call->detail, "%llu", size);
    return BAD_RANGE;
  }
  unsigned long long last;
  if (asked_number(call, "end", LLONG_MAX, &last) && last < size) *end = last;
  return DONE;
}

/*
 * The kernel's own files, such as those of /proc, have the size 0. Replaces such a file by a copy of its content, which has a size. An
 * empty file stays.
 */
static enum problem copy_unsized(int *file, struct stat *found) {
  enum problem problem = DONE;
  char bytes[16 * 1024];
  int copy = -1;
  off_t size = 0;
  for (ssize_t got; !problem && (got = read(*file, bytes, sizeof bytes)) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) problem = errno == EAGAIN || errno == EIO ? NOT_A_FILE : problem_of(errno);
    else if (copy < 0 && (copy = memfd_create("copy", MFD_CLOEXEC)) < 0) problem = problem_of(errno);
    else if ((size += got) > MOST_UNSIZED) problem = NOT_A_FILE;
    else problem = write_whole(copy, bytes, (size_t)got);
  }
  if (problem && copy >= 0) close(copy);
  if (problem || copy < 0) return problem;
  close(*file);
  *file = copy;
  found->st_size = size;
  return DONE;
}

enum problem call_read(struct call *call) {
  unsigned char head[STAT_BYTES + 16];
  struct stat found;
  int file;
  enum problem problem = open_file(path_of(call), &file, &found);
  if (problem) return problem;
  if (found.st_size == 0 && (problem = copy_unsized(&file, &found))) {
    close(file);
    return problem;
  }
  unsigned long long start, end;
  problem = range_of(call, (unsigned long long)found.st_size, &start, &end);
  if (!problem) {
    size_t at = put_stat(head, &found, "", -1, NULL);
    at += put_number(head + at, start, 8);
    at += put_number(head + at, end, 8);
    problem = send_frame(call, 'H', head, at);
  }
  off_t at = (off_t)start;
  while (!problem && at < (off_t)end) {
    off_t left = (off_t)end - at;
    ssize_t sent = sendfile(call->output, file, &at, left < PIECE ? (size_t)left : PIECE);
    if (sent < 0 && errno == EINTR) continue;
    /* It became shorter: closing the connection reports it. */
    if (sent <= 0) problem = GONE;
  }
  close(file);
  return problem;
}

/* `SIZE:NANOSECONDS`, several separated by blanks. */
static bool is_of_version(const char *versions, const struct stat *found) {
  char own[48];
  snprintf(own, sizeof own, "%lld:%lld", (long long)found->st_size,
           (long long)found->st_mtim.tv_sec * 1000000000 + found->st_mtim.tv_nsec);
  size_t length = strlen(own);
  for (const char *at = versions; at && *at; at = strchr(at, ' ')) {
    at += *at == ' ';
    if (strncmp(at, own, length) == 0 && (at[length] == ' ' || at[length] == 0)) return true;
  }
  return false;
}

static enum problem may_place(struct call *call, const struct place *place, struct stat *found, bool *there) {
  const char *versions = asked(call, "ifmatch");
  *there = fstatat(place->parent, place->name, found, AT_SYMLINK_NOFOLLOW) == 0;
  if (!*there) return errno != ENOENT ? problem_of(errno) : versions ? CHANGED : DONE;
  if (asked_for(call, "new")) return EXISTS;
  if (S_ISDIR(found->st_mode)) return IS_A_FOLDER;
  if (!S_ISREG(found->st_mode)) return NOT_A_FILE;
  return versions && strcmp(versions, "any") != 0 && !is_of_version(versions, found) ? CHANGED : DONE;
}

static enum problem take_body(struct call *call, int file) {
  for (;;) {
    char *piece;
    size_t size;
    enum problem problem = next_piece(call, &piece, &size);
    if (!problem && size == 0) return DONE;
    if (!problem) problem = write_whole(file, piece, size);
    if (problem) return problem;
  }
}

static enum problem place_written(struct call *call, struct place *place, struct draft *draft) {
  struct stat found;
  bool there;
  enum problem problem = begin_placing();
  if (problem) return problem;
  problem = may_place(call, place, &found, &there);
  unsigned long long mode;
  if (!asked_number(call, "mode", 07777, &mode)) mode = there ? found.st_mode & 07777 : 0644;
  if (!problem && fchmod(draft->file, (mode_t)mode) < 0) problem = problem_of(errno);
  if (!problem) problem = place_draft(draft, place->name, !asked_for(call, "new"));
  const unsigned char created = !there;
  if (!problem) problem = tell(call, 'E', place, &created, 1);
  end_placing();
  return problem;
}

enum problem call_write(struct call *call) {
  struct place place;
  struct draft draft;
  struct stat found;
  bool there;
  enum problem problem = follow_place(path_of(call), asked_for(call, "parents"), &place);
  if (problem) return problem;
  problem = may_place(call, &place, &found, &there);
  if (!problem) problem = begin_draft(place.parent, &draft);
  if (!problem) {
    problem = keep_metadata(call, draft.file);
    if (!problem) problem = send_frame(call, 'H', NULL, 0);
    if (!problem) problem = take_body(call, draft.file);
    if (!problem) problem = place_written(call, &place, &draft);
    leave_draft(&draft);
  }
  close(place.parent);
  return problem;
}

static enum problem copy_content(struct call *call, int from, int to) {
  for (;;) {
    ssize_t sent = sendfile(to, from, NULL, PIECE);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return problem_of(errno);
    if (sent == 0) return DONE;
    enum problem problem = still_wanted(call);
    if (problem) return problem;
  }
}

/* Places the copy and removes the original, unless the original was changed meanwhile. */
static enum problem place_copy(struct call *call, const struct move *move, struct draft *draft, const struct stat *copied) {
  struct stat now, found;
  const struct timespec times[2] = {copied->st_atim, copied->st_mtim};
  bool there;
  if (fchmod(draft->file, copied->st_mode & 07777) < 0 || futimens(draft->file, times) < 0) return problem_of(errno);
  enum problem problem = begin_placing();
  if (problem) return problem;
  if (fstatat(move->from.parent, move->from.name, &now, AT_SYMLINK_NOFOLLOW) < 0) problem = problem_of(errno);
  else if (now.st_ino != copied->st_ino || now.st_size != copied->st_size || now.st_mtim.tv_sec != copied->st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != copied->st_mtim.tv_nsec)
    problem = BUSY;
  else problem = may_place(call, &move->to, &found, &there);
  if (!problem) problem = place_draft(draft, move->to.name, !asked_for(call, "new"));
  if (!problem && unlinkat(move->from.parent, move->from.name, 0) < 0) problem = problem_of(errno);
  end_placing();
  return problem;
}

/* Moves a file to another file system. Folders and other entries are not moved. */
static enum problem move_by_copy(struct call *call, const struct move *move) {
  struct stat found, again;
  struct draft draft;
  if (fstatat(move->from.parent, move->from.name, &found, AT_SYMLINK_NOFOLLOW) < 0) return problem_of(errno);
  if (!S_ISREG(found.st_mode)) return CANNOT_MOVE;
  if (faccessat(move->from.parent, ".", W_OK, AT_EACCESS) < 0) return problem_of(errno);
  int file = open_safely(move->from.parent, move->from.name, O_RDONLY | O_NOFOLLOW, 0, 0);
  if (file < 0) return problem_of(errno);
  enum problem problem = fstat(file, &again) < 0 ? problem_of(errno) : again.st_ino != found.st_ino ? BUSY : begin_draft(move->to.parent, &draft);
  if (!problem) {
    copy_metadata(file, draft.file);
    problem = copy_content(call, file, draft.file);
    if (!problem) problem = place_copy(call, move, &draft, &again);
    leave_draft(&draft);
  }
  close(file);
  return problem;
}

/* Sets `elsewhere` if the target is on another file system. */
static enum problem rename_it(const struct call *call, const struct move *move, bool *elsewhere) {
  const unsigned flags = asked_for(call, "new") ? 1 /* RENAME_NOREPLACE */ : 0;
  enum problem problem = begin_placing();
  if (problem) return problem;
  if (renameat2(move->from.parent, move->from.name, move->to.parent, move->to.name, flags) < 0) {
    *elsewhere = errno == EXDEV;
    problem = problem_of(errno);
  }
  end_placing();
  return problem;
}

enum problem call_move(struct call *call) {
  struct move move;
  const char *target = asked(call, "to");
  enum problem problem = find_place(path_of(call), false, &move.from);
  if (problem) return problem;
  problem = find_place(target ? target : "", false, &move.to);
  if (!problem) {
    bool elsewhere = false;
    problem = rename_it(call, &move, &elsewhere);
    if (elsewhere) problem = move_by_copy(call, &move);
    if (!problem) problem = tell(call, 'E', &move.to, NULL, 0);
    close(move.to.parent);
  }
  close(move.from.parent);
  return problem;
}

enum problem call_mkdir(struct call *call) {
  struct place place;
  bool parents = asked_for(call, "parents");
  enum problem problem = find_place(path_of(call), parents, &place);
  if (problem) return problem;
  unsigned long long mode;
  if (!asked_number(call, "mode", 07777, &mode)) mode = 0755;
  const unsigned char created = mkdirat(place.parent, place.name, (mode_t)mode) == 0;
  if (created) {
    /* mkdirat ignores mode bits beyond 0777. */
    if (mode & 07000 && fchmodat(place.parent, place.name, (mode_t)mode, 0) < 0) problem = problem_of(errno);
  } else {
    struct stat found;
    int error = errno;
    bool folder = error == EEXIST && fstatat(place.parent, place.name, &found, 0) == 0 && S_ISDIR(found.st_mode);
    if (!folder || !parents) problem = problem_of(error);
  }
  if (!problem) problem = tell(call, 'E', &place, &created, 1);
  close(place.parent);
  return problem;
}

/* `full`: a folder with content. */
static enum problem remove_name(int folder, const char *name, bool *full) {
  *full = false;
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return DONE;
  if (errno != EISDIR && errno != EPERM) return problem_of(errno);
  if (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return DONE;
  *full = errno == ENOTEMPTY || errno == EEXIST;
  if (*full) return DONE;
  return errno == ENOTDIR ? DENIED : problem_of(errno); /* not a folder, and unlink failed too */
}

/* In batches: each is removed before the next is read. */
static enum problem remove_tree(struct call *call, const struct place *place) {
  enum { BATCH = 1024 };
  struct trail trail;
  struct names names = {0};
  size_t next = 0;
  int folder = open_safely(place->parent, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, 0);
  if (folder < 0) return problem_of(errno);
  enum problem problem = begin_trail(&trail, folder);
  while (!problem) {
    if (next < names.count) {
      const char *name = names.items[next++];
      bool full;
      problem = still_wanted(call);
      if (!problem) problem = remove_name(trail.folder, name, &full);
      if (problem || !full) continue;
      problem = descend(&trail, name, &names, next);
      if (problem == NOT_FOUND) problem = DONE;
      else if (!problem) {
        names = (struct names){0};
        next = 0;
      }
      continue;
    }
    free_names(&names);
    next = 0;
    problem = read_some_names(trail.folder, BATCH, &names);
    if (problem || names.count) continue;
    if (trail.depth == 0) break;
    char *left;
    problem = ascend(&trail, &names, &next, &left);
    if (problem) break;
    trail.steps[trail.depth].names = (struct names){0};
    if (unlinkat(trail.folder, left, AT_REMOVEDIR) < 0 && errno != ENOENT) problem = problem_of(errno);
    free(left);
  }
  free_names(&names);
  end_trail(&trail);
  if (!problem && unlinkat(place->parent, place->name, AT_REMOVEDIR) < 0) problem = problem_of(errno);
  return problem;
}

enum problem call_remove(struct call *call) {
  struct place place;
  enum problem problem = find_place(path_of(call), false, &place);
  if (problem) return problem;
  if (unlinkat(place.parent, place.name, 0) < 0) {
    struct stat found;
    int error = errno;
    bool folder = fstatat(place.parent, place.name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode);
    if (!folder) problem = problem_of(error);
    else if (strcmp(place.name, ".") == 0) problem = BUSY;
    else if (asked_for(call, "recursive")) problem = remove_tree(call, &place);
    else if (unlinkat(place.parent, place.name, AT_REMOVEDIR) < 0) problem = problem_of(errno);
  }
  close(place.parent);
  return problem ? problem : send_frame(call, 'E', NULL, 0);
}
