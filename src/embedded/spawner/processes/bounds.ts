/** Copies of src/model/process.ts, which this process does not load. */
export const LIVE_PROCESSES = 64;
export const ENDED_PROCESSES = 64;
