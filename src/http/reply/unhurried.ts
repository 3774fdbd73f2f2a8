import type { Duplex } from 'node:stream';

/** Connections whose request is exempt from the API's request timeout. */
export const unhurried = new WeakSet<Duplex>();
