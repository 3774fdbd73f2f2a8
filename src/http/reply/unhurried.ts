import type { Duplex } from 'node:stream';

/** Connections whose request may take longer to arrive than those of the API do. */
export const unhurried = new WeakSet<Duplex>();
