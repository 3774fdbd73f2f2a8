import type { Log } from '../../src/contracts/log.ts';

export const quietLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
