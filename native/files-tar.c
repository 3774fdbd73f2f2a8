/* pack: a folder as a tar stream (pax). */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { SHORT_FILE = 64 * 1024, LONG_FRAME = 1024 * 1024 };

_Static_assert(sizeof(struct tar_header) == BLOCK, "a header is a block");

unsigned tar_checksum(const struct tar_header *header) {
  const unsigned char *bytes = (const unsigned char *)header;
  const size_t field = offsetof(struct tar_header, checksum);
  unsigned sum = 0;
  for (size_t i = 0; i < BLOCK; i++) sum += i >= field && i < field + sizeof header->checksum ? ' ' : bytes[i];
  return sum;
}

void put_octal(char *field, size_t size, unsigned long long value) {
  field[size - 1] = 0;
  for (size_t i = size - 1; i-- > 0; value >>= 3) field[i] = (char)('0' + (value & 7));
}

bool read_tar_number(const char *field, size_t size, unsigned long long *value) {
  *value = 0;
  if ((unsigned char)field[0] == 0x80) { /* binary, positive */
    for (size_t i = 1; i < size; i++) {
      if (*value >> 55) return false;
      *value = *value << 8 | (unsigned char)field[i];
    }
    return true;
  }
  size_t at = 0;
  while (at < size && field[at] == ' ') at++;
  for (; at < size && field[at] >= '0' && field[at] <= '7'; at++) *value = *value << 3 | (unsigned long long)(field[at] - '0');
  return at == size || field[at] == 0 || field[at] == ' ';
}

static size_t add_record(char *to, const char *keyword, const char *value) {
  size_t body = strlen(keyword) + strlen(value) + 3, length = body, digits;
  do {
    digits = (size_t)snprintf(NULL, 0, "%zu", length);
    if (length == body + digits) break;
    length = body + digits;
  } while (true);
  return (size_t)sprintf(to, "%zu %s=%s\n", length, keyword, value);
}

static enum problem pad(struct call *call, uint64_t size) {
  static const char zeros[BLOCK];
  return size % BLOCK ? gather(call, zeros, BLOCK - size % BLOCK) : DONE;
}

static enum problem put_header(struct call *call, struct tar_header *header) {
  memcpy(header->magic, "ustar", 6);
  memcpy(header->version, "00", 2);
  snprintf(header->checksum, 7, "%06o", tar_checksum(header));
  header->checksum[7] = ' ';
  return gather(call, header, BLOCK);
}

/* For values that do not fit into a header. */
static enum problem put_records(struct call *call, const char *path, const char *link, unsigned long long size) {
  char records[2 * PATH_BYTES + 128], number[24];
  size_t length = 0;
  snprintf(number, sizeof number, "%llu", size);
  if (strlen(path) > sizeof ((struct tar_header *)0)->name) length += add_record(records + length, "path", path);
  if (link && strlen(link) > sizeof ((struct tar_header *)0)->link) length += add_record(records + length, "linkpath", link);
  if (size >> 33) length += add_record(records + length, "size", number);
  if (length == 0) return DONE;
  struct tar_header header = {.name = "././@PaxHeader", .type = 'x'};
  put_octal(header.mode, sizeof header.mode, 0644);
  put_octal(header.size, sizeof header.size, length);
  put_octal(header.mtime, sizeof header.mtime, 0);
  enum problem problem = put_header(call, &header);
  if (!problem) problem = gather(call, records, length);
  return problem ? problem : pad(call, length);
}

static enum problem put_entry(struct call *call, const char *path, const struct stat *found, const char *link) {
  struct tar_header header = {0};
  unsigned long long size = S_ISREG(found->st_mode) ? (unsigned long long)found->st_size : 0;
  enum problem problem = put_records(call, path, link, size);
  if (problem) return problem;
  memcpy(header.name, path, strnlen(path, sizeof header.name));
  if (link) memcpy(header.link, link, strnlen(link, sizeof header.link));
  put_octal(header.mode, sizeof header.mode, found->st_mode & 07777);
  put_octal(header.uid, sizeof header.uid, found->st_uid);
  put_octal(header.gid, sizeof header.gid, found->st_gid);
  put_octal(header.size, sizeof header.size, size);
  put_octal(header.mtime, sizeof header.mtime, found->st_mtim.tv_sec > 0 ? (unsigned long long)found->st_mtim.tv_sec : 0);
  header.type = S_ISDIR(found->st_mode) ? '5' : S_ISLNK(found->st_mode) ? '2' : '0';
  return put_header(call, &header);
}

/* A file that became shorter can't be completed: closing the connection reports it. */
static enum problem put_short(struct call *call, int file, size_t size) {
  char bytes[16 * 1024];
  while (size > 0) {
    ssize_t got = read(file, bytes, size < sizeof bytes ? size : sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return GONE;
    enum problem problem = gather(call, bytes, (size_t)got);
    if (problem) return problem;
    size -= (size_t)got;
  }
  return DONE;
}

static enum problem put_long(struct call *call, int file, uint64_t size) {
  enum problem problem = flush_out(call);
  while (!problem && size > 0) {
    size_t frame = size < LONG_FRAME ? (size_t)size : LONG_FRAME;
    size -= frame;
    problem = begin_frame(call, 'D', frame);
    while (!problem && frame > 0) {
      ssize_t sent = sendfile(call->output, file, NULL, frame);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return GONE;
      frame -= (size_t)sent;
    }
    call->told = time(NULL);
  }
  return problem;
}

static enum problem put_file(struct call *call, int folder, const char *name, const char *path) {
  struct stat found;
  /* A fifo in the file's place is never opened. */
  int there = open_safely(folder, name, O_PATH | O_NOFOLLOW, 0, 0);
  if (there < 0 || fstat(there, &found) < 0 || !S_ISREG(found.st_mode)) {
    if (there >= 0) close(there);
    return DONE;
  }
  char again[40];
  snprintf(again, sizeof again, "/proc/self/fd/%d", there);
  int file = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  close(there);
  if (file < 0) return DONE; /* not readable */
  enum problem problem = fstat(file, &found) < 0 ? problem_of(errno) : put_entry(call, path, &found, NULL);
  const uint64_t size = (uint64_t)found.st_size;
  if (!problem) problem = size <= SHORT_FILE ? put_short(call, file, (size_t)size) : put_long(call, file, size);
  close(file);
  return problem ? problem : pad(call, size);
}

struct packing {
  struct call *call;
  struct trail trail;
  struct names names;
  size_t next, length;
  char path[PATH_BYTES]; /* `length` bytes are the folder's path, with `/` at the end. */
};

static enum problem pack_entry(struct packing *packing, const char *name, bool *entered) {
  struct stat found;
  char target[PATH_BYTES];
  const int folder = packing->trail.folder;
  *entered = false;
  int length = snprintf(packing->path + packing->length, sizeof packing->path - packing->length - 1, "%s", name);
  if ((size_t)length >= sizeof packing->path - packing->length - 1) return BAD_PATH;
  if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) < 0) return DONE;
  if (S_ISREG(found.st_mode)) return put_file(packing->call, folder, name, packing->path);
  if (S_ISLNK(found.st_mode))
    return read_link(folder, name, target) ? put_entry(packing->call, packing->path, &found, target) : DONE;
  if (!S_ISDIR(found.st_mode)) return DONE;
  strcat(packing->path, "/");
  enum problem problem = put_entry(packing->call, packing->path, &found, NULL);
  if (problem) return problem;
  problem = descend(&packing->trail, name, &packing->names, packing->next);
  if (problem) return problem == NOT_FOUND || problem == DENIED || problem == BUSY ? DONE : problem;
  *entered = true;
  packing->length += (size_t)length + 1;
  return DONE;
}

static enum problem pack_all(struct packing *packing) {
  enum problem problem = read_names(packing->trail.folder, NULL, 0, &packing->names);
  while (!problem) {
    bool entered = false;
    if (packing->next < packing->names.count) {
      const char *name = packing->names.items[packing->next++];
      problem = pack_entry(packing, name, &entered);
      if (!problem) problem = still_wanted(packing->call);
      if (!problem && entered) {
        packing->next = 0;
        packing->names = (struct names){0};
        problem = read_names(packing->trail.folder, NULL, 0, &packing->names);
        if (problem == DENIED) problem = DONE;
      }
      continue;
    }
    free_names(&packing->names);
    if (packing->trail.depth == 0) return DONE;
    char *left;
    problem = ascend(&packing->trail, &packing->names, &packing->next, &left);
    if (problem) return problem;
    packing->trail.steps[packing->trail.depth].names = (struct names){0};
    packing->length -= strlen(left) + 1;
    free(left);
  }
  return problem;
}

enum problem call_pack(struct call *call) {
  static const char end[2 * BLOCK];
  const char *path = asked(call, "path");
  struct stat found;
  int folder;
  enum problem problem = open_folder(path ? path : "", &folder);
  if (problem) return problem;
  struct packing *packing = calloc(1, sizeof *packing);
  if (!packing || fstat(folder, &found) < 0) {
    free(packing);
    close(folder);
    return TOO_MANY;
  }
  packing->call = call;
  strcpy(packing->path, "./");
  packing->length = 2;
  begin_trail(&packing->trail, folder);
  problem = send_frame(call, 'H', NULL, 0);
  if (!problem) problem = put_entry(call, packing->path, &found, NULL);
  if (!problem) problem = pack_all(packing);
  if (!problem) problem = gather(call, end, sizeof end);
  if (!problem) problem = flush_out(call);
  if (!problem) problem = send_frame(call, 'E', NULL, 0);
  free_names(&packing->names);
  end_trail(&packing->trail);
  free(packing);
  return problem;
}
