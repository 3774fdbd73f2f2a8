import { v7 } from 'uuid';

/** Makes an id from the assembly's clock, independent of the machine's clock. */
export const idAt = (now: number): string => v7({ msecs: Math.floor(now) });
