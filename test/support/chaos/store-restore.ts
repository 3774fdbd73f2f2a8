import type { ControlPlane } from '../../../local-cluster/control-plane.ts';
import { insist } from './faults/insist.ts';
import type { SetBackStore } from './faults/set-back.ts';
import type { StoreLog } from './store-log.ts';

/** They know revisions that no longer exist; etcd's manual says to restart them. */
const FOLLOWERS = ['kube-controller-manager', 'kube-scheduler', 'kwok'] as const;

export const restorable = (controlPlane: ControlPlane, log: StoreLog): SetBackStore => ({
  keepCopy: async () => {
    controlPlane.copyStore();
  },
  restore: async () => {
    // Stop writers, so that the log has everything that is lost.
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
