import { type InstanceId } from '../../model/identifiers.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import type { LaterSandbox } from './later-sandbox.ts';

export interface InstanceMirrorDeps {
  readonly report: (fact: InstanceFact) => void;
  /**
   * Called if the mirror lacks the Pod of a claimed record; only an uncached read can confirm that.
   */
  readonly missesPod: (id: InstanceId) => void;
  /** Returns why instances on the node are unreliable; undefined if they are reliable. */
  readonly nodeTrouble: (nodeName: string) => string | undefined;
  /** Returns whether the node is about to be drained. If absent, no node is. */
  readonly nodeLeaves?: (nodeName: string) => boolean;
  /** Returns why idle instances on the node must not be claimed; undefined if they may be. */
  readonly idleTrouble?: (nodeName: string) => string | undefined;
  /** Called for each namespace with a record, so that its Pods are followed. */
  readonly recordIn?: (namespace: string) => void;
  /** Returns why the Pods of a namespace are unreadable; undefined if they are readable. */
  readonly podsTrouble?: (namespace: string) => string | undefined;
  /** Called once the Pod has ended. */
  readonly podGone?: (uid: string) => void;
  /** Called with a later version's record at the key; undefined once it is gone. */
  readonly laterSandbox?: (key: string, record: LaterSandbox | undefined) => void;
}
