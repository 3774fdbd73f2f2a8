import { v7 } from 'uuid';

/** Makes an id whose time is the assembly's clock's, whatever the machine's says. */
export const idAt = (now: number): string => v7({ msecs: Math.floor(now) });
