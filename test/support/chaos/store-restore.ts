import type { ControlPlane } from '../../../local-cluster/control-plane.ts';
import { insist } from './faults/insist.ts';
import type { SetBackStore } from './faults/set-back.ts';
import type { StoreLog } from './store-log.ts';

/**
 * Those who follow the store know of revisions that are no more: as its manual says, they are
 * started anew.
 */
const FOLLOWERS = ['kube-controller-manager', 'kube-scheduler', 'kwok'] as const;

/** etcd of a control plane, and the log that has to know where it was set back. */
export const restorable = (controlPlane: ControlPlane, log: StoreLog): SetBackStore => ({
  keepCopy: async () => {
    controlPlane.copyStore();
  },
  restore: async () => {
    // Nobody writes any more, so that the log has all that is lost.
    await controlPlane.kill('kube-apiserver');
    await log.rewind(async () => {
      await controlPlane.kill('etcd');
      controlPlane.restoreStore();
      await insist(() => controlPlane.begin('etcd'));
    });
    await insist(() => controlPlane.begin('kube-apiserver'));
    for (const follower of FOLLOWERS) await controlPlane.restart(follower);
  },
});
