import { setMaxListeners } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { answerOrders } from '../child.ts';
import { FLOODS, type Worst } from './floods.ts';
import { NoisyTenant, type NoisyTerms } from './noisy-tenant.ts';

/** `prepare` first, then `begin` and `end` any number of times. */
export type NoisyOrder =
  | { readonly kind: 'prepare'; readonly flood: string; readonly terms: NoisyTerms }
  | { readonly kind: 'begin' }
  | { readonly kind: 'end' };

/** By status. */
export type NoisyAnswers = Readonly<Record<string, number>>;

// A tenant's client is not on the daemon's machine: here it comes last.
setPriority(19);
// With sched_autogroup, a session has a priority too: a tenth of another session's, so that the
// flood continues beside other work.
if (existsSync('/proc/self/autogroup')) writeFileSync('/proc/self/autogroup', '10');

let tenant: NoisyTenant | undefined;
let worst: Worst | undefined;
let under: { readonly end: AbortController; readonly over: Promise<void> } | undefined;

answerOrders(async (order: NoisyOrder): Promise<NoisyAnswers> => {
  switch (order.kind) {
    case 'prepare':
      tenant = new NoisyTenant(order.terms);
      worst = await FLOODS.find(({ name }) => name === order.flood)?.prepare(tenant);
      if (!worst) throw new Error(`there is no flood ${order.flood}`);
      break;
    case 'begin': {
      if (!worst || under) throw new Error('nothing is prepared, or it goes on already');
      const end = new AbortController();
      setMaxListeners(0, end.signal); // each running request listens
      const over = worst(end.signal);
      over.catch(() => undefined); // `end` rejects with it
      under = { end, over };
      break;
    }
    case 'end':
      under?.end.abort();
      await under?.over;
      under = undefined;
  }
  return tenant?.statuses ?? {};
});
