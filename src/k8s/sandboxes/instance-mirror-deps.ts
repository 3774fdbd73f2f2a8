import { type InstanceId } from '../../model/identifiers.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import type { LaterSandbox } from './later-sandbox.ts';

export interface InstanceMirrorDeps {
  readonly report: (fact: InstanceFact) => void;
  /** A claimed record has no Pod here: only an uncached look tells whether there is none. */
  readonly missesPod: (id: InstanceId) => void;
  /** Says why what runs on the node can't be relied on; undefined where it can. */
  readonly nodeTrouble: (nodeName: string) => string | undefined;
  /** Whether the node is to be emptied; absent: none is. */
  readonly nodeLeaves?: (nodeName: string) => boolean;
  /** Says why what is idle on the node is not to be handed out; undefined where it may be. */
  readonly idleTrouble?: (nodeName: string) => string | undefined;
  /** A record is in the namespace: what its Pods do is to be known. */
  readonly recordIn?: (namespace: string) => void;
  /** Why nothing is known of the Pods of a namespace; undefined where they can be known. */
  readonly podsTrouble?: (namespace: string) => string | undefined;
  /** Nothing can be in the Pod any more. */
  readonly podGone?: (uid: string) => void;
  /** A later version's record is at the key; undefined: none is there, or no more. */
  readonly laterSandbox?: (key: string, record: LaterSandbox | undefined) => void;
}
