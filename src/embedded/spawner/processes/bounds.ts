/**
 * Copies of the bounds in src/model/process.ts, which this process does not load; a test compares
 * them.
 */
export const LIVE_PROCESSES = 64;
export const ENDED_PROCESSES = 64;
