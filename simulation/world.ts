import { NO_MEMORY } from '../src/machines/autoscaling/memory.ts';
import { Journal, type Summary } from './journal.ts';
import { exponential, randomOf } from './random.ts';
import type { Setting } from './setting.ts';
import { SimulatedGroup } from './simulated-group.ts';
import { SimulatedPool } from './simulated-pool.ts';

/** One member's group through the whole time; what came before `warmUpMs` counts in no figure. */
export const simulate = (setting: Setting): Summary => {
  const { group, meanLifeMs, principals, waitMs, arrivals, edits, fails, endMs } = setting;
  const random = randomOf(setting.seed);
  const pool = new SimulatedPool({ ...setting, name: 'pool' });
  const rule = {
    name: 'pool',
    minReplicas: 0,
    maxReplicas: Number.MAX_SAFE_INTEGER,
    scaleUpPriority: 0,
    scaleDownPriority: 0,
  };
  const scaler = new SimulatedGroup({ group, rules: [rule], memory: NO_MEMORY }, [pool], 0);
  const journal = new Journal(setting);
  const lifeFrom = (now: number): number => now + exponential(random, meanLifeMs);
  pool.replan(0);
  let arrival = arrivals(0);
  let edit = 0;
  let count = 0;
  for (;;) {
    const { starts, ends, waiting } = pool;
    const editAt = edits[edit]?.at ?? Number.POSITIVE_INFINITY;
    const now = Math.min(
      arrival,
      starts.first,
      ends.first,
      waiting.first,
      pool.wakeAt,
      scaler.deadline,
      editAt,
      endMs,
    );
    journal.advance(now, pool);
    if (now >= endMs) return journal.summary(scaler.decisions);
    if (now === ends.first) pool.ended(now);
    else if (now === starts.first) {
      if (fails(now)) {
        pool.failed(now);
        scaler.wake(now);
      } else if (pool.started(now, () => lifeFrom(now))) journal.served(now);
    } else if (now === arrival) {
      arrival = arrivals(now);
      const who = count++ % principals;
      if (pool.claim(who, now, lifeFrom(now))) {
        journal.served(now);
        if (pool.idle.size === 0) scaler.wake(now);
      } else {
        journal.missed(now);
        if (waitMs > 0) pool.wait(who, now + waitMs);
        else {
          pool.refuse(who, now);
          journal.refused(now);
        }
        if (scaler.deadline > now) scaler.wake(now);
      }
    } else if (now === waiting.first) {
      pool.giveUp(now);
      journal.refused(now);
    } else if (now === pool.wakeAt) pool.replan(now);
    else if (now === editAt) {
      const change = edits[edit++];
      if (change) scaler.edit({ group: change.group(scaler.context.group) }, now);
    } else {
      scaler.look(now);
      journal.looked(now, scaler.context.outlook);
    }
  }
};
