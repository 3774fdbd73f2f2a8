#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_LINKS = 40 };

static const char HOME[] = "/home/sandbox";

const char *bare_home;

/* Follows no link. */
static int open_name(int at, const char *name, int flags, mode_t mode) {
  struct stat found;
  int opened = openat(at, name, flags | O_NOFOLLOW, mode);
  if (opened >= 0) return opened;
  int error = errno;
  bool link = fstatat(at, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
  errno = link ? ELOOP : error;
  return -1;
}

static int open_beneath_by_names(int at, const char *path, int flags, mode_t mode) {
  char part[NAME_MAX + 1];
  int here = at, next = -1;
  errno = EXDEV;
  while (*path != '/') {
    size_t length = strcspn(path, "/");
    if (length > NAME_MAX) errno = ENAMETOOLONG;
    if (length > NAME_MAX || (length == 2 && memcmp(path, "..", 2) == 0)) break;
    memcpy(part, path, length);
    part[length] = 0;
    path += length + strspn(path + length, "/");
    next = open_name(here, part, *path ? O_PATH | O_DIRECTORY | O_CLOEXEC : flags, mode);
    int error = errno;
    if (here != at) close(here);
    if (next < 0 || !*path) return errno = error, next;
    here = next;
    next = -1;
    errno = EXDEV;
  }
  int error = errno;
  if (here != at) close(here);
  errno = error;
  return -1;
}

/* For kernels without openat2, such as gVisor's, in Pods: there magic links only lead to files that the user may see anyway. */
static int open_by_names(int at, const char *path, int flags, mode_t mode, unsigned long long resolve) {
  struct stat there, found;
  int opened = resolve & (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS) ? open_beneath_by_names(at, path, flags, mode)
                                                                 : openat(at, path, flags, mode);
  if (opened < 0 || !(resolve & RESOLVE_NO_XDEV)) return opened;
  if (fstat(at, &there) == 0 && fstat(opened, &found) == 0 && there.st_dev == found.st_dev) return opened;
  close(opened);
  errno = EXDEV;
  return -1;
}

int open_safely(int at, const char *path, int flags, mode_t mode, unsigned long long resolve) {
  const struct open_how how = {
      .flags = (unsigned)(flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), .mode = mode, .resolve = resolve | RESOLVE_NO_MAGICLINKS};
  struct open_how path_only = how;
  path_only.flags &= ~(unsigned long long)(O_NOCTTY | O_NONBLOCK);
  int opened = (int)syscall(SYS_openat2, at, path, flags & O_PATH ? &path_only : &how, sizeof how);
  if (opened >= 0 || errno != ENOSYS) return opened;
  return open_by_names(at, path, (int)(flags & O_PATH ? path_only.flags : how.flags), mode, resolve);
}

bool own_path(const char *path, char own[PATH_BYTES]) {
  size_t home = sizeof HOME - 1;
  bool at_home = bare_home && strncmp(path, HOME, home) == 0 && (path[home] == 0 || path[home] == '/');
  int length = at_home ? snprintf(own, PATH_BYTES, "%s%s", bare_home, path + home) : snprintf(own, PATH_BYTES, "%s", path);
  return length > 0 && length < PATH_BYTES;
}

/* Creates missing folders. */
static enum problem open_making(int at, const char *path, int *folder) {
  char part[NAME_MAX + 1];
  int here = open_safely(at, *path == '/' ? "/" : ".", O_PATH | O_DIRECTORY, 0, 0);
  for (;;) {
    if (here < 0) return problem_of(errno);
    path += strspn(path, "/");
    size_t length = strcspn(path, "/");
    if (length == 0) break;
    if (length > NAME_MAX) {
      close(here);
      return BAD_PATH;
    }
    memcpy(part, path, length);
    part[length] = 0;
    path += length;
    int next = open_safely(here, part, O_PATH | O_DIRECTORY, 0, 0);
    if (next < 0 && errno == ENOENT && (mkdirat(here, part, 0755) == 0 || errno == EEXIST))
      next = open_safely(here, part, O_PATH | O_DIRECTORY, 0, 0);
    int error = errno;
    close(here);
    errno = error;
    here = next;
  }
  *folder = here;
  return DONE;
}

static enum problem find_from(int at, const char *path, bool parents, struct place *place) {
  char above[PATH_BYTES];
  size_t length = strlen(path);
  if (length == 0 || length >= PATH_BYTES) return BAD_PATH;
  memcpy(above, path, length + 1);
  while (length > 1 && above[length - 1] == '/') above[--length] = 0;
  char *slash = strrchr(above, '/');
  const char *last = slash ? slash + 1 : above;
  if (strlen(last) > NAME_MAX) return BAD_PATH;
  strcpy(place->name, *last ? last : ".");
  if (slash == above) strcpy(above, "/");
  else if (slash) *slash = 0;
  else strcpy(above, ".");
  if (parents) return open_making(at, above, &place->parent);
  place->parent = open_safely(at, above, O_PATH | O_DIRECTORY, 0, 0);
  return place->parent < 0 ? problem_of(errno) : DONE;
}

enum problem find_place(const char *path, bool parents, struct place *place) {
  char own[PATH_BYTES];
  if (!own_path(path, own)) return BAD_PATH;
  return find_from(AT_FDCWD, own, parents, place);
}

bool read_link(int at, const char *name, char target[PATH_BYTES]) {
  ssize_t length = readlinkat(at, name, target, PATH_BYTES - 1);
  if (length < 0) return false;
  target[length] = 0;
  return true;
}

enum problem follow_place(const char *path, bool parents, struct place *place) {
  enum problem problem = find_place(path, parents, place);
  for (int links = 0; !problem; links++) {
    char target[PATH_BYTES];
    struct place next;
    if (!read_link(place->parent, place->name, target)) return DONE; /* not a link, or missing */
    problem = links == MOST_LINKS ? BAD_PATH : find_from(place->parent, target, parents, &next);
    close(place->parent);
    if (!problem) *place = next;
  }
  return problem;
}

enum problem open_folder(const char *path, int *folder) {
  char own[PATH_BYTES];
  if (!own_path(path, own)) return BAD_PATH;
  *folder = open_safely(AT_FDCWD, own, O_RDONLY | O_DIRECTORY, 0, 0);
  return *folder < 0 ? problem_of(errno) : DONE;
}

/* O_PATH first: a fifo or device that is not opened can't block or act. */
enum problem open_file(const char *path, int *file, struct stat *found) {
  char own[PATH_BYTES], again[40];
  if (!own_path(path, own)) return BAD_PATH;
  int name = open_safely(AT_FDCWD, own, O_PATH, 0, 0);
  if (name < 0) return problem_of(errno);
  enum problem problem = fstat(name, found) < 0 ? problem_of(errno) : DONE;
  if (!problem && S_ISDIR(found->st_mode)) problem = IS_A_FOLDER;
  if (!problem && !S_ISREG(found->st_mode)) problem = NOT_A_FILE;
  if (!problem) {
    snprintf(again, sizeof again, "/proc/self/fd/%d", name);
    *file = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*file < 0) problem = problem_of(errno);
    else if (fstat(*file, found) < 0) {
      problem = problem_of(errno);
      close(*file);
    }
  }
  close(name);
  return problem;
}

enum { TURN_MS = 10, MOST_TURNS = 1000 };

static pthread_mutex_t placing = PTHREAD_MUTEX_INITIALIZER;

int placing_lock = -1;

enum problem begin_placing(void) {
  pthread_mutex_lock(&placing);
  for (int turn = 0; placing_lock >= 0 && flock(placing_lock, LOCK_EX | LOCK_NB) < 0; turn++) {
    if (turn == MOST_TURNS) {
      pthread_mutex_unlock(&placing);
      return BUSY;
    }
    poll(NULL, 0, TURN_MS);
  }
  return DONE;
}

void end_placing(void) {
  if (placing_lock >= 0) flock(placing_lock, LOCK_UN);
  pthread_mutex_unlock(&placing);
}

static const char SPARE[] = ".sandpool-";

bool is_spare_name(const char *name) {
  const size_t front = sizeof SPARE - 1, length = strlen(name);
  return length == front + 24 && memcmp(name, SPARE, front) == 0 && strspn(name + front, "0123456789abcdef") == 24;
}

void spare_name(char name[40]) {
  unsigned char random[12];
  if (getrandom(random, sizeof random, 0) != sizeof random) memset(random, 0x5a, sizeof random);
  size_t at = (size_t)sprintf(name, "%s", SPARE);
  for (size_t i = 0; i < sizeof random; i++) at += (size_t)sprintf(name + at, "%02x", random[i]);
}

enum problem begin_draft(int parent, struct draft *draft) {
  *draft = (struct draft){.parent = parent};
  /* A file without a name leaves no remains after a crash. Some file systems lack O_TMPFILE. */
  draft->file = openat(parent, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (draft->file >= 0) return DONE;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT) return problem_of(errno);
  spare_name(draft->name);
  draft->file = openat(parent, draft->name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);
  return draft->file < 0 ? problem_of(errno) : DONE;
}

static int rename_draft(struct draft *draft, const char *name, bool replace) {
  int done = replace ? renameat(draft->parent, draft->name, draft->parent, name)
                     : renameat2(draft->parent, draft->name, draft->parent, name, 1 /* RENAME_NOREPLACE */);
  if (done == 0) draft->name[0] = 0;
  return done;
}

enum problem place_draft(struct draft *draft, const char *name, bool replace) {
  if (draft->name[0]) return rename_draft(draft, name, replace) < 0 ? problem_of(errno) : DONE;
  char own[40];
  snprintf(own, sizeof own, "/proc/self/fd/%d", draft->file);
  if (linkat(AT_FDCWD, own, draft->parent, name, AT_SYMLINK_FOLLOW) == 0) return DONE;
  if (errno != EEXIST || !replace) return problem_of(errno);
  spare_name(draft->name);
  if (linkat(AT_FDCWD, own, draft->parent, draft->name, AT_SYMLINK_FOLLOW) < 0) {
    enum problem problem = problem_of(errno);
    draft->name[0] = 0;
    return problem;
  }
  return rename_draft(draft, name, true) < 0 ? problem_of(errno) : DONE;
}

void leave_draft(struct draft *draft) {
  if (draft->name[0]) unlinkat(draft->parent, draft->name, 0);
  if (draft->file >= 0) close(draft->file);
}

enum problem write_whole(int file, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t put = write(file, bytes, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return problem_of(put < 0 ? errno : ENOSPC);
    bytes += put;
    size -= (size_t)put;
  }
  return DONE;
}
