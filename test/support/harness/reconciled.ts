import {
  RECONCILE_EVERY_MS,
  ReservationReconciler,
  type ReservationReconcilerDeps,
} from '../../../src/actors/sandbox/reservation-reconciler.ts';
import { ALICE } from '../builders/instance-orders.ts';
import { quietLog } from '../fakes/quiet-log.ts';
import { TestClock } from '../fakes/test-clock.ts';
import { eventually } from './eventually.ts';

/** The leader settles alice's reservations by the records, in two rounds. */
export const reconciled = async (
  part: Pick<ReservationReconcilerDeps, 'quotas' | 'shown' | 'recorded'>,
): Promise<void> => {
  const clock = new TestClock();
  const reconciler = new ReservationReconciler({
    clock,
    log: quietLog,
    leads: () => true,
    tenants: () => [ALICE],
    unmade: async () => undefined,
    ...part,
  });
  reconciler.start();
  for (let round = 0; round < 2; round += 1) {
    clock.advance(RECONCILE_EVERY_MS);
    await eventually(() => clock.waiting === 1, 'the round is over');
  }
};
