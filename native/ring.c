#include "processes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES_OF_A_RUN = 64 };

static size_t most_read(const struct ring *ring) {
  return ring->size / 4 < MOST_READ ? ring->size / 4 : MOST_READ;
}

static uint64_t kept(const struct ring *ring) {
  return ring->size - most_read(ring);
}

static size_t most_runs(const struct ring *ring) {
  return ring->size / BYTES_OF_A_RUN;
}

static uint64_t run_at(const struct ring *ring, size_t at) {
  return ring->runs[(ring->first + at) % most_runs(ring)];
}

static uint64_t end_of(uint64_t run) {
  return run >> 1;
}

bool open_ring(struct ring *ring, size_t size) {
  char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *ring = (struct ring){.bytes = memory, .size = size};
  ring->runs = malloc(most_runs(ring) * sizeof *ring->runs);
  return memory != MAP_FAILED && ring->runs;
}

bool is_full(const struct ring *ring) {
  return ring->total - ring->oldest > kept(ring) || ring->count == most_runs(ring);
}

bool may_grow(const struct ring *ring) {
  return ring->size < RING_BYTES && ring->oldest >= ring->lap && is_full(ring);
}

/* The bytes of this lap are contiguous, so more space behind them moves nothing. */
bool grow_ring(struct ring *ring) {
  struct ring larger = *ring;
  larger.size += RING_UNIT;
  larger.first = 0;
  larger.runs = malloc(most_runs(&larger) * sizeof *larger.runs);
  if (!larger.runs) return false;
  larger.bytes = mremap(ring->bytes, ring->size, larger.size, MREMAP_MAYMOVE);
  if (larger.bytes == MAP_FAILED) {
    free(larger.runs);
    return false;
  }
  for (size_t i = 0; i < ring->count; i++) larger.runs[i] = run_at(ring, i);
  free(ring->runs);
  *ring = larger;
  return true;
}

static void drop_to(struct ring *ring, uint64_t position) {
  if (position > ring->oldest) ring->oldest = position;
  for (; ring->count > 0 && end_of(run_at(ring, 0)) <= ring->oldest; ring->count--) ring->first = (ring->first + 1) % most_runs(ring);
}

static void note_run(struct ring *ring, char stream) {
  const uint64_t run = ring->total << 1 | (stream == 'e');
  if (ring->count == 0 || (run_at(ring, ring->count - 1) & 1) != (run & 1)) ring->count++;
  ring->runs[(ring->first + ring->count - 1) % most_runs(ring)] = run;
}

ssize_t fill_ring(struct ring *ring, int fd, char stream) {
  if (ring->total - ring->lap == ring->size) ring->lap = ring->total;
  const size_t at = ring->total - ring->lap, room = ring->size - at, most = most_read(ring);
  if (ring->total - ring->oldest > kept(ring)) drop_to(ring, ring->total - kept(ring));
  if (ring->count == most_runs(ring)) drop_to(ring, end_of(run_at(ring, 0)));
  ssize_t got = read(fd, ring->bytes + at, room < most ? room : most);
  if (got <= 0) return got;
  ring->total += (uint64_t)got;
  note_run(ring, stream);
  return got;
}

size_t read_ring(const struct ring *ring, uint64_t *from, char *stream, const char **bytes) {
  if (*from < ring->oldest) *from = ring->oldest;
  if (*from >= ring->total) return 0;
  size_t low = 0, high = ring->count - 1;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (end_of(run_at(ring, middle)) > *from) high = middle;
    else low = middle + 1;
  }
  const uint64_t run = run_at(ring, low);
  const size_t at = *from >= ring->lap ? *from - ring->lap : *from + ring->size - ring->lap;
  size_t size = end_of(run) - *from;
  if (size > ring->size - at) size = ring->size - at;
  *stream = run & 1 ? 'e' : 'o';
  *bytes = ring->bytes + at;
  return size < MOST_READ ? size : MOST_READ;
}
