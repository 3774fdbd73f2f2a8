import { setMaxListeners } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { FLOODS, type Worst } from './neighbours/floods.ts';
import type { NoisyAnswer, NoisyOrder } from './neighbours/noisy-protocol.ts';
import { NoisyTenant } from './neighbours/noisy-tenant.ts';

/**
 * The noisy tenant, a process of its own. It comes last on the machine: a tenant's client is not
 * where the daemon is.
 */
setPriority(19);
// Where Linux shares out processors by session first (sched_autogroup), a session has a priority too:
// a tenth of another one's, so that the flood goes on beside other work.
if (existsSync('/proc/self/autogroup')) writeFileSync('/proc/self/autogroup', '10');

let tenant: NoisyTenant | undefined;
let worst: Worst | undefined;
let under: { readonly end: AbortController; readonly over: Promise<void> } | undefined;

const carryOut = async (order: NoisyOrder): Promise<NoisyAnswer> => {
  switch (order.kind) {
    case 'prepare':
      tenant = new NoisyTenant(order.terms);
      worst = await FLOODS.find(({ name }) => name === order.terms.flood)?.prepare(tenant);
      if (!worst) throw new Error(`there is no flood ${order.terms.flood}`);
      break;
    case 'begin': {
      if (!worst || under) throw new Error('nothing is prepared, or it goes on already');
      const end = new AbortController();
      setMaxListeners(0, end.signal); // each request under way listens
      const over = worst(end.signal);
      over.catch(() => undefined); // told at its end
      under = { end, over };
      break;
    }
    case 'end':
      under?.end.abort();
      await under?.over;
      under = undefined;
  }
  return { kind: 'done', statuses: tenant?.statuses ?? {} };
};

process.on('message', (order: NoisyOrder) => {
  carryOut(order)
    .catch((error: unknown): NoisyAnswer => ({
      kind: 'failed',
      reason: error instanceof Error ? error.message : String(error),
    }))
    .then(
      (answer) => process.send?.(answer),
      () => undefined,
    );
});
process.on('disconnect', () => process.exit(0));
