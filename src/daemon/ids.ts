import { v7 } from 'uuid';

/** Independent of the machine's clock. */
export const idAt = (now: number): string => v7({ msecs: Math.floor(now) });
