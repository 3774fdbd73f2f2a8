/* Names can't leave the folder, and never pass through a link. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RECORDS = 1024 * 1024 };

struct unpacking {
  struct call *call;
  int root;
  uint64_t entries, bytes;
  char name[PATH_BYTES], link[PATH_BYTES];
  unsigned long long size, mode, mtime;
  char type;
  /* for the next entry */
  char next_name[PATH_BYTES], next_link[PATH_BYTES];
  bool has_name, has_link, has_size;
  unsigned long long next_size;
  /* most entries share it */
  int parent;
  char parent_path[PATH_BYTES];
};

static enum problem bad(struct unpacking *unpacking, const char *why) {
  snprintf(unpacking->call->detail, sizeof unpacking->call->detail, "%s: %.200s", why, unpacking->name);
  return BAD_ARCHIVE;
}

static enum problem read_exactly(struct unpacking *unpacking, void *to, uint64_t size) {
  enum problem problem = read_body(unpacking->call, to, size);
  return problem == CHANGED ? bad(unpacking, "the archive is cut short") : problem;
}

static uint64_t padding(uint64_t size) { return (BLOCK - size % BLOCK) % BLOCK; }

/* False for an absolute path or a `..`. Empty means the folder itself. */
static bool clean(char *path) {
  if (*path == '/') return false;
  char *to = path;
  for (char *part = path; *part;) {
    size_t length = strcspn(part, "/");
    char *after = part + length + strspn(part + length, "/");
    if (length == 2 && part[0] == '.' && part[1] == '.') return false;
    if (length > NAME_MAX) return false;
    if (!(length == 1 && part[0] == '.')) {
      if (to != path) *to++ = '/';
      memmove(to, part, length);
      to += length;
    }
    part = after;
  }
  *to = 0;
  return true;
}

static enum problem through_link(struct unpacking *unpacking, int error) {
  if (error == ELOOP || error == EXDEV) return bad(unpacking, "a link or a mount is in the way");
  if (error == ENOTDIR) return bad(unpacking, "a file is in the way");
  return problem_of(error);
}

/* Creates missing folders. Empty means the root. */
static enum problem open_below(struct unpacking *unpacking, const char *path, bool make, int *folder) {
  const unsigned long long strictly = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  int whole = open_safely(unpacking->root, *path ? path : ".", O_PATH | O_DIRECTORY, 0, strictly);
  if (whole >= 0) {
    *folder = whole;
    return DONE;
  }
  if (errno != ENOENT || !make) return through_link(unpacking, errno);
  int here = open_safely(unpacking->root, ".", O_PATH | O_DIRECTORY, 0, 0);
  for (const char *part = path; here >= 0 && *part;) {
    char name[NAME_MAX + 1];
    size_t length = strcspn(part, "/");
    memcpy(name, part, length);
    name[length] = 0;
    part += length + (part[length] == '/');
    int next = -1;
    if (mkdirat(here, name, 0755) == 0 || errno == EEXIST)
      next = open_safely(here, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, strictly);
    int error = errno;
    close(here);
    errno = error;
    here = next;
  }
  if (here < 0) return through_link(unpacking, errno);
  *folder = here;
  return DONE;
}

/* The caller closes `*folder` unless it is `parent`. */
static enum problem find_below(struct unpacking *unpacking, const char *path, bool make, int *folder, const char **last) {
  char above[PATH_BYTES];
  const char *slash = strrchr(path, '/');
  *last = slash ? slash + 1 : path;
  size_t length = slash ? (size_t)(slash - path) : 0;
  memcpy(above, path, length);
  above[length] = 0;
  if (unpacking->parent >= 0 && strcmp(above, unpacking->parent_path) == 0) {
    *folder = unpacking->parent;
    return DONE;
  }
  enum problem problem = open_below(unpacking, above, make, folder);
  if (problem || !make) return problem;
  if (unpacking->parent >= 0) close(unpacking->parent);
  unpacking->parent = *folder;
  strcpy(unpacking->parent_path, above);
  return DONE;
}

static void forget_parent(struct unpacking *unpacking) {
  if (unpacking->parent >= 0) close(unpacking->parent);
  unpacking->parent = -1;
}

static enum problem make_file(struct unpacking *unpacking, int folder, const char *last) {
  struct draft draft;
  enum problem problem = begin_draft(folder, &draft);
  if (problem) return problem;
  for (uint64_t left = unpacking->size; left > 0 && !problem;) {
    char *piece;
    size_t size;
    problem = next_piece(unpacking->call, &piece, &size);
    if (!problem && size == 0) problem = bad(unpacking, "the archive is cut short");
    if (problem) break;
    if (size > left) { /* the rest belongs to the next entry */
      unpacking->call->at -= size - left;
      unpacking->call->left += (uint32_t)(size - left);
      size = (size_t)left;
    }
    problem = write_whole(draft.file, piece, size);
    left -= size;
  }
  const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)unpacking->mtime}};
  if (!problem && fchmod(draft.file, (mode_t)unpacking->mode & 07777) < 0) problem = problem_of(errno);
  if (!problem && futimens(draft.file, times) < 0) problem = problem_of(errno);
  if (!problem) problem = place_draft(&draft, last, true);
  leave_draft(&draft);
  unpacking->bytes += unpacking->size;
  return problem ? problem : read_exactly(unpacking, NULL, padding(unpacking->size));
}

static enum problem make_folder(struct unpacking *unpacking, int folder, const char *last) {
  /* The folder's content follows later. */
  const mode_t mode = ((mode_t)unpacking->mode & 07777) | 0700;
  struct stat found;
  if (mkdirat(folder, last, mode) < 0) {
    int error = errno;
    if (error != EEXIST || fstatat(folder, last, &found, AT_SYMLINK_NOFOLLOW) < 0) return problem_of(error);
    if (S_ISLNK(found.st_mode)) return bad(unpacking, "a link or a mount is in the way");
    /* An existing folder keeps its permissions. */
    return S_ISDIR(found.st_mode) ? DONE : bad(unpacking, "a file is in the way");
  }
  int made = open_safely(folder, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_NO_XDEV);
  if (made < 0) return through_link(unpacking, errno);
  /* EPERM: the folder may belong to another user. */
  enum problem problem = fchmod(made, mode) < 0 && errno != EPERM ? problem_of(errno) : DONE;
  close(made);
  return problem;
}

/* By a spare name and a rename, to replace an existing entry. */
static enum problem make_link(struct unpacking *unpacking, int folder, const char *last) {
  char spare[40];
  int from = -1, done;
  const char *name;
  spare_name(spare);
  if (unpacking->type == '2') done = symlinkat(unpacking->link, folder, spare);
  else {
    struct stat found;
    if (!clean(unpacking->link) || !*unpacking->link) return bad(unpacking, "a hard link leads out");
    enum problem problem = find_below(unpacking, unpacking->link, false, &from, &name);
    if (problem == NOT_FOUND) return bad(unpacking, "a hard link leads nowhere");
    if (problem) return problem;
    done = fstatat(from, name, &found, AT_SYMLINK_NOFOLLOW);
    if (done == 0 && !S_ISREG(found.st_mode)) {
      errno = EPERM;
      done = -1;
    }
    if (done == 0) done = linkat(from, name, folder, spare, 0);
    int error = errno;
    if (from != unpacking->parent) close(from);
    errno = error;
    if (done < 0 && errno == ENOENT) return bad(unpacking, "a hard link leads nowhere");
  }
  if (done < 0) return problem_of(errno);
  if (renameat(folder, spare, folder, last) < 0) {
    enum problem problem = problem_of(errno);
    unlinkat(folder, spare, 0);
    return problem;
  }
  /* If both names link to the same file, the rename keeps the spare name. */
  unlinkat(folder, spare, 0);
  return DONE;
}

static enum problem make_entry(struct unpacking *unpacking) {
  int folder;
  const char *last;
  if (!clean(unpacking->name)) return bad(unpacking, "a name leads out of the folder, or is too long");
  bool file = unpacking->type == '0' || unpacking->type == 0 || unpacking->type == '7';
  if (!file && unpacking->type != '5' && unpacking->type != '1' && unpacking->type != '2')
    return bad(unpacking, "an entry is no file, folder or link");
  if (!*unpacking->name) {
    if (unpacking->type != '5') return bad(unpacking, "an entry has no name");
    return read_exactly(unpacking, NULL, unpacking->size + padding(unpacking->size));
  }
  enum problem problem = find_below(unpacking, unpacking->name, true, &folder, &last);
  if (problem) return problem;
  unpacking->entries++;
  if (file) return make_file(unpacking, folder, last);
  if (unpacking->type == '5') problem = make_folder(unpacking, folder, last);
  else {
    problem = make_link(unpacking, folder, last);
    return problem; /* a link has no content, whatever its size says */
  }
  return problem ? problem : read_exactly(unpacking, NULL, unpacking->size + padding(unpacking->size));
}

static bool take_text(char to[PATH_BYTES], const char *from, size_t length) {
  if (length >= PATH_BYTES || memchr(from, 0, length)) return false;
  memcpy(to, from, length);
  to[length] = 0;
  return true;
}

/* `LENGTH KEYWORD=VALUE\n`. Ignores unknown keywords. */
static bool take_records(struct unpacking *unpacking, const char *at, const char *end) {
  while (at < end) {
    char *blank;
    unsigned long long length = strtoull(at, &blank, 10);
    if (blank == at || *blank != ' ' || length > (unsigned long long)(end - at) || at + length <= blank + 1 || at[length - 1] != '\n')
      return false;
    const char *keyword = blank + 1, *last = at + length - 1;
    const char *value = memchr(keyword, '=', (size_t)(last - keyword));
    if (!value) return false;
    size_t named = (size_t)(value++ - keyword), size = (size_t)(last - value);
    if (named == 4 && memcmp(keyword, "path", 4) == 0) {
      unpacking->has_name = true;
      if (!take_text(unpacking->next_name, value, size)) return false;
    } else if (named == 8 && memcmp(keyword, "linkpath", 8) == 0) {
      unpacking->has_link = true;
      if (!take_text(unpacking->next_link, value, size)) return false;
    } else if (named == 4 && memcmp(keyword, "size", 4) == 0) {
      char number[24], text[PATH_BYTES];
      unpacking->has_size = size < sizeof number && take_text(text, value, size) && parse_number(text, LLONG_MAX, &unpacking->next_size);
      if (!unpacking->has_size) return false;
    } else if (named > 11 && memcmp(keyword, "GNU.sparse.", 11) == 0)
      return false;
    at += length;
  }
  return true;
}

/* Pax records, or a long name of GNU tar, for the next entry. */
static enum problem take_extension(struct unpacking *unpacking) {
  if (unpacking->size > MOST_RECORDS) return bad(unpacking, "an entry's records are too long");
  size_t size = (size_t)unpacking->size;
  char *text = malloc(size + 1);
  if (!text) return TOO_MANY;
  text[size] = 0;
  enum problem problem = read_exactly(unpacking, text, size);
  if (!problem) problem = read_exactly(unpacking, NULL, padding(size));
  if (!problem) {
    bool good = true;
    if (unpacking->type == 'x') good = take_records(unpacking, text, text + size);
    if (unpacking->type == 'L') {
      unpacking->has_name = true;
      good = take_text(unpacking->next_name, text, strlen(text));
    }
    if (unpacking->type == 'K') {
      unpacking->has_link = true;
      good = take_text(unpacking->next_link, text, strlen(text));
    }
    if (!good) problem = bad(unpacking, "an entry's records are malformed, or of a kind that is not read");
  }
  free(text);
  return problem;
}

static bool take_header(struct unpacking *unpacking, const struct tar_header *header) {
  unsigned long long sum;
  unpacking->type = header->type;
  if (!read_tar_number(header->checksum, sizeof header->checksum, &sum) || sum != tar_checksum(header)) return false;
  if (!read_tar_number(header->size, sizeof header->size, &unpacking->size) || unpacking->size > LLONG_MAX) return false;
  if (!read_tar_number(header->mode, sizeof header->mode, &unpacking->mode)) return false;
  if (!read_tar_number(header->mtime, sizeof header->mtime, &unpacking->mtime) || unpacking->mtime > INT_MAX * 16ULL) unpacking->mtime = 0;
  bool prefixed = memcmp(header->magic, "ustar", 6) == 0 && header->prefix[0];
  snprintf(unpacking->name, sizeof unpacking->name, "%.*s%s%.*s", prefixed ? (int)sizeof header->prefix : 0, header->prefix,
           prefixed ? "/" : "", (int)sizeof header->name, header->name);
  snprintf(unpacking->link, sizeof unpacking->link, "%.*s", (int)sizeof header->link, header->link);
  return true;
}

static enum problem unpack_all(struct unpacking *unpacking) {
  struct tar_header header;
  static const struct tar_header empty;
  for (;;) {
    enum problem problem = read_exactly(unpacking, &header, BLOCK);
    if (problem) return problem;
    if (memcmp(&header, &empty, BLOCK) == 0) break;
    if (!take_header(unpacking, &header)) return bad(unpacking, "the archive is no tar, or damaged, after");
    bool extension = unpacking->type == 'x' || unpacking->type == 'g' || unpacking->type == 'L' || unpacking->type == 'K';
    if (extension) problem = take_extension(unpacking);
    else {
      if (unpacking->has_name) strcpy(unpacking->name, unpacking->next_name);
      if (unpacking->has_link) strcpy(unpacking->link, unpacking->next_link);
      if (unpacking->has_size) unpacking->size = unpacking->next_size;
      unpacking->has_name = unpacking->has_link = unpacking->has_size = false;
      problem = make_entry(unpacking);
      /* The link may have replaced the cached folder. */
      if (unpacking->type == '2') forget_parent(unpacking);
    }
    if (!problem) problem = still_wanted(unpacking->call);
    if (problem) return problem;
  }
  /* Padding follows an archive. */
  for (;;) {
    char *piece;
    size_t size;
    enum problem problem = next_piece(unpacking->call, &piece, &size);
    if (problem || size == 0) return problem;
  }
}

enum problem call_unpack(struct call *call) {
  const char *path = asked(call, "path");
  struct place place;
  unsigned char told[16];
  struct unpacking *unpacking = calloc(1, sizeof *unpacking);
  if (!unpacking) return TOO_MANY;
  *unpacking = (struct unpacking){.call = call, .root = -1, .parent = -1};
  enum problem problem = find_place(path ? path : "", true, &place);
  if (!problem) {
    if (mkdirat(place.parent, place.name, 0755) < 0 && errno != EEXIST) problem = problem_of(errno);
    close(place.parent);
  }
  if (!problem) problem = open_folder(path ? path : "", &unpacking->root);
  if (!problem) problem = send_frame(call, 'H', NULL, 0);
  if (!problem) problem = unpack_all(unpacking);
  if (!problem) {
    put_number(told, unpacking->entries, 8);
    put_number(told + 8, unpacking->bytes, 8);
    problem = send_frame(call, 'E', told, sizeof told);
  }
  forget_parent(unpacking);
  if (unpacking->root >= 0) close(unpacking->root);
  free(unpacking);
  return problem;
}
