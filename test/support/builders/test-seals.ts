import { Seals } from '../../../src/k8s/api/seals.ts';

export const testSeals = new Seals({ key: Buffer.alloc(32, 7) });

/** An installation with another pepper. */
export const othersSeals = new Seals({ key: Buffer.alloc(32, 8) });
